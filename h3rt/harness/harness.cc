// The side of the harness that starts fresh processes and packs what they answer.
#include "h3rt/harness/harness.h"

#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>

#include "h3rt/base/file.h"
#include "h3rt/base/log.h"
#include "h3rt/harness/envelope.h"
#include "h3rt/harness/gpu.h"
#include "h3rt/harness/harness_run.h"
#include "h3rt/harness/host.h"
#include "h3rt/harness/inputs.h"
#include "h3rt/lab/tool_logs.h"

namespace h3rt::lab {
namespace {
namespace fs = std::filesystem;

using Level = ExperimentWorkload::Level;

constexpr size_t kMostLogBytes = 64 << 10;
// What a profile holds: time, traffic, and what limits a kernel.
constexpr char kMetrics[] =
    "gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum,"
    "dram__throughput.avg.pct_of_peak_sustained_elapsed,lts__t_bytes.sum,"
    "sm__warps_active.avg.pct_of_peak_sustained_active,"
    "sm__throughput.avg.pct_of_peak_sustained_elapsed,smsp__inst_executed.sum,"
    "smsp__inst_executed_op_local_ld.sum,smsp__inst_executed_op_local_st.sum,"
    "launch__registers_per_thread,launch__occupancy_limit_registers";

std::string Cut(const std::string& text) { return text.substr(0, kMostLogBytes); }

// A fresh folder for requests and answers, gone at the end.
class Workspace {
 public:
  Workspace() {
    std::error_code error;
    std::string name = (fs::temp_directory_path(error) / "h3rt-lab-XXXXXX").string();
    if (!error && ::mkdtemp(name.data()) != nullptr) folder_ = name;
  }
  ~Workspace() {
    std::error_code error;
    if (!folder_.empty()) fs::remove_all(folder_, error);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  bool ok() const { return !folder_.empty(); }
  std::string NextFile() { return folder_ + "/request" + std::to_string(count_++); }

 private:
  std::string folder_;
  int count_ = 0;
};

// What came of one child.
struct Ended {
  Doc request;
  ProgramResult run;
  Doc answer;           // null when it wrote none
  std::string samples;  // packed
  bool ok() const { return run.ok() && BoolAt(answer, "ok"); }
  const Doc& result() const { return At(answer, "result"); }
};

class Run {
 public:
  Run(const HarnessPrograms& programs, const Store& store, const Experiment& experiment,
      const RunRequest& request, const CancelToken& cancel)
      : programs_(programs),
        experiment_(experiment),
        request_(request),
        cancel_(cancel),
        host_(IsHostExperiment(experiment)) {
    if (host_) target_ = "host";
    // The peak rates of the target; a machine without the repository goes without them.
    Findings ignored;
    if (const std::optional<Doc> policy = LoadPolicy(store, ignored)) policy_ = *policy;
  }

  absl::Status Choose() {
    if (experiment_.arms.size() < 2) {
      return InvalidArgument({.what = "an experiment of the compiler alone",
                              .got = experiment_.id,
                              .wanted = "gate build"});
    }
    baseline_ = &experiment_.arms[0];
    for (const ExperimentArm& arm : experiment_.arms) {
      if (request_.vid.empty() ? &arm == &experiment_.arms[1] : request_.vid == arm.vid) {
        candidate_ = &arm;
      }
    }
    if (candidate_ == nullptr) {
      return NotFound({.what = "no such variant", .got = request_.vid, .where = experiment_.id});
    }
    if (candidate_->run == nullptr) {
      return FailedPrecondition({.what = "this build holds no device code",
                                 .wanted = "one configured with -DH3RT_CUDA=ON"});
    }
    if (!workspace_.ok()) return IoError({.what = "no temporary folder can be made"});
    return absl::OkStatus();
  }

  absl::Status Gate(std::string_view gate) {
    if (gate == "correct") {
      if (Wants("parity")) H3RT_RETURN_IF_ERROR(Parity());
      // They watch devices only.
      if (Wants("sanitizer") && !host_) H3RT_RETURN_IF_ERROR(Sanitizers());
    } else if (gate == "isolated") {
      if (Wants("timing_pair")) H3RT_RETURN_IF_ERROR(Pairs());
      if (request_.kind == "profile" && !host_) H3RT_RETURN_IF_ERROR(Profile());
      if (request_.kind == "timing_single") H3RT_RETURN_IF_ERROR(Singles());
    }
    return absl::OkStatus();
  }

  std::vector<NewEvidence> Take() { return std::move(evidence_); }

