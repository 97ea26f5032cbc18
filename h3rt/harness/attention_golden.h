// `h3rt lab attention-golden`: an implementation of attention against recorded cases of the public
// library, case by case.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "h3rt/base/cancel.h"
#include "h3rt/base/experiment.h"
#include "h3rt/base/json.h"
#include "h3rt/base/thread_pool.h"
#include "h3rt/harness/attention_device.h"
#include "h3rt/kernels/attention/exact/golden_file.h"
#include "h3rt/ledger/store.h"

namespace h3rt::lab {

// Attention on the host from the inputs of `problem` (host pointers), o and lse written to its
// outputs.
using HostAttention = std::function<absl::Status(const ExactProblem& problem, ThreadPool& pool)>;

struct GoldenRequest {
  std::string index = {};  // path of the file
  // "sage2_public" on the GPU; "oracle", "ref" (float64) and, where `cpu` is set, "cpu" on the
  // host.
  std::string impl = "sage2_public";
  HostAttention cpu = nullptr;
  std::string case_name = {};    // empty: every case
  std::string path = {};         // "a16", "a32", "a1", "b" or as in the index; empty: all
  std::string granularity = {};  // "per_warp", "per_thread"; empty: both
  int64_t repeat = -1;           // launches that must agree; -1: 1000, or 20 for large cases
  int64_t time = 0;              // samples an arm of each part; 0: nothing is timed
  bool checkpoints = false;
  bool evidence = false;        // compose evidence for the experiments PREFIX-PATH
  std::string experiment = {};  // the prefix
  std::string policy_digest = {};
};

// One case of one path and granularity.
struct GoldenRow {
  std::string case_name;
  std::string key;
  std::string skipped = {};  // why, when nothing was compared
  std::vector<std::string> faults = {};
  std::vector<std::string> notes = {};
  bool by_bytes = false;  // the fields below up to lse_equal were compared
  bool o_equal = false;
  std::vector<int64_t> heads_that_differ = {};
  bool lse_raw_equal = false;
  bool lse_equal = false;
  int64_t prepared_compared = 0;
  int64_t launches = 0, distinct_digests = 0;
  double rel_l2 = -1;  // below 0: not computed
  Json times = Json::array();
  bool ok() const { return skipped.empty() && faults.empty(); }
  std::string Text() const;
  Json ToJson() const;
};

struct GoldenReport {
  std::vector<GoldenRow> rows;
  std::vector<NewEvidence> evidence;
  int64_t compared() const;
  int64_t failed() const;
  Json ToJson() const;
};
// Progress goes to the log, rows to `on_row` as they come. Errors: a file or name that is not
// there, no GPU, inputs that come out with other hashes than the index has (kDataLoss).
absl::StatusOr<GoldenReport> RunAttentionGolden(
    const GoldenRequest& request, const CancelToken& cancel,
    const std::function<void(const GoldenRow&)>& on_row);

// What a run of one row left for its evidence.
struct GoldenMeasured {
  const GoldenCase* golden = nullptr;
  const GoldenOutput* output = nullptr;
  Doc cases = Doc::array();  // of a parity body
  std::vector<AttentionTimes> times = {};
  int64_t launches = 0, distinct_digests = 0;
  int64_t start_us = 0, end_us = 0;
};
// "toy", "aligned", "ragged" or "canonical".
ExperimentWorkload GoldenWorkload(const GoldenCase& golden);
// kNotFound unless this build has every experiment that evidence would be of.
absl::Status CheckGoldenExperiments(const GoldenRequest& request);
// Parity and timing_single evidence of every path that was measured. `rows` is kept as a blob.
absl::StatusOr<std::vector<NewEvidence>> GoldenEvidence(const GoldenRequest& request,
                                                        const std::vector<GoldenMeasured>& measured,
                                                        const Json& rows);
// "a16", ...
std::string PathName(ExactPath path);

// One row of a finished run against the index and the tensors beside it, without a device.
class FixtureTensors;
struct GoldenComparison {
  const GoldenCase& golden;
  const GoldenOutput& output;
  const ExactProblem& problem;  // host pointers
  const AttentionRun& run;
  const FixtureTensors& fixtures;
  ThreadPool& pool;
};
void CompareGolden(const GoldenComparison& c, GoldenRow& row, Doc& cases);
// What preparation made against the index, and against `fixtures` for what it has no hash of. A
// difference is a fault when `exact`, else a note: the last bit of a GPU's reciprocal decides a
// code here and there, and a host rounds it correctly.
void ComparePrepared(const GoldenCase& golden, const ExactProblem& problem,
                     const ExactPrepared& prepared, const FixtureTensors& fixtures, bool exact,
                     GoldenRow& row);

// Tensors in the safetensors files beside the index, where they are there.
class FixtureTensors {
 public:
  explicit FixtureTensors(std::string folder) : folder_(std::move(folder)) {}
  // Bytes of `key` in FILE.safetensors; empty when there is none.
  std::vector<std::byte> Read(const std::string& file, const std::string& key) const;

 private:
  std::string folder_;
};

}  // namespace h3rt::lab
