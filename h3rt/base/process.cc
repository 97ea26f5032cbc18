#include "h3rt/base/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>

#include "h3rt/base/utc.h"

namespace h3rt {
namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
  int read_end = -1, write_end = -1;
  Pipe() = default;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    Close(read_end);
    Close(write_end);
  }
  bool Open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read_end = ends[0];
    write_end = ends[1];
    return true;
  }
  static void Close(int& fd) {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
};

// What the child needs, made before the fork: after it only plain system calls are allowed.
struct Launch {
  std::vector<char*> argv, environment;
  std::string path;
  const ProgramOptions* options = nullptr;
  int null_fd = -1, out_fd = -1, err_fd = -1, report_fd = -1;
};

[[noreturn]] void Child(const Launch& launch) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::dup2(launch.null_fd, STDIN_FILENO);
  ::dup2(launch.out_fd, STDOUT_FILENO);
  ::dup2(launch.err_fd, STDERR_FILENO);
  // Nothing else of ours goes along, the writers' lock least of all.
  ::syscall(SYS_close_range, 3u, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP}) ::signal(number, SIG_DFL);
  if (launch.options->address_space_bytes > 0) {
    const rlimit limit = {launch.options->address_space_bytes, launch.options->address_space_bytes};
    ::setrlimit(RLIMIT_AS, &limit);
  }
  const rlimit no_core = {0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  if (launch.options->folder.empty() || ::chdir(launch.options->folder.c_str()) == 0) {
    ::execve(launch.path.c_str(), launch.argv.data(), launch.environment.data());
  }
  const int reason = errno;
  [[maybe_unused]] const ssize_t written = ::write(launch.report_fd, &reason, sizeof reason);
  ::_exit(127);
}

// Reads what there is; false at the end of the stream.
bool Drain(int fd, uint64_t limit, std::string& text, bool& cut) {
  char buffer[65536];
  const ssize_t n = ::read(fd, buffer, sizeof buffer);
  if (n == 0) return false;
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  const uint64_t room = limit > text.size() ? limit - text.size() : 0;
  if (static_cast<uint64_t>(n) > room) cut = true;
  text.append(buffer, static_cast<size_t>(std::min(room, static_cast<uint64_t>(n))));
  return true;
}

struct Watch {
  pid_t pid = -1;
  int status = 0;
  rusage usage = {};
  bool cancelled = false;
};

// Reads both streams until the program has ended, its time is up or it is cancelled.
void WatchOver(Pipe& out, Pipe& err, const ProgramOptions& options, Clock::time_point start,
               Watch& watch, ProgramResult& result) {
  for (const int fd : {out.read_end, err.read_end}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  const auto deadline = start + std::chrono::milliseconds(options.timeout_ms);
  bool ended = false;
  while (true) {
    pollfd fds[2] = {{out.read_end, POLLIN, 0}, {err.read_end, POLLIN, 0}};
    const bool open = out.read_end >= 0 || err.read_end >= 0;
    const int ready = ::poll(fds, 2, ended ? 0 : open ? 10 : 1);
    if (ready > 0) {
      if (fds[0].revents && !Drain(out.read_end, options.output_bytes, result.out, result.cut)) {
        Pipe::Close(out.read_end);
      }
      if (fds[1].revents && !Drain(err.read_end, options.output_bytes, result.err, result.cut)) {
        Pipe::Close(err.read_end);
      }
    }
    // Descendants may hold the streams open for ever: only what they held by now is read.
    if (ended && ready <= 0) return;
    if (!ended && ::wait4(watch.pid, &watch.status, WNOHANG, &watch.usage) == watch.pid) {
      ended = true;
      ::kill(-watch.pid, SIGKILL);
      continue;
    }
    watch.cancelled |= options.cancel && options.cancel->cancelled();
    result.timed_out |= !ended && Clock::now() >= deadline;
    if (!ended && (watch.cancelled || result.timed_out)) {
      ::kill(-watch.pid, SIGKILL);
      ::kill(watch.pid, SIGKILL);  // should it not lead its group yet
      ::wait4(watch.pid, &watch.status, 0, &watch.usage);
      ended = true;
    }
  }
}

}  // namespace

