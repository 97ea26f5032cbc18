// Evidence of golden runs: parity of every path, and single timings.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "h3rt/base/hash.h"
#include "h3rt/harness/attention_corner.h"
#include "h3rt/harness/attention_golden.h"
#include "h3rt/harness/envelope.h"
#include "h3rt/harness/gpu.h"
#include "h3rt/harness/inputs.h"
#include "h3rt/lab/experiments.h"
#include "h3rt/lab/stats.h"

namespace h3rt::lab {
namespace {

using Level = ExperimentWorkload::Level;

constexpr int64_t kAttentionCallsAStep = 50;  // blocks of the released model
constexpr int64_t kEventTickNs = 500;
constexpr int64_t kWarmUps = 3;
constexpr size_t kMostRowBytes = 64 << 10;

// Numbers of a report that are no integers, in parts per billion: hashed documents hold no others.
Doc Whole(const Json& value) {
  if (value.is_number_float()) return static_cast<int64_t>(value.get<double>() * 1e9 + 0.5);
  if (value.is_array()) {
    Doc list = Doc::array();
    for (const Json& item : value) list.push_back(Whole(item));
    return list;
  }
  if (!value.is_object()) return Doc(value);
  Doc object = Doc::object();
  for (const auto& [key, item] : value.items()) {
    object[item.is_number_float() ? key + "_e9" : key] = Whole(item);
  }
  return object;
}

Doc WorkloadDoc(const GoldenCase& golden) {
  const ExactInputSpec& in = golden.inputs;
  const char* const type = in.type == ExactType::kBf16 ? "bf16" : "f16";
  const ExperimentWorkload workload = GoldenWorkload(golden);
  return {
      {"id", golden.name.substr(0, 80)},
      {"level", NameOf(workload.level)},
      {"dims",
       {{"batch", in.batch},
        {"q_len", in.q_len},
        {"k_len", in.k_len},
        {"q_heads", in.q_heads},
        {"k_heads", in.k_heads},
        {"head_dim", in.head_dim},
        {"causal", golden.causal ? 1 : 0}}},
      {"dtypes", {{"q", type}, {"k", type}, {"v", type}, {"o", type}}},
      {"generator", kGoldenGenerator},
      {"seed", static_cast<int64_t>(in.seed)},
      {"input_sha256", {{"q", golden.q_sha256}, {"k", golden.k_sha256}, {"v", golden.v_sha256}}},
      {"calls", workload.calls}};
}

struct Machine {
  Doc environment;
  std::string target;
};

NewEvidence Envelope(const GoldenRequest& request, const Experiment& experiment, const char* kind,
                     const Machine& machine, std::vector<std::string> argv, int64_t start_us,
                     int64_t end_us) {
  const MeasuredRun run{.kind = kind,
                        .experiment = experiment.id,
                        .arm = &experiment.arms[1],
                        .target = machine.target,
                        .environment = machine.environment,
                        .argv = std::move(argv),
                        .start_us = start_us,
                        .end_us = end_us,
                        .policy_digest = request.policy_digest};
  return {EnvelopeOf(run), {}};
}

std::vector<std::string> ArgvOf(const GoldenRequest& request) {
  std::vector<std::string> argv = {"h3rt", "lab", "attention-golden", "--impl", request.impl};
  if (request.repeat >= 0) {
    argv.insert(argv.end(), {"--repeat", std::to_string(request.repeat)});
  }
  if (request.time > 0) argv.insert(argv.end(), {"--time", std::to_string(request.time)});
  return argv;
}

absl::StatusOr<Machine> ThisMachine() {
  Machine machine;
  H3RT_ASSIGN_OR_RETURN(machine.environment, GpuEnvironment());
  H3RT_ASSIGN_OR_RETURN(machine.target, GpuTarget());
  return machine;
}

// Cases compared byte for byte with `against`; what the comparator saw of planted faults stands
// beside them.
absl::Status PutBody(const std::string& against, const Doc& cases, const Doc& repeat,
                     NewEvidence& evidence) {
  const ExperimentCheck check{against.c_str(), ExperimentCheck::Mode::kBitwise, 0, ""};
  H3RT_ASSIGN_OR_RETURN(Doc body, ParityBody(check, cases, repeat));
  evidence.blobs["comparator_selftest"] = CanonicalText(At(body, "comparator_selftest"));
  body.erase("comparator_selftest");
  evidence.envelope["body"] = std::move(body);
  return absl::OkStatus();
}

absl::StatusOr<const Experiment*> ExperimentOf(const std::string& id) {
  const Experiment* const experiment = FindExperiment(id);
  if (experiment == nullptr || experiment->arms.size() < 2) {
    return NotFound({.what = "no experiment of this build with two arms",
                     .got = id,
                     .wanted = "PREFIX of PREFIX-a16, -a32, -a1, -b",
                     .where = "--experiment"});
  }
  return experiment;
}

absl::StatusOr<NewEvidence> Parity(const GoldenRequest& request, const Experiment& experiment,
                                   const std::vector<const GoldenMeasured*>& runs,
                                   const Machine& machine, const std::string& index_digest,
                                   const Json& rows) {
  Doc cases = Doc::array();
  Doc repeat;
  int64_t most = 0, distinct = 0, start_us = runs[0]->start_us, end_us = 0;
  for (const GoldenMeasured* run : runs) {
    for (const Doc& one : run->cases) cases.push_back(one);
    start_us = std::min(start_us, run->start_us);
    end_us = std::max(end_us, run->end_us);
    distinct = std::max(distinct, run->distinct_digests);
    if (run->launches <= most) continue;
    most = run->launches;
    repeat = {{"workload", (run->golden->name + "/" + run->output->key).substr(0, 80)},
              {"launches", run->launches}};
  }
  // The worst of all rows, with the launches of the row that had most.
  if (repeat.is_object()) repeat["distinct_digests"] = distinct;
  NewEvidence evidence =
      Envelope(request, experiment, "parity", machine, ArgvOf(request), start_us, end_us);
  H3RT_RETURN_IF_ERROR(PutBody("golden index " + index_digest, cases, repeat, evidence));
  Json own = Json::array();
  for (const Json& row : rows) {
    for (const GoldenMeasured* run : runs) {
      if (row["case"] == run->golden->name && row["key"] == run->output->key) own.push_back(row);
    }
  }
  const std::string text = CanonicalText(Whole(own));
  if (text.size() <= kMostRowBytes) evidence.blobs["rows"] = text;
  return evidence;
}

NewEvidence Timing(const GoldenRequest& request, const Experiment& experiment,
                   const GoldenMeasured& run, const AttentionTimes& times, const Machine& machine) {
  // Both arms are the same call: all samples are its own.
  std::vector<Sample> samples;
  for (size_t i = 0; i < times.picoseconds.size(); ++i) {
    samples.push_back({.process = 0,
                       .quad = static_cast<uint16_t>(i / 4),
                       .slot = static_cast<uint8_t>(i % 4),
                       .arm = 0,
                       .role = 1,
                       .flags = 0,
                       .picoseconds = times.picoseconds[i]});
  }
  NewEvidence evidence = Envelope(request, experiment, "timing_single", machine, ArgvOf(request),
                                  run.start_us, run.end_us);
  evidence.blobs["samples"] = PackSamples(samples);
  evidence.envelope["workload"] = WorkloadDoc(*run.golden);
  evidence.envelope["body"] = {{"arm", (run.output->key + " " + times.part).substr(0, 80)},
                               {"samples_blob", "samples"},
                               {"unit", "ns"},
                               {"mode", "single"},
                               {"batch", 1},
                               {"timer", "event"},
                               {"tick_ns", kEventTickNs},
                               {"warmups", kWarmUps},
                               {"statistics", SingleStatisticsDoc(samples)}};
  return evidence;
}

}  // namespace

absl::StatusOr<std::vector<NewEvidence>> CornerEvidence(const GoldenRequest& request, bool large,
                                                        const std::vector<CornerRow>& rows,
                                                        int64_t start_us, int64_t end_us) {
  H3RT_ASSIGN_OR_RETURN(const Machine machine, ThisMachine());
  std::map<std::string, Doc> cases;
  for (const CornerRow& row : rows) {
    ExperimentWorkload workload;
    const std::string id = row.name + "/" + row.key;
    workload.id = id.c_str();
    workload.level = Level::kRagged;
    workload.seed = static_cast<uint64_t>(row.seed);
    OutputNumbers numbers;
    numbers.elements = row.elements;
    // A fault is one of the whole case: how many bits it moves is in its text.
    numbers.mismatches = static_cast<int64_t>(row.faults.size());
    if (!row.faults.empty()) {
      numbers.rel_l2 = numbers.max_abs = std::numeric_limits<double>::infinity();
      numbers.max_ulp = INT64_MAX;
    }
    Doc& own = cases[PathName(row.path)];
    if (own.is_null()) own = Doc::array();
    own.push_back(ParityCase(workload, large ? "first and last rows" : "o, lse and checkpoints",
                             numbers, 0, row.faults.empty()));
  }
  const char* const against = large ? "the same rows in a small contiguous problem"
                                    : "the contract's oracle, from captured checkpoints";
  std::vector<NewEvidence> evidence;
  for (const auto& [path, own] : cases) {
    H3RT_ASSIGN_OR_RETURN(const Experiment* experiment,
                          ExperimentOf(request.experiment + "-" + path));
    NewEvidence piece = Envelope(
        request, *experiment, "parity", machine,
        {"h3rt", "lab", "attention-golden", large ? "--large" : "--corner"}, start_us, end_us);
    H3RT_RETURN_IF_ERROR(PutBody(against, own, Doc(), piece));
    evidence.push_back(std::move(piece));
  }
  return evidence;
}

ExperimentWorkload GoldenWorkload(const GoldenCase& golden) {
  const ExactInputSpec& in = golden.inputs;
  ExperimentWorkload workload;
  workload.id = golden.name.c_str();
  workload.seed = in.seed;
  const bool canonical = in.q_len * in.q_heads >= int64_t{1} << 20;
  const bool aligned = in.q_len % exact::kRowPad == 0 && in.k_len % exact::kRowPad == 0;
  workload.level = canonical                         ? Level::kCanonical
                   : in.q_len * in.k_len <= 128 * 64 ? Level::kToy
                   : aligned                         ? Level::kAligned
                                                     : Level::kRagged;
  workload.calls = canonical ? kAttentionCallsAStep : 1;
  return workload;
}

absl::Status CheckGoldenExperiments(const GoldenRequest& request) {
  for (const ExactPath path : {ExactPath::kA16, ExactPath::kA32, ExactPath::kA1, ExactPath::kB}) {
    H3RT_RETURN_IF_ERROR(ExperimentOf(request.experiment + "-" + PathName(path)).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<NewEvidence>> GoldenEvidence(const GoldenRequest& request,
                                                        const std::vector<GoldenMeasured>& measured,
                                                        const Json& rows) {
  std::vector<NewEvidence> evidence;
  if (measured.empty()) return evidence;
  H3RT_ASSIGN_OR_RETURN(const Machine machine, ThisMachine());
  H3RT_ASSIGN_OR_RETURN(const std::string index_digest, Sha256OfFile(request.index));
  std::map<std::string, std::vector<const GoldenMeasured*>> paths;
  for (const GoldenMeasured& run : measured) {
    paths[PathName(run.output->path)].push_back(&run);
  }
  for (const auto& [path, runs] : paths) {
    H3RT_ASSIGN_OR_RETURN(const Experiment* experiment,
                          ExperimentOf(request.experiment + "-" + path));
    H3RT_ASSIGN_OR_RETURN(NewEvidence parity, Parity(request, *experiment, runs, machine,
                                                     index_digest, rows.at("rows")));
    evidence.push_back(std::move(parity));
    for (const GoldenMeasured* run : runs) {
      for (const AttentionTimes& times : run->times) {
        evidence.push_back(Timing(request, *experiment, *run, times, machine));
      }
    }
  }
  return evidence;
}

}  // namespace h3rt::lab
