#include "apps/h3rt/cli.h"

#include <charconv>
#include <csignal>
#include <thread>

#include "h3rt/base/env.h"
#include "h3rt/cuda/device_info.h"

namespace h3rt::cli {
namespace {

constexpr int kMaxThreads = 512;

// The signals that end the program politely.
sigset_t CancelSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action = {};
    // What is ignored stays ignored: that is how nohup and a shell's & protect a run.
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) continue;
    sigaddset(&set, signal);
  }
  return set;
}

// Waits for signals for the life of the program. The first cancels; the next is not waited for.
void WatchSignals() {
  const sigset_t set = CancelSignals();
  int signal = 0;
  if (sigwait(&set, &signal) != 0) return;
  GlobalCancel().Cancel();
  if (sigwait(&set, &signal) != 0) return;
  std::signal(signal, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  std::raise(signal);
}

// `T` decides the range. Leading zeros go, since the parser would read them as octal.
template <typename T>
CLI::Validator DecimalNumber(const char* name) {
  return CLI::Validator(
      [name](std::string& text) -> std::string {
        T value{};
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
          return "got \"" + text + "\", wanted " + name;
        }
        text = std::to_string(value);
        return {};
      },
      "");
}

}  // namespace

CLI::Validator Unsigned() { return DecimalNumber<uint64_t>("a whole number from 0 to 2^64 - 1"); }

CLI::Validator Integer() { return DecimalNumber<int64_t>("a whole number"); }

void RefuseEmptyValues(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    if (option->get_expected_min() == 0) continue;  // a flag
    option->check(CLI::Validator(
        [](std::string& text) {
          return text.empty() ? std::string("the value is empty") : text.substr(0, 0);
        },
        ""));
  }
}

void AddJsonFlag(CLI::App& command, Invocation& invocation) {
  command.add_flag("--json", invocation.json,
                   "Print the result as one JSON object on standard output");
}

void AddComputeFlags(CLI::App& command, ComputeOptions& options) {
  command
      .add_option("--threads", options.threads,
                  "Threads to use; results do not depend on it. Default: H3RT_THREADS, else all")
      ->check(CLI::Range(1, kMaxThreads));
  command
      .add_option("--device", options.device,
                  "auto, cpu or cuda[:N]; auto takes the first device that this build runs on")
      ->capture_default_str();
  command
      .add_option("--impl", options.impls,
                  "OP=NAME: run an op with a named implementation instead of the first that "
                  "supports the problem (repeatable), for example attention=ref")
      ->allow_extra_args(false);  // else it would swallow what stands behind it
}

absl::StatusOr<int> ResolveThreads(const ComputeOptions& options) {
  if (options.threads > 0) return options.threads;
  const std::optional<std::string> text = GetEnv(EnvVar::kThreads);
  if (!text) return ThreadPool::HardwareThreads();
  int threads = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), threads);
  if (error != std::errc() || end != text->data() + text->size() || threads < 1 ||
      threads > kMaxThreads) {
    return InvalidArgument({.what = "environment variable H3RT_THREADS",
                            .got = *text,
                            .wanted = "1 to " + std::to_string(kMaxThreads)});
  }
  return threads;
}

absl::Status CheckDevice(const ComputeOptions& options) {
  const std::string& device = options.device;
  if (device == "auto" || device == "cpu") return absl::OkStatus();
  int index = 0;
  bool valid = device == "cuda";
  if (device.rfind("cuda:", 0) == 0) {
    const auto [end, error] =
        std::from_chars(device.data() + 5, device.data() + device.size(), index);
    valid = error == std::errc() && end == device.data() + device.size() && index >= 0;
  }
  if (!valid) {
    return InvalidArgument({.what = "--device", .got = device, .wanted = "auto, cpu or cuda[:N]"});
  }
  H3RT_ASSIGN_OR_RETURN(const DeviceList list, ListDevices());
  if (static_cast<size_t>(index) >= list.devices.size()) {
    return FailedPrecondition({.what = "no such device",
                               .got = device,
                               .wanted = std::to_string(list.devices.size()) +
                                         " device(s) present" +
                                         (list.reason.empty() ? "" : ": " + list.reason)});
  }
  return Unimplemented({.what = "the model does not run on CUDA in this build",
                        .got = device,
                        .wanted = "--device cpu",
                        .where = "h3rt doctor lists what each device would need"});
}

absl::Status ParseSize(const std::string& text, int64_t& width, int64_t& height) {
  const char* const end = text.data() + text.size();
  const auto [after_width, width_error] = std::from_chars(text.data(), end, width);
  if (width_error == std::errc() && after_width != end && *after_width == 'x') {
    const auto [after_height, height_error] = std::from_chars(after_width + 1, end, height);
    if (height_error == std::errc() && after_height == end) return absl::OkStatus();
  }
  return InvalidArgument({.what = "--size", .got = text, .wanted = "WIDTHxHEIGHT, as 1344x768"});
}

CancelToken& GlobalCancel() {
  static CancelToken token;
  return token;
}

void InstallSignalHandler() {
  GlobalCancel();  // constructed before a signal can want it
  // Blocked in every thread (later ones inherit it) and taken by one that only waits. With a
  // handler, which runs on the stack of whatever it interrupts, about every third Ctrl-C inside
  // oneDNN 2.6's generated matrix kernels left a corrupt heap; this way none did.
  const sigset_t set = CancelSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::thread(WatchSignals).detach();
  // A closed pipe or a full disk is an error of a write, not the end of the process.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace h3rt::cli
