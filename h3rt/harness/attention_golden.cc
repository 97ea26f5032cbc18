#include "h3rt/harness/attention_golden.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>

#include "h3rt/base/hash.h"
#include "h3rt/base/log.h"
#include "h3rt/base/utc.h"
#include "h3rt/harness/attention_compare.h"
#include "h3rt/io/safetensors.h"
#include "h3rt/kernels/attention/exact/type16.h"
#include "h3rt/kernels/attention/oracle/compare.h"
#include "h3rt/kernels/attention/oracle/oracle.h"
#include "h3rt/num/statistics.h"

namespace h3rt::lab {
namespace {

using Clock = std::chrono::steady_clock;

// The library's own error may be exceeded by this share: values equal by bytes give the same error
// but for the reference, which is float32 there and float64 here.
constexpr double kErrorSlack = 1.02;
constexpr double kErrorDeviations = 4;
constexpr double kLargeProducts = 1e11;  // q k^T of a case: 20 launches instead of 1000
// Host implementations and checkpoints take at most so many.
constexpr double kMostHostProducts = 3e10;
constexpr int64_t kMostHostElements = int64_t{1} << 28;  // of q, or of k
constexpr int64_t kMostCheckpointBytes = int64_t{4} << 30;

double ProductsOf(const ExactInputSpec& in) {
  return static_cast<double>(in.batch * in.q_heads) * static_cast<double>(in.q_len) *
         static_cast<double>(in.k_len) * static_cast<double>(in.head_dim);
}

bool TooLargeForHost(const ExactInputSpec& in) {
  return ProductsOf(in) > kMostHostProducts ||
         in.batch * in.q_len * in.q_heads * in.head_dim > kMostHostElements ||
         in.batch * in.k_len * in.k_heads * in.head_dim > kMostHostElements;
}

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool Selects(const GoldenRequest& request, const GoldenOutput& output) {
  const std::string granularity =
      output.granularity == ExactGranularity::kPerWarp ? "per_warp" : "per_thread";
  const std::string path = output.key.substr(0, output.key.size() - granularity.size() - 1);
  return (request.path.empty() || request.path == path ||
          Lower(request.path) == PathName(output.path)) &&
         (request.granularity.empty() || request.granularity == granularity);
}

absl::Status CheckRequest(const GoldenRequest& request, const GoldenIndex& index) {
  std::vector<std::string> impls = {"sage2_public", "oracle", "ref"};
  if (request.cpu != nullptr) impls.emplace_back("cpu");
  if (std::find(impls.begin(), impls.end(), request.impl) == impls.end()) {
    std::string names;
    for (const std::string& name : impls) names += (names.empty() ? "" : ", ") + name;
    return InvalidArgument({.what = "implementation of attention",
                            .got = request.impl,
                            .wanted = "one of " + names,
                            .where = "--impl"});
  }
  if (request.impl != "sage2_public") {
    for (const auto& [flag, given] : {std::pair{"--time", request.time > 0},
                                      {"--repeat", request.repeat >= 0},
                                      {"--checkpoints", request.checkpoints}}) {
      if (!given) continue;
      return InvalidArgument({.what = flag,
                              .got = "--impl " + request.impl,
                              .wanted = "sage2_public: the host runs once, compared by value"});
    }
  }
  if (!request.case_name.empty() && index.Find(request.case_name) == nullptr) {
    std::string names;
    for (const GoldenCase& one : index.cases) names += (names.empty() ? "" : ", ") + one.name;
    return InvalidArgument({.what = "case",
                            .got = request.case_name,
                            .wanted = "one of " + names,
                            .where = request.index});
  }
  for (const GoldenCase& one : index.cases) {
    if (!request.case_name.empty() && request.case_name != one.name) continue;
    for (const GoldenOutput& output : one.outputs) {
      if (Selects(request, output)) return absl::OkStatus();
    }
  }
  return InvalidArgument({.what = "path and granularity",
                          .got = request.path + " " + request.granularity,
                          .wanted = "a16, a32, a1 or b; per_warp or per_thread; as the index has",
                          .where = request.index});
}

// A file beside the index may be missing; one that is there and cannot be read would quietly take
// its comparisons away.
absl::Status CheckFixtures(const GoldenRequest& request, const GoldenIndex& index) {
  const std::filesystem::path folder = std::filesystem::path(request.index).parent_path();
  std::vector<std::string> names = {"per_thread_quant"};
  for (const GoldenCase& one : index.cases) {
    if (request.case_name.empty() || request.case_name == one.name) names.push_back(one.name);
  }
  for (const std::string& name : names) {
    const absl::Status status =
        SafetensorsFile::Open((folder / (name + ".safetensors")).string()).status();
    if (!status.ok() && !absl::IsNotFound(status)) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckInputs(const GoldenCase& golden, const ExactInputs& inputs) {
  for (const auto& [name, values, wanted] : {std::tuple{"q", &inputs.q, &golden.q_sha256},
                                             {"k", &inputs.k, &golden.k_sha256},
                                             {"v", &inputs.v, &golden.v_sha256}}) {
    const std::string hash = Sha256Hex(std::as_bytes(std::span(*values)));
    if (hash == *wanted) continue;
    return DataLoss({.what = std::string("the generator makes another ") + name,
                     .got = hash,
                     .wanted = *wanted,
                     .where = golden.name});
  }
  return absl::OkStatus();
}

class Runner {
 public:
  Runner(const GoldenRequest& request, const GoldenIndex& index, const CancelToken& cancel,
         const std::function<void(const GoldenRow&)>& on_row)
      : request_(request),
        index_(index),
        cancel_(cancel),
        on_row_(on_row),
        fixtures_(std::filesystem::path(request.index).parent_path().string()),
        pool_(ThreadPool::HardwareThreads()) {}

  absl::StatusOr<GoldenReport> Run() {
    if (request_.impl == "sage2_public") {
      H3RT_ASSIGN_OR_RETURN(device_, MakeAttentionDevice());
    }
    std::vector<const GoldenCase*> cases;
    for (const GoldenCase& one : index_.cases) {
      if (request_.case_name.empty() || request_.case_name == one.name) cases.push_back(&one);
    }
    double total = 0, done = 0;
    for (const GoldenCase* one : cases) total += ProductsOf(one->inputs);
    const Clock::time_point start = Clock::now();
    for (size_t i = 0; i < cases.size(); ++i) {
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      LogInfo(fmt::format(
          "attention-golden: case {} of {}, {}, {:.0f} s passed, {:.1f} % of the "
          "work done",
          i + 1, cases.size(), cases[i]->name, seconds, 100 * done / std::max(total, 1.0)));
      H3RT_RETURN_IF_ERROR(Case(*cases[i]));
      done += ProductsOf(cases[i]->inputs);
    }
    if (request_.evidence) {
      H3RT_ASSIGN_OR_RETURN(report_.evidence,
                            GoldenEvidence(request_, measured_, report_.ToJson()));
    }
    return std::move(report_);
  }

 private:
  absl::Status Case(const GoldenCase& golden) {
    if (cancel_.cancelled()) return Cancelled("attention-golden");
    const bool skipped = device_ == nullptr && TooLargeForHost(golden.inputs);
    for (const GoldenOutput& output : golden.outputs) {
      if (!skipped || !Selects(request_, output)) continue;
      report_.rows.push_back({.case_name = golden.name, .key = output.key});
      report_.rows.back().skipped = "too large for the host";
      if (on_row_) on_row_(report_.rows.back());
    }
    if (skipped) return absl::OkStatus();
    inputs_ = MakeExactInputs(golden.inputs, ThreadPool::HardwareThreads());
    H3RT_RETURN_IF_ERROR(CheckInputs(golden, inputs_));
    if (device_ != nullptr) H3RT_RETURN_IF_ERROR(device_->Load(inputs_));
    reference_.reset();
    for (const GoldenOutput& output : golden.outputs) {
      if (!Selects(request_, output)) continue;
      if (cancel_.cancelled()) return Cancelled("attention-golden");
      GoldenRow row{.case_name = golden.name, .key = output.key};
      H3RT_RETURN_IF_ERROR(device_ != nullptr ? OnDevice(golden, output, row)
                                              : OnHost(golden, output, row));
      if (on_row_) on_row_(row);
      report_.rows.push_back(std::move(row));
    }
    return absl::OkStatus();
  }

  ExactProblem HostProblem(const GoldenCase& golden, const GoldenOutput& output) const {
    ExactProblem problem = GoldenProblem(golden, output.path, output.granularity);
    problem.q.data = inputs_.q.data();
    problem.k.data = inputs_.k.data();
    problem.v.data = inputs_.v.data();
    return problem;
  }

  absl::Status OnDevice(const GoldenCase& golden, const GoldenOutput& output, GoldenRow& row) {
    const ExactProblem problem = HostProblem(golden, output);
    int64_t repeat = request_.repeat;
    if (repeat < 0) repeat = ProductsOf(golden.inputs) > kLargeProducts ? 20 : 1000;
    GoldenMeasured measured{.golden = &golden, .output = &output, .start_us = NowNs() / 1000};
    {
      H3RT_ASSIGN_OR_RETURN(const AttentionRun run, device_->Run(problem, repeat, cancel_));
      CompareGolden({golden, output, problem, run, fixtures_, pool_}, row, measured.cases);
      H3RT_RETURN_IF_ERROR(CompareValues(golden, output, problem, run.o, row));
      measured.launches = run.launches;
      measured.distinct_digests = run.distinct_digests;
    }
    if (request_.checkpoints) H3RT_RETURN_IF_ERROR(Checkpoints(golden, problem, row));
    if (request_.time > 0) {
      H3RT_ASSIGN_OR_RETURN(measured.times,
                            device_->Time(problem, (request_.time + 1) / 2, cancel_));
      row.times = TimesJson(measured.times);
    }
    measured.end_us = NowNs() / 1000;
    measured_.push_back(std::move(measured));
    return absl::OkStatus();
  }

  absl::Status OnHost(const GoldenCase& golden, const GoldenOutput& output, GoldenRow& row) {
    if (!output.rel_l2) {
      row.skipped = "the index has no rel_l2_vs_f32 to compare with";
      return absl::OkStatus();
    }
    ExactProblem problem = HostProblem(golden, output);
    AttentionRun run;
    run.o.assign(
        static_cast<size_t>(problem.batch * problem.q_len * problem.q_heads * problem.head_dim),
        0xffff);  // a NaN of either type where nothing is written
    const auto rows = static_cast<size_t>(problem.batch * problem.q_heads * problem.q_len);
    run.lse.assign(rows, std::nanf(""));
    run.lse_raw.assign(rows, std::nanf(""));
    problem.o.data = run.o.data();
    problem.lse = run.lse.data();
    problem.lse_raw = run.lse_raw.data();
    if (request_.impl == "oracle") {
      run.workspace.resize(static_cast<size_t>(WorkspaceBytes(problem)) + 256);
      const ExactPrepared prepared = PreparedIn(problem, Aligned(run.workspace));
      H3RT_RETURN_IF_ERROR(OraclePrepare(problem, {}, prepared));
      H3RT_RETURN_IF_ERROR(OracleAttention(problem, prepared, {}, nullptr, {}));
      ComparePrepared(golden, problem, prepared, fixtures_, /*exact=*/false, row);
    } else if (request_.impl == "cpu") {
      H3RT_RETURN_IF_ERROR(request_.cpu(problem, pool_));
    } else {
      H3RT_RETURN_IF_ERROR(Reference(problem));
      if (!reference_->whole()) {
        row.skipped = "too large for float64 on the host";
        return absl::OkStatus();
      }
      for (size_t i = 0; i < run.o.size(); ++i) {
        run.o[i] = NarrowExact(problem.type, static_cast<float>(reference_->o()[i]));
      }
    }
    row.notes.emplace_back("by value: a host has no tensor cores");
    return CompareValues(golden, output, problem, run.o, row);
  }

  static void* Aligned(std::vector<std::byte>& memory) {
    const auto at = reinterpret_cast<uintptr_t>(memory.data());
    return memory.data() + (256 - at % 256) % 256;
  }

  absl::Status Reference(const ExactProblem& problem) {
    if (reference_) return absl::OkStatus();
    H3RT_ASSIGN_OR_RETURN(FloatReference made, FloatReference::Create(problem, pool_, cancel_));
    reference_.emplace(std::move(made));
    return absl::OkStatus();
  }

  // Against float64: no worse than the library.
  absl::Status CompareValues(const GoldenCase& /*golden*/, const GoldenOutput& output,
                             const ExactProblem& problem, std::span<const uint16_t> o,
                             GoldenRow& row) {
    H3RT_RETURN_IF_ERROR(Reference(problem));
    const FloatReference::Error error = reference_->Of(o);
    row.rel_l2 = error.rel_l2;
    if (!reference_->whole()) {
      row.notes.push_back(fmt::format("relative L2 over {} of {} rows, standard error {:.2g}",
                                      reference_->rows(), problem.q_len, error.standard_error));
    }
    if (!output.rel_l2) return absl::OkStatus();
    const double most = *output.rel_l2 * kErrorSlack + kErrorDeviations * error.standard_error;
    if (!(error.rel_l2 <= most)) {
      row.faults.push_back(
          fmt::format("relative L2 {:.6g}, the library's {:.6g}", error.rel_l2, *output.rel_l2));
    }
    return absl::OkStatus();
  }

  absl::Status Checkpoints(const GoldenCase& golden, const ExactProblem& shape, GoldenRow& row) {
    if (CheckpointBytes(shape) > kMostCheckpointBytes ||
        ProductsOf(golden.inputs) > kMostHostProducts) {
      row.notes.emplace_back("checkpoints: too large");
      return absl::OkStatus();
    }
    H3RT_ASSIGN_OR_RETURN(AttentionCapture capture, device_->Capture(shape));
    ExactProblem problem = shape;
    std::vector<uint16_t> o(capture.run.o.size(), 0xffff);
    std::vector<float> lse(capture.run.lse.size()), lse_raw(capture.run.lse_raw.size());
    problem.o.data = o.data();
    problem.lse = lse.data();
    problem.lse_raw = lse_raw.data();
    const ExactPrepared prepared = PreparedIn(problem, capture.run.workspace.data());
    const ExactCheckpoints captured = CheckpointsIn(problem, capture.memory.data());
    std::vector<std::byte> memory(capture.memory.size(), std::byte{0x5a});
    const ExactCheckpoints out = CheckpointsIn(problem, memory.data());
    H3RT_RETURN_IF_ERROR(OracleAttention(problem, prepared, {}, &captured, out));
    const CheckpointComparison compared = CompareCheckpoints(problem, captured, out);
    if (!compared.first.empty()) {
      row.faults.push_back("checkpoints: " + compared.first[0].Text());
    } else if (o != capture.run.o) {
      row.faults.emplace_back("the oracle's output differs from the captured one");
    } else {
      row.notes.push_back(fmt::format("checkpoints equal, {} compared", compared.compared));
    }
    return absl::OkStatus();
  }

  static Json TimesJson(const std::vector<AttentionTimes>& times) {
    Json list = Json::array();
    for (const AttentionTimes& one : times) {
      std::vector<double> arms[2];
      for (size_t i = 0; i < one.picoseconds.size(); ++i) {
        const size_t slot = i % 4;
        arms[slot == 1 || slot == 2].push_back(static_cast<double>(one.picoseconds[i]));
      }
      const double first = Median(arms[0]);
      const double second = Median(arms[1]);
      list.push_back({{"part", one.part},
                      {"samples", one.picoseconds.size()},
                      {"p50_ms", first / 1e9},
                      {"again_p50_ms", second / 1e9},
                      {"aa_ratio", second > 0 ? first / second : 0.0}});
    }
    return list;
  }

  const GoldenRequest& request_;
  const GoldenIndex& index_;
  const CancelToken& cancel_;
  const std::function<void(const GoldenRow&)>& on_row_;
  FixtureTensors fixtures_;
  ThreadPool pool_;
  std::unique_ptr<AttentionDevice> device_;
  ExactInputs inputs_;
  std::optional<FloatReference> reference_;
  GoldenReport report_;
  std::vector<GoldenMeasured> measured_;
};

}  // namespace

std::string PathName(ExactPath path) {
  switch (path) {
    case ExactPath::kA16:
      return "a16";
    case ExactPath::kA32:
      return "a32";
    case ExactPath::kA1:
      return "a1";
    case ExactPath::kB:
      break;
  }
  return "b";
}

std::string GoldenRow::Text() const {
  std::string text = fmt::format("{:<7} {:<20} {:<25}",
                                 !skipped.empty() ? "skipped"
                                 : ok()           ? "ok"
                                                  : "FAIL",
                                 case_name, key);
  if (!skipped.empty()) return text + " " + skipped;
  if (by_bytes) {
    text += fmt::format(" o {} lse_raw {} lse {} prepared {} repeat {}/{}",
                        o_equal ? "equal" : "DIFFERS", lse_raw_equal ? "equal" : "DIFFERS",
                        lse_equal ? "equal" : "by value", prepared_compared, launches,
                        distinct_digests);
  }
  if (rel_l2 >= 0) text += fmt::format(" rel_l2 {:.5f}", rel_l2);
  for (const Json& one : times) {
    text +=
        fmt::format(" {} {:.4f} ms", one["part"].get<std::string>(), one["p50_ms"].get<double>());
  }
  for (const std::string& fault : faults) text += "\n          FAIL: " + fault;
  for (const std::string& note : notes) text += "\n          " + note;
  return text;
}

Json GoldenRow::ToJson() const {
  return {{"case", case_name},
          {"key", key},
          {"ok", ok()},
          {"skipped", skipped.empty() ? Json() : Json(skipped)},
          {"faults", faults},
          {"notes", notes},
          {"by_bytes", by_bytes},
          {"o_equal", o_equal},
          {"heads_that_differ", heads_that_differ},
          {"lse_raw_equal", lse_raw_equal},
          {"lse_equal", lse_equal},
          {"prepared_compared", prepared_compared},
          {"launches", launches},
          {"distinct_digests", distinct_digests},
          {"rel_l2", rel_l2 < 0 ? Json() : Json(rel_l2)},
          {"times", times}};
}

int64_t GoldenReport::compared() const {
  return std::count_if(rows.begin(), rows.end(),
                       [](const GoldenRow& row) { return row.skipped.empty(); });
}
int64_t GoldenReport::failed() const {
  return std::count_if(rows.begin(), rows.end(),
                       [](const GoldenRow& row) { return !row.faults.empty(); });
}
Json GoldenReport::ToJson() const {
  Json list = Json::array();
  for (const GoldenRow& row : rows) list.push_back(row.ToJson());
  return {{"compared", compared()}, {"failed", failed()}, {"rows", list}};
}

absl::StatusOr<GoldenReport> RunAttentionGolden(
    const GoldenRequest& request, const CancelToken& cancel,
    const std::function<void(const GoldenRow&)>& on_row) {
  H3RT_ASSIGN_OR_RETURN(const GoldenIndex index, ReadGoldenIndex(request.index));
  H3RT_RETURN_IF_ERROR(CheckRequest(request, index));
  H3RT_RETURN_IF_ERROR(CheckFixtures(request, index));
  if (request.evidence) H3RT_RETURN_IF_ERROR(CheckGoldenExperiments(request));
  return Runner(request, index, cancel, on_row).Run();
}

}  // namespace h3rt::lab
