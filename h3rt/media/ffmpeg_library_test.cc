#include "h3rt/media/ffmpeg_library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "h3rt/base/file.h"
#include "h3rt/media/media_test_util.h"

namespace h3rt {
namespace {

TEST(FfmpegLibrary, IsFoundFromTheBuildTreeWithoutAnySetting) {
  H3RT_NEEDS_FFMPEG();
  const auto version = FfmpegVersion();
  ASSERT_TRUE(version.ok()) << version.status();
  EXPECT_NE(version->find("libavcodec"), std::string::npos) << *version;
  EXPECT_EQ(*FfmpegApi(), *FfmpegApi());
}

TEST(FfmpegLibrary, TheSearchGoesBesideTheProgramThenToLib) {
  EXPECT_EQ(
      FfmpegSearchPaths("/opt/bin/h3rt", ""),
      (std::vector<std::string>{"/opt/bin/libh3rt_media.so", "/opt/bin/../lib/libh3rt_media.so"}));
  EXPECT_EQ(FfmpegSearchPaths("/opt/bin/h3rt", "/x/y.so"), std::vector<std::string>{"/x/y.so"});
  EXPECT_TRUE(FfmpegSearchPaths("/opt/bin/h3rt", "none").empty());
}

TEST(FfmpegLibrary, NoneSwitchesItOffAndComesBack) {
  {
    const ScopedEnv none("H3RT_MEDIA_LIBRARY", "none");
    EXPECT_EQ(FfmpegVersion().status().code(), absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_EQ(FfmpegVersion().ok(), kFfmpegWasBuilt);
}

TEST(FfmpegLibrary, AMissingModuleSaysWhereItLooked) {
  const ScopedEnv missing("H3RT_MEDIA_LIBRARY", "/nowhere/libh3rt_media.so");
  const auto status = FfmpegVersion().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(MessageOf(status).find("FFmpeg part not found: looked in /nowhere/libh3rt_media.so"),
            std::string::npos)
      << status;
}

TEST(FfmpegLibrary, AFileThatIsNoLibraryAndAForeignLibraryAreRefused) {
  const TempFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder.File("libh3rt_media.so"), "text").ok());
  {
    const ScopedEnv text("H3RT_MEDIA_LIBRARY", folder.File("libh3rt_media.so"));
    const auto status = FfmpegVersion().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(MessageOf(status).find("does not load"), std::string::npos) << status;
  }
  Dl_info info = {};
  ASSERT_NE(::dladdr(::dlsym(RTLD_DEFAULT, "getenv"), &info), 0);
  const ScopedEnv foreign("H3RT_MEDIA_LIBRARY", info.dli_fname);
  const auto status = FfmpegVersion().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(MessageOf(status).find("another h3rt"), std::string::npos) << status;
}

TEST(FfmpegLibrary, AnotherInterfaceVersionIsNotSpoken) {
  H3RT_NEEDS_FFMPEG();
  EXPECT_EQ((*FfmpegApi())->abi_version, H3RT_MEDIA_ABI_VERSION);
  Dl_info info = {};
  ASSERT_NE(::dladdr(reinterpret_cast<const void*>((*FfmpegApi())->version), &info), 0);
  void* handle = ::dlopen(info.dli_fname, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr);
  auto get = reinterpret_cast<H3rtMediaGetApi>(::dlsym(handle, H3RT_MEDIA_GET_API_NAME));
  ASSERT_NE(get, nullptr);
  EXPECT_EQ(get(H3RT_MEDIA_ABI_VERSION), *FfmpegApi());
  EXPECT_EQ(get(H3RT_MEDIA_ABI_VERSION + 1), nullptr);
  ::dlclose(handle);
}

TEST(FfmpegLibrary, CodesBecomeStatusesWithTheFileName) {
  const std::pair<int32_t, absl::StatusCode> table[] = {
      {H3RT_MEDIA_INVALID_ARGUMENT, absl::StatusCode::kInvalidArgument},
      {H3RT_MEDIA_NOT_FOUND, absl::StatusCode::kNotFound},
      {H3RT_MEDIA_RESOURCE_EXHAUSTED, absl::StatusCode::kResourceExhausted},
      {H3RT_MEDIA_FAILED_PRECONDITION, absl::StatusCode::kFailedPrecondition},
      {H3RT_MEDIA_UNIMPLEMENTED, absl::StatusCode::kUnimplemented},
      {H3RT_MEDIA_UNAVAILABLE, absl::StatusCode::kUnavailable},
      {H3RT_MEDIA_DATA_LOSS, absl::StatusCode::kDataLoss},
      {H3RT_MEDIA_CANCELLED, absl::StatusCode::kCancelled},
      {4711, absl::StatusCode::kInternal}};
  for (const auto& [code, expected] : table) {
    H3rtMediaError error = {code, "text"};
    const auto status = StatusOfModule(error, "clip.mp4");
    EXPECT_EQ(status.code(), expected) << code;
    EXPECT_NE(MessageOf(status).find("clip.mp4"), std::string::npos);
  }
  EXPECT_TRUE(StatusOfModule({}, "x").ok());
}

}  // namespace
}  // namespace h3rt
