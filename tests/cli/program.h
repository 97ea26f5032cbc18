// Runs the built program and keeps what it said.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace h3rt::cli_test {

struct ProgramRun {
  int exit_code = -1;  // 128 + signal when it was ended by one
  std::string out;
  std::string err;
};

using Environment = std::map<std::string, std::string>;

struct RunOptions {
  Environment env = {};
  // SIGINT as soon as standard error holds this text (or after a minute); empty: never.
  std::string interrupt_at = {};
  // Where standard output goes instead of being kept.
  std::string stdout_path = {};
  // Largest file that the program may write (RLIMIT_FSIZE), in bytes; 0: no limit. Past it writes
  // fail as they do on a full disk.
  unsigned long long file_limit_bytes = 0;
  // Address space (RLIMIT_AS), in bytes; 0: no limit. Past it allocations fail.
  unsigned long long memory_limit_bytes = 0;
};

ProgramRun RunProgram(const std::vector<std::string>& args, const RunOptions& options = {});

// A fresh folder that is removed with its content.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  std::vector<std::string> Files() const;  // names in it, hidden ones too, sorted

 private:
  std::string path_;
};

std::string ReadAll(const std::string& path);
void WriteAll(const std::string& path, const std::string& content);
bool Exists(const std::string& path);

}  // namespace h3rt::cli_test
