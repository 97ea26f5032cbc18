// The case table of exact attention on a device: strides, ragged lengths, bad input, offsets beyond
// 32 bits.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "h3rt/base/cancel.h"
#include "h3rt/base/json.h"
#include "h3rt/harness/attention_device.h"
#include "h3rt/kernels/attention/exact/exact_cases.h"
#include "h3rt/ledger/store.h"

namespace h3rt::lab {

// What a launch over copies of a call's memory left. The whole of `outputs`, gaps and margins too.
struct PlacedRun {
  int error = 0;  // of the launch, 0 for success
  std::vector<uint16_t> outputs;
  std::vector<float> lse, lse_raw;
  std::vector<std::byte> workspace;
  std::vector<std::byte> checkpoints;  // with capture
  int64_t guard_faults = 0;
  bool inputs_unchanged = false;
};
absl::StatusOr<PlacedRun> RunPlaced(const ExactHostCall& call, bool capture);

// One row of q at either end of fused buffers whose offsets pass 2^31 and 2^32 elements, against
// the same rows in a small contiguous problem. Gives what differs; empty: nothing.
struct LargeCase {
  const char* name = "";
  int64_t rows = 0;
  int64_t row_stride = 0;  // elements of a fused row
  int64_t heads = 0;
};
absl::StatusOr<std::string> RunLarge(const LargeCase& large, ExactPath path,
                                     ExactGranularity granularity);

struct CornerRow {
  std::string name;
  std::string key;
  ExactPath path = ExactPath::kB;
  int64_t seed = 0;
  int64_t elements = 0;  // of the output
  std::vector<std::string> faults;
  std::string Text() const;
};
struct CornerRequest {
  std::string case_name;  // empty: all
  std::string path;       // "a16", ...; empty: all
  bool large = false;     // the large cases instead of the table
};
// Many cases at a time, the host's part of them on as many threads as there are; `on_row` gets them
// in the order of the table, one at a time. kInvalidArgument for an unknown case or path, with the
// names; kFailedPrecondition without a GPU.
absl::StatusOr<std::vector<CornerRow>> RunAttentionCorners(
    const CornerRequest& request, const CancelToken& cancel,
    const std::function<void(const CornerRow&)>& on_row);

// One parity piece a path, over its rows: a case's mismatches are its faults.
struct GoldenRequest;
absl::StatusOr<std::vector<NewEvidence>> CornerEvidence(const GoldenRequest& request, bool large,
                                                        const std::vector<CornerRow>& rows,
                                                        int64_t start_us, int64_t end_us);

// A finished call against the contract: untouched gaps, the oracle from captured checkpoints, the
// bytes of the contiguous problem, and refusals. `plain`, `captured`: of `call`; `dense`: plain, of
// the same case in NHD.
std::vector<std::string> CornerFaults(const ExactCase& corner, ExactHostCall& call,
                                      const PlacedRun& plain, const PlacedRun& captured,
                                      const std::vector<uint16_t>& dense);

}  // namespace h3rt::lab
