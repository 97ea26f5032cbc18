#include "h3rt/harness/compile.h"

#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <set>

#include "h3rt/base/file.h"
#include "h3rt/base/process.h"
#include "h3rt/base/version.h"
#include "h3rt/harness/environment.h"
#include "h3rt/lab/closure.h"
#include "h3rt/lab/scan.h"

namespace h3rt::lab {
namespace {
namespace fs = std::filesystem;

constexpr size_t kLogBytes = 64 << 10;
constexpr size_t kDiagnostics = 20;

struct Toolkit {
  std::string nvcc, compiler, ptxas;
};

absl::StatusOr<Toolkit> FindToolkit() {
  Toolkit toolkit;
  const std::optional<std::string> nvcc = FindCudaProgram("nvcc");
  if (!nvcc) {
    return FailedPrecondition({.what = "no nvcc here", .wanted = "CUDA 13 in PATH"});
  }
  toolkit.nvcc = *nvcc;
  H3RT_ASSIGN_OR_RETURN(toolkit.compiler, NvccVersion(*nvcc));
  const std::string beside = fs::path(*nvcc).parent_path() / "ptxas";
  H3RT_ASSIGN_OR_RETURN(toolkit.ptxas, NvccVersion(beside));
  return toolkit;
}

// A folder of its own that goes with it.
class WorkFolder {
 public:
  WorkFolder() {
    std::error_code error;
    const fs::path base = fs::temp_directory_path(error);
    std::string name = (error ? std::string(".") : base.string()) + "/h3rt-nvcc-XXXXXX";
    if (::mkdtemp(name.data())) path_ = name;
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  ~WorkFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

// "<folder>/tmpxft_000010a7_00000000-6_x.ptx" -> "x.ptx": the name says nothing, and differs each
// time. What is not UTF-8 text becomes '?'.
std::string CleanLog(std::string_view text, const std::string& folder) {
  std::string out;
  for (std::string_view line; TakeLine(text, line);) {
    std::string rest = Printable(line, line.size());
    for (size_t at; (at = rest.find(folder + "/")) != std::string::npos;) {
      size_t end = at + folder.size() + 1;
      if (rest.compare(end, 7, "tmpxft_") == 0) {
        const size_t dash = rest.find('-', end);
        const size_t bar = rest.find('_', dash);
        if (bar != std::string::npos) end = bar + 1;
      }
      rest.erase(at, end - at);
    }
    out += rest + "\n";
  }
  if (out.size() > kLogBytes) out.resize(kLogBytes);
  return out;
}

bool HasAny(const std::string& log, std::initializer_list<const char*> signs) {
  for (const char* sign : signs) {
    if (Contains(log, sign)) return true;
  }
  return false;
}

std::string OutcomeOf(const ProgramResult& run, const std::string& log) {
  if (run.timed_out) return "timeout";
  if (run.ok()) return "ok";
  if (run.signal == 9 || HasAny(log, {"bad_alloc", "out of memory", "Out of memory",
                                      "virtual memory exhausted", "Cannot allocate memory",
                                      "Memory allocation failure", "died due to signal 9"})) {
    return "oom";
  }
  if (run.signal != 0 || HasAny(log, {"died due to signal", "died with status", "nternal error",
                                      "internal compiler error", "Segmentation fault"})) {
    return "ice";
  }
  return "rejected";
}

std::vector<std::string> DiagnosticsOf(std::string_view log) {
  std::vector<std::string> lines;
  for (std::string_view line; TakeLine(log, line) && lines.size() < kDiagnostics;) {
    if (Contains(line, "error") || Contains(line, "fatal") || Contains(line, "warning")) {
      lines.emplace_back(line.substr(0, 400));
    }
  }
  return lines;
}

Doc NullIfEmpty(const std::string& text) { return text.empty() ? Doc(nullptr) : Doc(text); }

struct Subject {
  std::string experiment, vid, target;
  std::vector<std::string> sources;
  std::vector<const char*> kernels;  // empty: all
};

// What all evidence of one compilation has in common.
absl::StatusOr<Doc> EnvelopeOf(const Store& store, const Subject& subject, const CompileRun& run,
                               const std::string& policy_digest) {
  H3RT_ASSIGN_OR_RETURN(const std::string source, ClosureDigest(store, subject.sources));
  Doc environment = HostEnvironment();
  environment["class"]["toolkit"] = run.compiler;
  const BuildStamp& stamp = Stamp();
  return Doc{
      {"schema", "lab.evidence/1"},
      {"origin", "compiled"},
      {"word", "assembled"},
      {"experiment", subject.experiment},
      {"vid", subject.vid},
      {"target", subject.target},
      {"subject",
       {{"source_digest", source},
        {"source_paths", subject.sources},
        {"build_digest", BuildDigest(source, stamp.flags, run.compiler, stamp.host_compiler)},
        {"binary_sha256", nullptr},
        {"kernels", Doc::array()},
        {"baseline", nullptr}}},
      {"workload", nullptr},
      {"environment", environment},
      {"invocation",
       {{"argv", run.argv},
        {"start_us", run.start_ns / 1000},
        {"end_us", run.end_ns / 1000},
        {"exit_code", run.signal == 0 ? Doc(run.exit_code) : Doc(nullptr)},
        {"signal", run.signal == 0 ? Doc(nullptr) : Doc(run.signal)},
        {"peak_rss_bytes", run.peak_rss_bytes},
        {"peak_device_bytes", nullptr},
        {"variables", Doc::object()}}},
      {"harness",
       {{"version", kVersion},
        {"source_digest", NullIfEmpty(stamp.harness_digest)},
        {"commit", NullIfEmpty(stamp.commit)},
        {"dirty_digest", NullIfEmpty(stamp.dirty_digest)},
        {"policy_digest", NullIfEmpty(policy_digest)}}},
      {"plan", nullptr},
      {"blobs", Doc::array()}};
}

// The kernels of a compilation, in the form of a `resource` body, without those of other arms.
absl::StatusOr<Doc> ResourcesOf(const CompileRun& run, const Subject& subject, const Doc& policy) {
  const Doc& architecture = At(At(policy, "architectures"), subject.target);
  std::set<std::string> wanted(subject.kernels.begin(), subject.kernels.end()), seen;
  Doc kernels = Doc::array();
  for (const CubinKernel& code : run.cubin.kernels) {
    const std::string name = KernelName(code.symbol);
    if (!wanted.empty() && !wanted.count(name)) continue;
    seen.insert(name);
    const PtxasKernel* used = nullptr;
    for (const PtxasKernel& entry : run.resources) {
      if (entry.symbol == code.symbol && entry.target == subject.target) used = &entry;
    }
    if (!used) {
      return DataLoss({.what = "ptxas does not report a kernel", .got = code.symbol});
    }
    Doc kernel = {{"symbol", code.symbol},
                  {"code_sha256", code.code_sha256},
                  {"code_bytes", code.code_bytes},
                  {"registers", used->registers},
                  {"stack_bytes", used->stack_bytes},
                  {"spill_store_bytes", used->spill_store_bytes},
                  {"spill_load_bytes", used->spill_load_bytes},
                  {"static_shared_bytes", used->static_shared_bytes},
                  {"constant_bytes", code.constant_bytes},
                  {"barriers", used->barriers},
                  {"max_threads", code.max_threads},
                  {"ctas_per_sm", nullptr},
                  {"limiter", nullptr}};
    if (architecture.is_object()) {
      const Occupancy fit =
          OccupancyOf(architecture, code.max_threads, used->registers, used->static_shared_bytes);
      kernel["ctas_per_sm"] = fit.ctas;
      kernel["limiter"] = fit.limiter;
    }
    kernels.push_back(std::move(kernel));
  }
  for (const std::string& name : wanted) {
    if (!seen.count(name)) {
      return InvalidArgument({.what = "a declared kernel is not in the compiled sources",
                              .got = name,
                              .where = subject.target});
    }
  }
  return kernels;
}

struct Expectation {
  bool rejected = false;
  Doc control = nullptr;
};

// Compile evidence, and resource evidence when there is code.
absl::Status AddEvidence(const Store& store, const Subject& subject, const CompileRun& run,
                         const Expectation& expected, const Doc& policy,
                         const std::string& policy_digest, std::vector<NewEvidence>& out) {
  H3RT_ASSIGN_OR_RETURN(Doc envelope, EnvelopeOf(store, subject, run, policy_digest));
  Doc kernels = Doc::array();
  if (run.outcome == "ok") {
    H3RT_ASSIGN_OR_RETURN(kernels, ResourcesOf(run, subject, policy));
    for (const Doc& kernel : kernels) {
      envelope["subject"]["kernels"].push_back(
          {{"symbol", kernel["symbol"]}, {"code_sha256", kernel["code_sha256"]}});
    }
  }
  NewEvidence compile{envelope, {{"compile.log", run.log}}};
  compile.envelope["kind"] = "compile";
  compile.envelope["body"] = {
      {"outcome", run.outcome},         {"expected", expected.rejected ? "rejected" : "ok"},
      {"diagnostics", run.diagnostics}, {"flags", Stamp().flags},
      {"compiler", run.compiler},       {"ptxas", run.ptxas},
      {"wall_ns", run.wall_ns},         {"control", expected.control}};
  out.push_back(std::move(compile));
  if (kernels.empty()) return absl::OkStatus();
  NewEvidence resource{std::move(envelope), {{"compile.log", run.log}}};
  resource.envelope["kind"] = "resource";
  resource.envelope["body"] = {{"compiler", run.compiler},
                               {"ptxas", run.ptxas},
                               {"flags", Stamp().flags},
                               {"kernels", std::move(kernels)}};
  out.push_back(std::move(resource));
  return absl::OkStatus();
}

const char* NameOf(CompileProbe::Outcome outcome) {
  return outcome == CompileProbe::Outcome::kOk ? "ok" : "rejected";
}

int64_t SpillBytes(const CompileRun& run) {
  int64_t bytes = 0;
  for (const PtxasKernel& kernel : run.resources) {
    bytes += kernel.spill_store_bytes + kernel.spill_load_bytes;
  }
  return bytes;
}

// A rejection that does not say what was expected is a fault of the probe, not a result.
absl::Status CheckRejection(const CompileProbe& probe, const std::string& target,
                            const CompileRun& run) {
  if (run.outcome != "rejected" || std::string_view(probe.diagnostic).empty() ||
      Contains(run.log, probe.diagnostic)) {
    return absl::OkStatus();
  }
  return FailedPrecondition({.what = "rejected for another reason than the expected",
                             .got = run.diagnostics.empty() ? "no diagnostic" : run.diagnostics[0],
                             .wanted = probe.diagnostic,
                             .where = std::string(probe.source) + " for " + target});
}

absl::Status RunProbe(const Store& store, const Experiment& experiment, const CompileProbe& probe,
                      const Doc& policy, const RunRequest& request, const CompileLimits& limits,
                      std::vector<NewEvidence>& out) {
  H3RT_ASSIGN_OR_RETURN(const CompileRun run,
                        CompileFor(store, probe.source, probe.target, limits));
  H3RT_RETURN_IF_ERROR(CheckRejection(probe, probe.target, run));
  Expectation expected{probe.expected == CompileProbe::Outcome::kRejected};
  const Subject subject{experiment.id, probe.vid, probe.target, {probe.source}, {}};
  if (std::string_view(probe.control_target).empty()) {
    return AddEvidence(store, subject, run, expected, policy, request.policy_digest, out);
  }
  H3RT_ASSIGN_OR_RETURN(const CompileRun control,
                        CompileFor(store, probe.source, probe.control_target, limits));
  H3RT_RETURN_IF_ERROR(CheckRejection(probe, probe.control_target, control));
  expected.control = {{"target", probe.control_target},
                      {"outcome", control.outcome},
                      {"expected", NameOf(probe.control_expected)}};
  H3RT_RETURN_IF_ERROR(
      AddEvidence(store, subject, run, expected, policy, request.policy_digest, out));
  if (!probe.expect_spill) return absl::OkStatus();
  if (SpillBytes(run) == 0 || SpillBytes(control) == 0) {
    return FailedPrecondition({.what = "a planted spill was not reported",
                               .where = std::string(probe.source) + " for " + probe.target +
                                        " and " + probe.control_target});
  }
  const Expectation crossed{
      probe.control_expected == CompileProbe::Outcome::kRejected,
      {{"target", probe.target}, {"outcome", run.outcome}, {"expected", NameOf(probe.expected)}}};
  Subject other = subject;
  other.target = probe.control_target;
  return AddEvidence(store, other, control, crossed, policy, request.policy_digest, out);
}

// The arm's sources one after another; the worst outcome is that of all.
absl::StatusOr<CompileRun> CompileArm(const Store& store, const Subject& subject,
                                      const CompileLimits& limits) {
  CompileRun all;
  for (const std::string& source : subject.sources) {
    H3RT_ASSIGN_OR_RETURN(CompileRun run, CompileFor(store, source, subject.target, limits));
    if (all.outcome.empty()) {
      all = std::move(run);
    } else {
      all.log += run.log;
      all.wall_ns += run.wall_ns;
      all.end_ns = run.end_ns;
      all.peak_rss_bytes = std::max(all.peak_rss_bytes, run.peak_rss_bytes);
      all.diagnostics.insert(all.diagnostics.end(), run.diagnostics.begin(), run.diagnostics.end());
      all.resources.insert(all.resources.end(), run.resources.begin(), run.resources.end());
      all.cubin.kernels.insert(all.cubin.kernels.end(), run.cubin.kernels.begin(),
                               run.cubin.kernels.end());
      all.argv.push_back(source);
      all.outcome = run.outcome;
      all.exit_code = run.exit_code;
      all.signal = run.signal;
    }
    if (all.outcome != "ok") break;
  }
  return all;
}

absl::StatusOr<Subject> SubjectOf(const Experiment& experiment, const RunRequest& request) {
  const ExperimentArm* arm = nullptr;
  const size_t candidate = std::min<size_t>(experiment.arms.size() - 1, 1);
  if (request.vid.empty()) arm = &experiment.arms[candidate];
  for (const ExperimentArm& other : experiment.arms) {
    if (request.vid == other.vid) arm = &other;
  }
  if (!arm) {
    return NotFound({.what = "no such variant", .got = request.vid, .where = experiment.id});
  }
  Subject subject{experiment.id, arm->vid, {}, {}, arm->kernels};
  for (const std::string source : arm->sources) {
    if (fs::path(source).extension() == ".cu") subject.sources.push_back(source);
  }
  if (subject.sources.empty()) {
    return FailedPrecondition(
        {.what = "no device source to compile", .got = arm->vid, .where = experiment.id});
  }
  return subject;
}

}  // namespace

absl::StatusOr<CompileRun> CompileFor(const Store& store, const std::string& source,
                                      const std::string& target, const CompileLimits& limits) {
  if (!IsPlainPath(source) || ArchitectureOf(target) == 0) {
    return InvalidArgument({.what = "nothing to compile", .got = source + " for " + target});
  }
  if (!fs::is_regular_file(store.PathOf(source))) {
    return NotFound({.what = "no such source", .got = source});
  }
  H3RT_ASSIGN_OR_RETURN(const Toolkit toolkit, FindToolkit());
  const WorkFolder folder;
  if (folder.path().empty()) return IoError({.what = "cannot make a temporary folder"});
  const std::string output = folder.path() + "/kernel.cubin";
  std::vector<std::string> argv = Words(Stamp().flags);
  argv.insert(argv.begin(), toolkit.nvcc);
  argv.insert(argv.end(), {"--generate-code=arch=compute_" + target.substr(3) + ",code=" + target,
                           "-I.", "-cubin", "-o", output, source});
  H3RT_ASSIGN_OR_RETURN(const ProgramResult run,
                        RunProgram(argv, {.timeout_ms = limits.timeout_ms,
                                          .address_space_bytes = limits.address_space_bytes,
                                          .folder = store.root,
                                          .variables = {{"TMPDIR", folder.path()}, {"LC_ALL", "C"}},
                                          .cancel = limits.cancel}));
  CompileRun done;
  done.log = CleanLog(run.out + run.err, folder.path());
  done.outcome = OutcomeOf(run, done.log);
  done.diagnostics = DiagnosticsOf(done.log);
  // nvcc that cannot find its parts or the host's compiler says nothing of the source.
  if (done.outcome == "rejected" && Contains(done.log, "nvcc fatal") &&
      !Contains(done.log, "Unsupported gpu architecture")) {
    return FailedPrecondition({.what = "nvcc cannot work here",
                               .got = done.diagnostics.empty() ? "" : done.diagnostics[0]});
  }
  argv[0] = "nvcc";
  argv[argv.size() - 2] = "kernel.cubin";
  done.argv = std::move(argv);
  done.compiler = toolkit.compiler;
  done.ptxas = toolkit.ptxas;
  done.exit_code = run.exit_code;
  done.signal = run.signal;
  done.start_ns = run.start_ns;
  done.end_ns = run.end_ns;
  done.wall_ns = run.wall_ns;
  done.peak_rss_bytes = run.peak_rss_bytes;
  if (done.outcome != "ok") return done;
  H3RT_ASSIGN_OR_RETURN(const std::string code, ReadFile(output));
  H3RT_ASSIGN_OR_RETURN(done.cubin, ParseCubin(code, source));
  // A source of host code alone: what launches the kernels of others.
  if (done.cubin.kernels.empty()) return done;
  Findings findings;
  done.resources = ParsePtxasLog(done.log, source, findings);
  if (findings.errors() > 0) {
    return DataLoss({.what = "ptxas's report",
                     .got = findings.Sorted()[0].message,
                     .where = source + " for " + target});
  }
  return done;
}

Occupancy OccupancyOf(const Doc& architecture, int64_t threads, int64_t registers,
                      int64_t shared_bytes) {
  const auto up = [](int64_t value, int64_t step) { return (value + step - 1) / step * step; };
  const int64_t warps = up(std::max<int64_t>(threads, 1), 32) / 32;
  // Registers are handed out to warps in steps of 256, from the four quarters of an SM.
  const int64_t of_warp = up(std::max<int64_t>(registers, 1) * 32, 256);
  const int64_t by_registers = IntAt(architecture, "registers_per_sm") / 4 / of_warp * 4 / warps;
  const int64_t shared =
      up(shared_bytes + IntAt(architecture, "shared_per_cta_reserved_bytes"), 128);
  const int64_t by_shared =
      IntAt(architecture, "shared_per_sm_bytes") / std::max<int64_t>(shared, 1);
  const int64_t by_threads = IntAt(architecture, "max_threads_per_sm") / (warps * 32);
  Occupancy fit{IntAt(architecture, "max_ctas_per_sm"), "ctas"};
  if (by_threads < fit.ctas) fit = {by_threads, "threads"};
  if (by_shared < fit.ctas) fit = {by_shared, "shared"};
  if (by_registers < fit.ctas) fit = {by_registers, "registers"};
  return fit;
}

absl::StatusOr<std::vector<NewEvidence>> RunBuildGate(const Store& store,
                                                      const Experiment& experiment,
                                                      const RunRequest& request,
                                                      const CompileLimits& limits) {
  Findings findings;
  const Doc policy = LoadPolicy(store, findings).value_or(Doc());
  std::vector<NewEvidence> out;
  for (const CompileProbe& probe : experiment.probes) {
    if (!request.vid.empty() && request.vid != probe.vid) continue;
    if (!request.target.empty() && request.target != probe.target) continue;
    H3RT_RETURN_IF_ERROR(RunProbe(store, experiment, probe, policy, request, limits, out));
  }
  if (!experiment.arms.empty()) {
    H3RT_ASSIGN_OR_RETURN(Subject subject, SubjectOf(experiment, request));
    std::vector<std::string> targets(experiment.targets.begin(), experiment.targets.end());
    if (!request.target.empty()) targets = {request.target};
    for (const std::string& target : targets) {
      subject.target = target;
      H3RT_ASSIGN_OR_RETURN(const CompileRun run, CompileArm(store, subject, limits));
      H3RT_RETURN_IF_ERROR(
          AddEvidence(store, subject, run, {}, policy, request.policy_digest, out));
    }
  }
  if (out.empty()) {
    return NotFound({.what = "nothing to compile",
                     .got = request.vid + " for " + request.target,
                     .where = experiment.id});
  }
  return out;
}

Recompile NvccRecompile(const Store& store) {
  if (!FindCudaProgram("nvcc")) return nullptr;
  auto done = std::make_shared<std::map<std::string, absl::StatusOr<KernelCode>>>();
  return [store, done](const Doc& envelope) -> absl::StatusOr<KernelCode> {
    const Doc& paths = At(At(envelope, "subject"), "source_paths");
    const std::string target = TextAt(envelope, "target");
    const std::string key = target + " " + paths.dump();
    const auto found = done->find(key);
    if (found != done->end()) return found->second;
    Subject subject;
    subject.target = target;
    for (const Doc& path : paths) {
      const std::string source = path.is_string() ? path.get<std::string>() : "";
      if (fs::path(source).extension() == ".cu") subject.sources.push_back(source);
    }
    const absl::StatusOr<CompileRun> run = CompileArm(store, subject, {});
    absl::StatusOr<KernelCode> result = KernelCode();
    if (run.ok()) {
      result = CodeOfKernels(run->cubin.kernels);
    } else {
      result = run.status();
    }
    done->emplace(key, result);
    return result;
  };
}

Toolchain LocalToolchain(const Store& store) {
  Toolchain toolchain{.recompile = NvccRecompile(store)};
  const BuildStamp& stamp = Stamp();
  if (stamp.toolkit.empty()) return toolchain;
  toolchain.build_digest = [&stamp](const std::string& source_digest) {
    return BuildDigest(source_digest, stamp.flags, stamp.toolkit, stamp.host_compiler);
  };
  return toolchain;
}

}  // namespace h3rt::lab