 private:
  bool Wants(std::string_view kind) const { return request_.kind.empty() || request_.kind == kind; }

  // Runs a child, behind `prefix` when another tool watches it.
  absl::StatusOr<Ended> Child(Doc task, const std::vector<std::string>& prefix = {}) {
    if (cancel_.cancelled()) return Cancelled("lab run");
    task["experiment"] = experiment_.id;
    const std::string file = workspace_.NextFile();
    H3RT_RETURN_IF_ERROR(WriteFileAtomically(file, CanonicalText(task)));
    std::vector<std::string> argv = prefix;
    argv.insert(argv.end(), programs_.child.begin(), programs_.child.end());
    argv.push_back(file);
    LogInfo("lab run: " + CanonicalText(task));
    ProgramOptions options;
    options.timeout_ms = programs_.timeout_ms;
    options.cancel = &cancel_;
    Ended ended;
    ended.request = std::move(task);
    H3RT_ASSIGN_OR_RETURN(ended.run, RunProgram(argv, options));
    Findings findings;
    if (const auto text = ReadFile(file + kAnswerSuffix, uint64_t{64} << 20); text.ok()) {
      if (const auto answer = ParseDocument(*text, "answer", 1, findings)) ended.answer = *answer;
    }
    if (const auto samples = ReadFile(file + kSamplesSuffix); samples.ok()) {
      ended.samples = *samples;
    }
    if (const Doc& target = At(ended.answer, "target"); target.is_string() && target != "") {
      target_ = target.get<std::string>();
      environment_ = At(ended.answer, "environment");
    }
    // Without a device or a tool nothing was tried: that is no result of the candidate.
    if (ended.run.ok() && !ended.ok() &&
        IntAt(ended.answer, "code") ==
            static_cast<int64_t>(absl::StatusCode::kFailedPrecondition)) {
      return absl::FailedPreconditionError(TextAt(ended.answer, "message"));
    }
    return ended;
  }

  // The envelope of what `first` to `last` did.
  Doc Envelope(const char* kind, const Ended& first, const Ended& last) const {
    return EnvelopeOf({.kind = kind,
                       .experiment = experiment_.id,
                       .arm = candidate_,
                       .target = target_.empty() ? request_.target : target_,
                       .environment = environment_,
                       .argv = {"h3rt", "lab", "child", CanonicalText(last.request)},
                       .start_us = first.run.start_ns / 1000,
                       .end_us = last.run.end_ns / 1000,
                       .exit_code = last.run.exit_code,
                       .signal = last.run.signal,
                       .peak_rss_bytes = last.run.peak_rss_bytes,
                       .policy_digest = request_.policy_digest});
  }

  // A child that crashed, hung, ran out of memory or answered nothing.
  void Failure(const Ended& ended) {
    const auto code = static_cast<absl::StatusCode>(IntAt(ended.answer, "code"));
    std::string message = TextAt(ended.answer, "message");
    const bool driver = message.find("CUDA failed while") != std::string::npos;
    std::string outcome = "host_fault";
    if (ended.run.timed_out) {
      outcome = "timeout";
      message = "the process did not end in time";
    } else if (ended.run.signal != 0) {
      outcome = "crash";
      message = "the process ended by signal " + std::to_string(ended.run.signal);
    } else if (!ended.answer.is_object()) {
      outcome = "crash";
      message = "the process ended with exit code " + std::to_string(ended.run.exit_code) +
                " and without an answer";
    } else if (code == absl::StatusCode::kResourceExhausted) {
      outcome = driver ? "device_oom" : "host_oom";
    } else if (driver) {
      outcome = "driver";
    }
    LogWarning("lab run: " + outcome + ": " + message);
    NewEvidence evidence{Envelope("failure", ended, ended),
                         {{"log", Cut(ended.run.out + ended.run.err)}}};
    evidence.envelope["body"] = {{"outcome", outcome},
                                 {"message", message.substr(0, 4000)},
                                 {"peak_bytes", nullptr},
                                 {"retry", "when the source, the toolkit or the driver changes"}};
    evidence_.push_back(std::move(evidence));
  }