absl::StatusOr<ProgramResult> RunProgram(const std::vector<std::string>& argv,
                                         const ProgramOptions& options) {
  if (argv.empty()) return Internal({.what = "no program to run"});
  const std::optional<std::string> path = FindProgram(argv[0]);
  if (!path) {
    return NotFound({.what = "no such program", .got = argv[0], .wanted = "one in PATH"});
  }
  Launch launch;
  launch.path = *path;
  launch.options = &options;
  std::vector<std::string> words = argv, variables;
  for (char** entry = environ; *entry; ++entry) variables.emplace_back(*entry);
  for (const auto& [name, value] : options.variables) {
    const std::string prefix = name + "=";
    variables.erase(std::remove_if(variables.begin(), variables.end(),
                                   [&](const std::string& v) { return v.rfind(prefix, 0) == 0; }),
                    variables.end());
    variables.push_back(prefix + value);
  }
  for (std::string& word : words) launch.argv.push_back(word.data());
  for (std::string& variable : variables) launch.environment.push_back(variable.data());
  launch.argv.push_back(nullptr);
  launch.environment.push_back(nullptr);

  Pipe out, err, report, null;
  null.read_end = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null.read_end < 0 || !out.Open() || !err.Open() || !report.Open()) {
    return ErrnoStatus(errno, "open a pipe for", argv[0]);
  }
  launch.null_fd = null.read_end;
  launch.out_fd = out.write_end;
  launch.err_fd = err.write_end;
  launch.report_fd = report.write_end;

  ProgramResult result;
  result.start_ns = NowNs();
  const Clock::time_point start = Clock::now();
  Watch watch;
  watch.pid = ::fork();
  if (watch.pid < 0) return ErrnoStatus(errno, "start", argv[0]);
  if (watch.pid == 0) Child(launch);
  ::setpgid(watch.pid, watch.pid);  // in both, whoever comes first
  for (Pipe* pipe : {&out, &err, &report}) Pipe::Close(pipe->write_end);
  int reason = 0;
  ssize_t told;
  do {
    told = ::read(report.read_end, &reason, sizeof reason);
  } while (told < 0 && errno == EINTR);
  if (told == sizeof reason) {
    ::waitpid(watch.pid, nullptr, 0);
    return ErrnoStatus(reason, "start", *path);
  }
  WatchOver(out, err, options, start, watch, result);
  result.wall_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
  result.end_ns = NowNs();
  if (watch.cancelled) return Cancelled(argv[0]);
  if (WIFEXITED(watch.status)) result.exit_code = WEXITSTATUS(watch.status);
  if (WIFSIGNALED(watch.status)) result.signal = WTERMSIG(watch.status);
  result.peak_rss_bytes = static_cast<int64_t>(watch.usage.ru_maxrss) * 1024;
  return result;
}

std::optional<std::string> FindProgram(const std::string& name,
                                       const std::vector<std::string>& folders) {
  if (name.empty()) return std::nullopt;
  if (name.find('/') != std::string::npos) {
    return ::access(name.c_str(), X_OK) == 0 ? std::optional(name) : std::nullopt;
  }
  std::vector<std::string> all;
  const char* const path = std::getenv("PATH");
  for (std::string rest = path ? path : ""; !rest.empty();) {
    const size_t end = std::min(rest.find(':'), rest.size());
    if (end > 0) all.push_back(rest.substr(0, end));
    rest.erase(0, end + 1);
  }
  all.insert(all.end(), folders.begin(), folders.end());
  for (const std::string& folder : all) {
    std::string candidate = folder + "/" + name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return std::nullopt;
}

std::optional<std::string> FindCudaProgram(const std::string& name) {
  return FindProgram(name,
                     {"/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer", "/opt/cuda/bin"});
}

absl::StatusOr<std::string> NvccVersion(const std::string& nvcc) {
  H3RT_ASSIGN_OR_RETURN(const ProgramResult run, RunProgram({nvcc, "--version"}));
  // "... release 13.0, V13.0.88\nBuild cuda_13.0.r13.0/compiler.36424714_0\n"
  const size_t version = run.out.find(", V");
  const size_t build = run.out.find("\nBuild ");
  if (!run.ok() || version == std::string::npos || build == std::string::npos) {
    return FailedPrecondition(
        {.what = "nvcc does not tell its version", .got = run.out.substr(0, 200), .where = nvcc});
  }
  const auto word = [&](size_t at) { return run.out.substr(at, run.out.find('\n', at) - at); };
  return word(version + 3) + " " + word(build + 7);
}

}  // namespace h3rt
