// h3rt_stamp: writes what a build knows of itself as a C++ source, when that has changed. Runs in
// every build; the machine that runs the program later need not have the repository.
//
//     h3rt_stamp ROOT OUTPUT HOST_COMPILER DEVICE_FLAGS [NVCC]

#include <cstdio>
#include <filesystem>
#include <set>

#include "h3rt/base/exit_code.h"
#include "h3rt/base/file.h"
#include "h3rt/base/hash.h"
#include "h3rt/base/process.h"
#include "h3rt/lab/closure.h"

namespace h3rt::lab {
namespace {
namespace fs = std::filesystem;

std::string Git(const std::string& root, std::vector<std::string> words) {
  words.insert(words.begin(), {"git", "-C", root, "-c", "core.fsmonitor=false"});
  const auto run = RunProgram(words, {.timeout_ms = 60000, .output_bytes = uint64_t{256} << 20});
  return run.ok() && run->ok() ? run->out : "";
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

struct Revision {
  std::string commit, dirty_digest;
};

// Empty outside a repository, and in a folder of another project's.
Revision RevisionOf(const std::string& root) {
  Revision revision;
  std::error_code error;
  const std::string top = FirstLine(Git(root, {"rev-parse", "--show-toplevel"}));
  if (top.empty() || !fs::equivalent(top, root, error)) return revision;
  revision.commit = FirstLine(Git(root, {"rev-parse", "HEAD"}));
  const std::vector<std::string> places = {"h3rt", "apps", "cmake", "research/probes",
                                           "CMakeLists.txt"};
  std::vector<std::string> diff = {"diff", "HEAD", "--no-color", "--no-ext-diff", "--"};
  std::vector<std::string> untracked = {"ls-files", "--others", "--exclude-standard", "-z", "--"};
  for (const std::string& place : places) {
    diff.push_back(place);
    untracked.push_back(place);
  }
  const std::string changes = Git(root, diff);
  const std::string names = Git(root, untracked);
  if (revision.commit.empty() || (changes.empty() && names.empty())) return revision;
  Sha256 hash;
  hash.Update(changes);
  for (size_t at = 0; at < names.size();) {
    const std::string name = names.c_str() + at;
    at += name.size() + 1;
    const auto digest = Sha256OfFile(root + "/" + name);
    hash.Update(name + " " + (digest.ok() ? *digest : "unreadable") + "\n");
  }
  revision.dirty_digest = hash.Finish();
  return revision;
}

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (static_cast<unsigned char>(c) >= 0x20) {
      out += c;
    }
  }
  return out + "\"";
}

// Every source that an arm may stand in or include.
std::set<std::string> SourcesOf(const std::string& root) {
  std::set<std::string> paths;
  std::error_code error;
  for (const char* folder : {"h3rt", "research/probes"}) {
    for (fs::recursive_directory_iterator at(root + "/" + folder, error), end; !error && at != end;
         at.increment(error)) {
      const std::string kind = at->path().extension().string();
      if (kind == ".h" || kind == ".cc" || kind == ".cu" || kind == ".cuh") {
        paths.insert(at->path().lexically_relative(root).generic_string());
      }
    }
  }
  return paths;
}

absl::Status Run(const std::vector<std::string>& words) {
  if (words.size() < 4 || words.size() > 5) {
    return InvalidArgument(
        {.what = "h3rt_stamp", .wanted = "ROOT OUTPUT HOST_COMPILER DEVICE_FLAGS [NVCC]"});
  }
  const std::string& root = words[0];
  const auto lookup = [&](const std::string& path) { return FactsOfFile(root, path); };
  std::string toolkit;
  if (words.size() == 5) {
    H3RT_ASSIGN_OR_RETURN(toolkit, NvccVersion(words[4]));
  }
  const Revision revision = RevisionOf(root);
  const std::string harness = DigestOfHarness(lookup).value_or("");
  const std::string host_harness = DigestOfHarness(lookup, true).value_or("");

  std::string text =
      "// Written by h3rt_stamp in every build; not to be edited.\n"
      "#include \"h3rt/harness/stamp_data.h\"\n\nnamespace h3rt::lab {\nnamespace {\n"
      "constexpr StampedSource kSources[] = {\n";
  for (const std::string& path : SourcesOf(root)) {
    const absl::StatusOr<const SourceFacts*> facts = lookup(path);
    if (!facts.ok()) continue;  // it has no closure, so nothing that needs it is stamped
    std::string includes;
    for (const std::string& include : (*facts)->includes) includes += include + "\n";
    text += "    {" + Quoted(path) + ", " + Quoted((*facts)->sha256) + ",\n     " +
            Quoted((*facts)->code_sha256) + ",\n     " + Quoted(includes) + "},\n";
  }
  text +=
      "};\n}  // namespace\n\nextern const StampData kStampData;\nconst StampData kStampData = {\n";
  for (const std::string& part : {revision.commit, revision.dirty_digest, harness, host_harness,
                                  toolkit, words[2], words[3]}) {
    text += "    " + Quoted(part) + ",\n";
  }
  text += "    kSources, sizeof kSources / sizeof kSources[0]};\n\n}  // namespace h3rt::lab\n";
  const absl::StatusOr<std::string> present = ReadFile(words[1]);
  if (present.ok() && *present == text) return absl::OkStatus();
  return WriteFileAtomically(words[1], text);
}

}  // namespace
}  // namespace h3rt::lab

int main(int argc, char** argv) {
  const absl::Status status = h3rt::lab::Run({argv + 1, argv + argc});
  if (!status.ok()) std::fprintf(stderr, "h3rt_stamp: %s\n", h3rt::MessageOf(status).c_str());
  return static_cast<int>(h3rt::ExitCodeOf(status));
}