  absl::Status Parity() {
    bool repeated = false;
    for (const ExperimentCheck& check : experiment_.checks) {
      if (std::string_view(check.against) == candidate_->vid) continue;
      // Launches repeat the same way whatever they are compared with.
      const int64_t launches = repeated ? 0 : request_.repeat_launches;
      H3RT_ASSIGN_OR_RETURN(const Ended ended, Child({{"task", "parity"},
                                                      {"vid", candidate_->vid},
                                                      {"against", check.against},
                                                      {"repeat_launches", launches}}));
      if (!ended.ok()) {
        Failure(ended);
        continue;
      }
      repeated = true;
      NewEvidence evidence{Envelope("parity", ended, ended), {}};
      evidence.envelope["body"] = ended.result();
      // What the comparator was shown before it compared.
      evidence.blobs["comparator_selftest"] =
          CanonicalText(At(ended.result(), "comparator_selftest"));
      evidence.envelope["body"].erase("comparator_selftest");
      evidence_.push_back(std::move(evidence));
    }
    return absl::OkStatus();
  }

  absl::Status Sanitizers() {
    if (programs_.sanitizer.empty()) {
      return FailedPrecondition({.what = "compute-sanitizer was not found"});
    }
    std::vector<std::string> tools = {"memcheck", "racecheck"};
    if (experiment_.uses_async) tools.insert(tools.end(), {"initcheck", "synccheck"});
    for (const std::string& tool : tools) H3RT_RETURN_IF_ERROR(Sanitize(tool));
    return absl::OkStatus();
  }

  absl::Status Sanitize(const std::string& tool) {
    const std::vector<std::string> prefix = {programs_.sanitizer, "--tool", tool, "--print-limit",
                                             "100"};
    // The control first, by the same program with the same options.
    H3RT_ASSIGN_OR_RETURN(const Ended control, Child({{"task", "plant"}, {"tool", tool}}, prefix));
    H3RT_ASSIGN_OR_RETURN(
        const Ended ended,
        Child({{"task", "launch"}, {"vid", candidate_->vid}, {"canonical", false}}, prefix));
    if (!ended.ok()) {
      Failure(ended);
      return absl::OkStatus();
    }
    const std::string text = ended.run.out + ended.run.err;
    const std::string control_text = control.run.out + control.run.err;
    Findings findings, control_findings;
    const auto log = ParseSanitizerLog(text, tool, findings);
    const auto planted = ParseSanitizerLog(control_text, tool, control_findings);
    if (!log) {
      return FailedPrecondition({.what = "the log of compute-sanitizer proves nothing",
                                 .got = Findings::ToText(findings.Sorted().at(0)),
                                 .where = tool});
    }
    const auto count = [](int64_t n) { return n < 0 ? Doc() : Doc(n); };
    NewEvidence evidence{Envelope("sanitizer", control, ended),
                         {{"log", Cut(text)}, {"control.log", Cut(control_text)}}};
    evidence.envelope["body"] = {
        {"tool", tool},
        {"version", VersionOf(programs_.sanitizer)},
        {"errors", log->errors},
        {"hazards_displayed", count(log->hazards_displayed)},
        {"hazards_total", count(log->hazards_total)},
        {"kernels", At(ended.result(), "kernels")},
        {"control", {{"planted", true}, {"found", planted && planted->errors > 0}}},
        {"log", "log"}};
    evidence_.push_back(std::move(evidence));
    return absl::OkStatus();
  }

  std::string VersionOf(const std::string& program) {
    const auto run = RunProgram({program, "--version"}, {.timeout_ms = 60000});
    if (!run.ok()) return "not told";
    const size_t at = run->out.find("Version ");
    if (at == std::string::npos) return "not told";
    return run->out.substr(at, run->out.find('\n', at) - at);
  }

  Doc WorkloadDoc(const ExperimentWorkload& workload, const Doc& input_digests) const {
    Doc dims = Doc::object();
    for (size_t i = 0; i < workload.dims.size(); ++i) {
      dims[experiment_.dim_names[i]] = workload.dims[i];
    }
    Doc dtypes = Doc::object();
    for (const ExperimentTensor& tensor : experiment_.tensors(workload.dims)) {
      dtypes[tensor.name] = NameOf(tensor.type);
    }
    return {{"id", workload.id},
            {"level", NameOf(workload.level)},
            {"dims", dims},
            {"dtypes", dtypes},
            {"generator", kInputGenerator},
            {"seed", static_cast<int64_t>(workload.seed)},
            {"input_sha256", input_digests},
            {"calls", workload.calls}};
  }

  absl::Status Pairs() {
    if (candidate_ == baseline_) {
      return InvalidArgument({.what = "variant of a timing pair",
                              .got = candidate_->vid,
                              .wanted = "another than the baseline"});
    }
    if (host_ && request_.processes < kHostProcesses) {
      return InvalidArgument({.what = "processes of a host timing",
                              .got = std::to_string(request_.processes),
                              .wanted = std::to_string(kHostProcesses) + " or more, by the plan"});
    }
    for (const ExperimentWorkload& workload : experiment_.workloads) {
      if (workload.level == Level::kCanonical) H3RT_RETURN_IF_ERROR(Pair(workload));
    }
    return absl::OkStatus();
  }

