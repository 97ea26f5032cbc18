#include "h3rt/media/ffmpeg_library.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

#include "h3rt/base/env.h"
#include "h3rt/base/log.h"

namespace h3rt {
namespace {

constexpr std::string_view kModuleName = "libh3rt_media.so";
constexpr std::string_view kHowToGetIt =
    "build h3rt where FFmpeg's development files are installed, or set H3RT_MEDIA_LIBRARY to the "
    "path of libh3rt_media.so";

std::string ProgramPath() {
  std::string path(4096, '\0');
  const ssize_t n = ::readlink("/proc/self/exe", path.data(), path.size());
  if (n <= 0) return {};
  path.resize(static_cast<size_t>(n));
  return path;
}

std::string FolderOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return std::string(slash == 0 ? "/" : path.substr(0, slash));
}

void LogLine(const char* line) { LogDebug("FFmpeg: " + std::string(line)); }

absl::StatusOr<const H3rtMediaApi*> Load(const std::string& path) {
  // RTLD_LOCAL: FFmpeg's symbols stay out of the program, which may hold another FFmpeg.
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = ::dlerror();
    return FailedPrecondition({.what = "the FFmpeg part does not load",
                               .got = reason == nullptr ? "no reason" : reason,
                               .where = path});
  }
  auto get_api = reinterpret_cast<H3rtMediaGetApi>(::dlsym(handle, H3RT_MEDIA_GET_API_NAME));
  const H3rtMediaApi* api = get_api == nullptr ? nullptr : get_api(H3RT_MEDIA_ABI_VERSION);
  if (api == nullptr || api->abi_version != H3RT_MEDIA_ABI_VERSION ||
      api->struct_bytes != sizeof(H3rtMediaApi)) {
    ::dlclose(handle);
    return FailedPrecondition(
        {.what = "the FFmpeg part is of another h3rt",
         .got = get_api == nullptr ? "a library without " H3RT_MEDIA_GET_API_NAME
                                   : "another interface version",
         .wanted = "interface version " + std::to_string(H3RT_MEDIA_ABI_VERSION),
         .where = path});
  }
  api->set_log(&LogLine);
  LogDebug(std::string("FFmpeg part: ") + path + " (" + api->version() + ")");
  return api;
}

}  // namespace

std::vector<std::string> FfmpegSearchPaths(std::string_view program_path, std::string_view wanted) {
  if (wanted == "none") return {};
  if (!wanted.empty()) return {std::string(wanted)};
  const std::string folder = FolderOf(program_path);
  const std::string name = "/" + std::string(kModuleName);
  std::vector<std::string> paths = {folder + name, folder + "/../lib" + name};
#ifdef H3RT_MEDIA_BUILD_FOLDER
  // Programs and tests of the build tree lie at many depths; an installed one never looks here.
  const std::string build = H3RT_MEDIA_BUILD_FOLDER;
  if (program_path.substr(0, build.size() + 1) == build + "/")
    paths.push_back(build + "/lib" + name);
#endif
  return paths;
}

absl::StatusOr<const H3rtMediaApi*> FfmpegApi() {
  static std::mutex mutex;
  static std::map<std::string, const H3rtMediaApi*>& loaded =
      *new std::map<std::string, const H3rtMediaApi*>;  // never destroyed: used until exit
  const std::string wanted = GetEnv(EnvVar::kMediaLibrary).value_or("");
  if (wanted == "none") {
    return FailedPrecondition(
        {.what = "FFmpeg part switched off", .got = "H3RT_MEDIA_LIBRARY=none"});
  }
  const std::lock_guard<std::mutex> lock(mutex);
  std::string tried;
  for (const std::string& path : FfmpegSearchPaths(ProgramPath(), wanted)) {
    if (const auto it = loaded.find(path); it != loaded.end()) return it->second;
    struct stat info = {};  // opening a pipe would wait for ever
    if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
      tried += (tried.empty() ? "" : ", ") + path;
      continue;
    }
    H3RT_ASSIGN_OR_RETURN(const H3rtMediaApi* api, Load(path));
    loaded[path] = api;
    return api;
  }
  return FailedPrecondition(
      {.what = "FFmpeg part not found: looked in " + tried, .wanted = std::string(kHowToGetIt)});
}

absl::StatusOr<std::string> FfmpegVersion() {
  H3RT_ASSIGN_OR_RETURN(const H3rtMediaApi* api, FfmpegApi());
  return std::string(api->version());
}

absl::Status StatusOfModule(const H3rtMediaError& error, std::string_view where) {
  const ErrorText text{.what = error.text, .where = std::string(where)};
  switch (error.code) {
    case H3RT_MEDIA_OK:
      return absl::OkStatus();
    case H3RT_MEDIA_CANCELLED:
      return Cancelled(where);
    case H3RT_MEDIA_INVALID_ARGUMENT:
      return InvalidArgument(text);
    case H3RT_MEDIA_NOT_FOUND:
      return NotFound(text);
    case H3RT_MEDIA_RESOURCE_EXHAUSTED:
      return ResourceExhausted(text);
    case H3RT_MEDIA_FAILED_PRECONDITION:
      return FailedPrecondition(text);
    case H3RT_MEDIA_UNIMPLEMENTED:
      return Unimplemented(text);
    case H3RT_MEDIA_UNAVAILABLE:
      return IoError(text);
    case H3RT_MEDIA_DATA_LOSS:
      return DataLoss(text);
    default:
      return Internal(text);
  }
}

}  // namespace h3rt
