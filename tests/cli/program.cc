#include "tests/cli/program.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace h3rt::cli_test {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void Child(const std::vector<std::string>& args, const RunOptions& options,
                        const std::string& out, const std::string& err) {
  const int out_fd = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const int err_fd = ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::dup2(out_fd, STDOUT_FILENO);
  ::dup2(err_fd, STDERR_FILENO);
  for (const auto& [name, value] : options.env) ::setenv(name.c_str(), value.c_str(), 1);
  if (options.file_limit_bytes > 0) {
    const rlimit limit = {options.file_limit_bytes, options.file_limit_bytes};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  if (options.memory_limit_bytes > 0) {
    const rlimit limit = {options.memory_limit_bytes, options.memory_limit_bytes};
    ::setrlimit(RLIMIT_AS, &limit);
  }
  std::vector<char*> argv;
  std::string program = H3RT_PROGRAM;
  argv.push_back(program.data());
  std::vector<std::string> copies = args;
  for (std::string& arg : copies) argv.push_back(arg.data());
  argv.push_back(nullptr);
  ::execv(H3RT_PROGRAM, argv.data());
  ::_exit(127);
}

}  // namespace

ProgramRun RunProgram(const std::vector<std::string>& args, const RunOptions& options) {
  const TemporaryFolder folder;
  const std::string out = options.stdout_path.empty() ? folder / "out" : options.stdout_path;
  const std::string err = folder / "err";
  const pid_t pid = ::fork();
  if (pid == 0) Child(args, options, out, err);
  if (!options.interrupt_at.empty()) {
    for (int i = 0; i < 6000 && ReadAll(err).find(options.interrupt_at) == std::string::npos; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ::kill(pid, SIGINT);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  ProgramRun run;
  run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (options.stdout_path.empty()) run.out = ReadAll(out);
  run.err = ReadAll(err);
  return run;
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "h3rt-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) std::abort();
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::vector<std::string> TemporaryFolder::Files() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path_)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void WriteAll(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

bool Exists(const std::string& path) { return fs::exists(path); }

}  // namespace h3rt::cli_test