  absl::Status Pair(const ExperimentWorkload& workload) {
    std::random_device random;
    std::vector<Ended> children;
    for (int64_t process = 0; process < request_.processes; ++process) {
      const int64_t batch = children.empty() ? 0 : IntAt(children[0].result(), "batch");
      H3RT_ASSIGN_OR_RETURN(Ended ended, Child({{"task", "time"},
                                                {"vid", candidate_->vid},
                                                {"baseline", baseline_->vid},
                                                {"workload", workload.id},
                                                {"quads", request_.quads},
                                                {"process", process},
                                                {"batch", batch},
                                                {"candidate_first", random() % 2 == 0}}));
      if (!ended.ok() || ended.samples.empty()) {
        // All or nothing: a pair of fewer processes than planned is another experiment.
        Failure(ended);
        return absl::OkStatus();
      }
      children.push_back(std::move(ended));
    }
    if (children.empty()) return InvalidArgument({.what = "processes", .got = "0"});
    return PackPair(workload, children);
  }

  // The candidate alone: says how it varies, and serves no gate.
  absl::Status Singles() {
    if (!host_) return Unimplemented({.what = "timing_single on a GPU", .where = experiment_.id});
    for (const ExperimentWorkload& workload : experiment_.workloads) {
      if (workload.level != Level::kCanonical) continue;
      H3RT_ASSIGN_OR_RETURN(const Ended ended, Child({{"task", "single"},
                                                      {"vid", candidate_->vid},
                                                      {"workload", workload.id},
                                                      {"samples", 4 * request_.quads}}));
      std::string reason;
      const std::vector<Sample> samples = UnpackSamples(ended.samples, reason);
      if (!ended.ok() || samples.empty()) {
        Failure(ended);
        continue;
      }
      H3RT_ASSIGN_OR_RETURN(const Doc digests, InputDigests(experiment_, workload));
      NewEvidence evidence{Envelope("timing_single", ended, ended), {{"samples", ended.samples}}};
      evidence.envelope["workload"] = WorkloadDoc(workload, digests);
      evidence.envelope["body"] = {{"arm", candidate_->vid},
                                   {"samples_blob", "samples"},
                                   {"unit", "ns"},
                                   {"statistics", SingleStatisticsDoc(samples)}};
      for (const char* key : {"mode", "batch", "timer", "tick_ns", "warmups"}) {
        evidence.envelope["body"][key] = At(ended.result(), key);
      }
      evidence_.push_back(std::move(evidence));
    }
    return absl::OkStatus();
  }

  absl::Status PackPair(const ExperimentWorkload& workload, const std::vector<Ended>& children) {
    H3RT_ASSIGN_OR_RETURN(const Doc digests, InputDigests(experiment_, workload));
    std::string packed;
    Doc audits = Doc::array();
    Doc processes = Doc::array();
    std::vector<double> copies;
    int64_t tick_ns = 0;
    for (const Ended& child : children) {
      const Doc& facts = child.result();
      packed += child.samples;
      audits.push_back(At(facts, "audits"));
      processes.push_back({{"boot_id_sha256", At(At(environment_, "instance"), "boot_id_sha256")},
                           {"pid", IntAt(child.answer, "pid")},
                           {"start_us", IntAt(child.answer, "start_us")}});
      copies.push_back(static_cast<double>(IntAt(facts, "copy_bytes_per_s")));
      tick_ns = std::max(tick_ns, IntAt(facts, "tick_ns"));
    }
    std::string reason;
    const std::vector<Sample> samples = UnpackSamples(packed, reason);
    if (samples.empty()) return DataLoss({.what = "samples of the children", .got = reason});
    const Doc& facts = children[0].result();
    const auto whole = [](double value) { return static_cast<int64_t>(std::llround(value)); };
    const Doc& peaks = At(At(policy_, "architectures"), target_);
    const auto seed = static_cast<uint64_t>(children[0].run.start_ns);
    NewEvidence evidence{Envelope("timing_pair", children.front(), children.back()),
                         {{"samples", packed}}};
    evidence.envelope["subject"]["baseline"] = SubjectOf(*baseline_, target_);
    evidence.envelope["plan"] = request_.plan;
    evidence.envelope["workload"] = WorkloadDoc(workload, digests);
    evidence.envelope["body"] = {
        {"design", "abba"},
        {"baseline", baseline_->vid},
        {"candidate", candidate_->vid},
        {"processes", static_cast<int64_t>(children.size())},
        {"quads", request_.quads},
        {"mode", At(facts, "mode")},
        {"batch", At(facts, "batch")},
        {"timer", At(facts, "timer")},
        {"tick_ns", tick_ns},
        {"warmups", At(facts, "warmups")},
        {"calls", workload.calls},
        {"bytes", whole(experiment_.least_bytes(workload.dims))},
        {"operations", whole(experiment_.least_operations(workload.dims))},
        {"copy_bytes_per_s", whole(Median(copies))},
        {"peak_bytes_per_s", peaks.is_object() ? At(peaks, "peak_bytes_per_s") : Doc()},
        {"peak_ops_per_s", peaks.is_object() ? At(peaks, "peak_ops_per_s") : Doc()},
        {"samples_blob", "samples"},
        {"process_ids", processes},
        {"audits", audits},
        {"statistics", PairStatisticsDoc(AnalysePair(samples, seed))}};
    evidence_.push_back(std::move(evidence));
    return absl::OkStatus();
  }

