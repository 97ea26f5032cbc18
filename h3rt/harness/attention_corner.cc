#include "h3rt/harness/attention_corner.h"

#include <fmt/format.h>

#include <cstring>
#include <mutex>

#include "h3rt/base/log.h"
#include "h3rt/base/thread_pool.h"
#include "h3rt/harness/attention_golden.h"
#include "h3rt/kernels/attention/exact/check.h"
#include "h3rt/kernels/attention/oracle/compare.h"
#include "h3rt/kernels/attention/oracle/oracle.h"

namespace h3rt::lab {
namespace {

constexpr uint16_t kPoison = 0x7fcd;  // a NaN of either type: what lies in gaps must not leak

constexpr LargeCase kLarge[] = {{"T4.fused_99865", 99865, 21504, 1},
                                {"T4.fused_99867", 99867, 21504, 1},
                                {"T4.fused_199729", 199729, 21504, 1},
                                {"T4.fused_200064", 200064, 21504, 1},
                                {"T5.elements_2_31", 200064, 21504, 56}};

// Elements of `outputs` outside o that are no longer poison.
int64_t Touched(const ExactHostCall& call, const std::vector<uint16_t>& outputs) {
  std::vector<bool> written(outputs.size(), false);
  const ExactProblem& p = call.problem;
  for (int64_t b = 0; b < p.batch; ++b) {
    for (int64_t row = 0; row < p.q_len; ++row) {
      for (int64_t h = 0; h < p.q_heads; ++h) {
        const int64_t at =
            call.o_at + b * p.o.batch_stride + row * p.o.row_stride + h * p.o.head_stride;
        for (int64_t d = 0; d < p.head_dim; ++d) written[static_cast<size_t>(at + d)] = true;
      }
    }
  }
  int64_t touched = 0;
  for (size_t i = 0; i < outputs.size(); ++i) touched += !written[i] && outputs[i] != kPoison;
  return touched;
}

template <typename T>
bool Same(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

void CompareWithOracle(ExactHostCall& call, const PlacedRun& plain, const PlacedRun& captured,
                       std::vector<std::string>& faults) {
  if (!Same(plain.outputs, captured.outputs) || !Same(plain.lse_raw, captured.lse_raw)) {
    faults.emplace_back("the capture kernel gives other bytes");
  }
  // The oracle writes into the call's own memory, which holds poison until then.
  std::vector<std::byte> workspace = captured.workspace;
  std::vector<std::byte> from_device = captured.checkpoints;
  std::vector<std::byte> memory(from_device.size(), std::byte{0x5a});
  const ExactCheckpoints seen = CheckpointsIn(call.problem, from_device.data());
  const ExactCheckpoints out = CheckpointsIn(call.problem, memory.data());
  const absl::Status done =
      OracleAttention(call.problem, PreparedIn(call.problem, workspace.data()), {}, &seen, out);
  if (!done.ok()) return faults.push_back("oracle: " + MessageOf(done));
  const CheckpointComparison compared = CompareCheckpoints(call.problem, seen, out);
  for (const CheckpointDifference& first : compared.first) faults.push_back(first.Text());
  if (compared.compared == 0) faults.emplace_back("no checkpoint was compared");
  if (!Same(call.outputs, captured.outputs)) faults.emplace_back("o differs from the oracle's");
  if (!Same(call.lse_raw, captured.lse_raw)) faults.emplace_back("lse_raw differs");
  if (!Same(call.lse, captured.lse)) faults.emplace_back("lse differs from the oracle's");
}

absl::Status OneCase(const ExactCase& corner, ExactPath path, ExactGranularity granularity,
                     CornerRow& row) {
  ExactHostCall call = HostCallOf(corner, path, granularity, kPoison);
  if (corner.expectation == ExactExpectation::kRefused) {
    const absl::Status refused = CheckExactProblem(call.problem);
    if (refused.ok() || MessageOf(refused).find(corner.named) == std::string::npos) {
      row.faults.push_back("it was not refused by name: " + MessageOf(refused));
    }
    return absl::OkStatus();
  }
  H3RT_ASSIGN_OR_RETURN(const PlacedRun plain, RunPlaced(call, false));
  PlacedRun captured;
  std::vector<uint16_t> dense;
  if (corner.expectation == ExactExpectation::kComputed) {
    H3RT_ASSIGN_OR_RETURN(captured, RunPlaced(call, true));
    ExactCase contiguous = corner;
    contiguous.layout = ExactLayout::kNhd;
    const ExactHostCall other = HostCallOf(contiguous, path, granularity, 0x7f7f);
    H3RT_ASSIGN_OR_RETURN(const PlacedRun run, RunPlaced(other, false));
    dense = OutputOf(other, run.outputs);
  }
  row.faults = CornerFaults(corner, call, plain, captured, dense);
  return absl::OkStatus();
}

}  // namespace

std::string CornerRow::Text() const {
  std::string text = fmt::format("{:<5} {:<26} {}", faults.empty() ? "ok" : "FAIL", name, key);
  for (const std::string& fault : faults) text += "\n      " + fault;
  return text;
}

std::vector<std::string> CornerFaults(const ExactCase& corner, ExactHostCall& call,
                                      const PlacedRun& plain, const PlacedRun& captured,
                                      const std::vector<uint16_t>& dense) {
  std::vector<std::string> faults;
  if (plain.error != 0) {
    faults.push_back(fmt::format("the launch failed with {}", plain.error));
    return faults;
  }
  if (plain.guard_faults > 0) faults.emplace_back("it wrote outside its buffers");
  if (!plain.inputs_unchanged) faults.emplace_back("it wrote its inputs");
  if (const int64_t touched = Touched(call, plain.outputs); touched > 0) {
    faults.push_back(fmt::format("{} elements between rows were written", touched));
  }
  std::vector<std::byte> workspace = plain.workspace;
  const ExactPrepared prepared = PreparedIn(call.problem, workspace.data());
  const absl::Status finite = CheckFinite(call.problem, prepared.not_finite);
  if (corner.expectation == ExactExpectation::kNotFinite) {
    if (finite.ok() || MessageOf(finite).find(corner.named) == std::string::npos) {
      faults.push_back("not reported as " + corner.named + ": " + MessageOf(finite));
    }
    return faults;
  }
  if (!finite.ok()) faults.push_back("finite input was refused: " + MessageOf(finite));
  if (OutputOf(call, plain.outputs) != dense) {
    faults.emplace_back("other bytes than the contiguous problem's");
  }
  CompareWithOracle(call, plain, captured, faults);
  return faults;
}

namespace {

struct CornerJob {
  CornerRow row;
  std::function<absl::Status(CornerRow&)> run;
};

// Every case of the request, for both granularities of its paths.
std::vector<CornerJob> JobsOf(const CornerRequest& request, const std::vector<ExactCase>& table) {
  std::vector<CornerJob> jobs;
  const auto add = [&](const std::string& name, ExactPath path, ExactGranularity granularity,
                       int64_t seed, int64_t elements, auto run) {
    if (!request.case_name.empty() && name != request.case_name) return;
    if (!request.path.empty() && request.path != PathName(path)) return;
    jobs.push_back({{name, GoldenKey(path, granularity), path, seed, elements, {}}, run});
  };
  for (const ExactPath path : {ExactPath::kA16, ExactPath::kA32, ExactPath::kA1, ExactPath::kB}) {
    for (const auto granularity : {ExactGranularity::kPerWarp, ExactGranularity::kPerThread}) {
      for (size_t i = 0; !request.large && i < table.size(); ++i) {
        const ExactCase& corner = table[i];
        const ExactInputSpec& in = corner.inputs;
        add(corner.name, path, granularity, static_cast<int64_t>(in.seed),
            in.batch * in.q_len * in.q_heads * in.head_dim,
            [&corner, path, granularity](CornerRow& row) {
              return OneCase(corner, path, granularity, row);
            });
      }
      for (size_t i = 0; request.large && i < std::size(kLarge); ++i) {
        const LargeCase& large = kLarge[i];
        add(large.name, path, granularity, 4, large.rows * large.heads * 128,
            [&large, path, granularity](CornerRow& row) {
              const auto fault = RunLarge(large, path, granularity);
              if (fault.ok() && !fault->empty()) row.faults.push_back(*fault);
              return fault.status();
            });
      }
    }
  }
  return jobs;
}

}  // namespace

absl::StatusOr<std::vector<CornerRow>> RunAttentionCorners(
    const CornerRequest& request, const CancelToken& cancel,
    const std::function<void(const CornerRow&)>& on_row) {
  H3RT_RETURN_IF_ERROR(MakeAttentionDevice().status());
  const std::vector<ExactCase> table = ExactCases();
  std::vector<CornerJob> jobs = JobsOf(request, table);
  if (jobs.empty()) {
    return InvalidArgument({.what = "corner case and path",
                            .got = request.case_name + " " + request.path,
                            .wanted = "a name of the table, as " + table[0].name + " or " +
                                      kLarge[0].name + " (--large); a16, a32, a1, b"});
  }
  std::mutex mutex;
  std::vector<bool> done(jobs.size(), false);
  size_t told = 0;
  // A large case fills the device alone.
  ThreadPool pool(request.large ? 1 : ThreadPool::HardwareThreads());
  const absl::Status all =
      pool.ParallelFor(static_cast<int64_t>(jobs.size()), &cancel, [&](int64_t index) {
        const auto at = static_cast<size_t>(index);
        CornerJob& job = jobs[at];
        H3RT_RETURN_IF_ERROR(WithContext(job.run(job.row), job.row.name + " " + job.row.key));
        const std::lock_guard lock(mutex);
        done[at] = true;
        for (; told < jobs.size() && done[told]; ++told) {
          if (told % 100 == 0) {
            LogInfo(fmt::format("attention corners: {} of {}", told, jobs.size()));
          }
          if (on_row) on_row(jobs[told].row);
        }
        return absl::OkStatus();
      });
  if (!all.ok()) return all;
  std::vector<CornerRow> rows;
  for (CornerJob& job : jobs) rows.push_back(std::move(job.row));
  return rows;
}

}  // namespace h3rt::lab