  absl::Status Profile() {
    if (programs_.profiler.empty()) return FailedPrecondition({.what = "ncu was not found"});
    std::string names;
    for (const std::string_view kernel : candidate_->kernels) {
      names += (names.empty() ? "regex:" : "|") + std::string(kernel.substr(kernel.rfind(':') + 1));
    }
    const std::vector<std::string> prefix = {
        programs_.profiler, "--csv",  "--clock-control", "none",
        "--metrics",        kMetrics, "--kernel-name",   names};
    H3RT_ASSIGN_OR_RETURN(
        const Ended ended,
        Child({{"task", "launch"}, {"vid", candidate_->vid}, {"canonical", true}}, prefix));
    if (!ended.ok()) {
      Failure(ended);
      return absl::OkStatus();
    }
    Findings findings;
    const std::vector<Doc> launches = ParseNcuCsv(ended.run.out, "ncu", findings);
    if (launches.empty() || findings.errors() > 0) {
      return FailedPrecondition({.what = "the report of ncu cannot be used",
                                 .got = findings.Sorted().empty()
                                            ? "no launch"
                                            : Findings::ToText(findings.Sorted()[0])});
    }
    for (const Doc& launch : launches) {
      NewEvidence evidence{Envelope("profile", ended, ended), {{"report", Cut(ended.run.out)}}};
      evidence.envelope["body"] = {{"tool", "ncu"},
                                   {"version", VersionOf(programs_.profiler)},
                                   {"kernel", At(launch, "kernel")},
                                   {"metrics", At(launch, "metrics")},
                                   {"report", "report"}};
      for (const ExperimentWorkload& workload : experiment_.workloads) {
        if (workload.level != Level::kCanonical) continue;
        H3RT_ASSIGN_OR_RETURN(const Doc digests, InputDigests(experiment_, workload));
        evidence.envelope["workload"] = WorkloadDoc(workload, digests);
      }
      evidence_.push_back(std::move(evidence));
    }
    return absl::OkStatus();
  }

  const HarnessPrograms& programs_;
  const Experiment& experiment_;
  const RunRequest& request_;
  const CancelToken& cancel_;
  const bool host_;
  Doc policy_;
  Workspace workspace_;
  const ExperimentArm* baseline_ = nullptr;
  const ExperimentArm* candidate_ = nullptr;
  std::string target_;  // of the device, as the last child named it
  Doc environment_;
  std::vector<NewEvidence> evidence_;
};

}  // namespace

HarnessPrograms ThisProgram() {
  HarnessPrograms programs;
  programs.child = {PathOfThisProgram(), "lab", "child"};
  programs.sanitizer = FindCudaProgram("compute-sanitizer").value_or("");
  programs.profiler = FindCudaProgram("ncu").value_or("");
  return programs;
}

absl::StatusOr<std::vector<NewEvidence>> RunMeasured(const HarnessPrograms& programs,
                                                     const Store& store,
                                                     const Experiment& experiment,
                                                     const RunRequest& request,
                                                     const CancelToken& cancel) {
  Run run(programs, store, experiment, request, cancel);
  H3RT_RETURN_IF_ERROR(run.Choose());
  for (const char* gate : {"correct", "isolated"}) {
    if (request.gate.empty() || request.gate == gate) H3RT_RETURN_IF_ERROR(run.Gate(gate));
  }
  return run.Take();
}

}  // namespace h3rt::lab
