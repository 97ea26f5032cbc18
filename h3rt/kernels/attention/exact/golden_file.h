// The index of golden cases: which inputs, and the SHA-256 of what the public library made of them.
// Form: tests/data/README.md.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "h3rt/base/status.h"
#include "h3rt/kernels/attention/exact/inputs.h"
#include "h3rt/kernels/attention/exact/problem.h"

namespace h3rt {

// Hashes are 64 lower-case hex digits.
struct GoldenOutput {
  std::string key;  // PATH.GRANULARITY as in the file: "sm89.fp32+fp16.per_warp"
  ExactPath path = ExactPath::kB;
  ExactGranularity granularity = ExactGranularity::kPerWarp;
  std::string o_sha256;                      // [batch, q_len, q_heads, head_dim]
  std::string lse_sha256;                    // [batch, q_heads, q_len]
  std::string lse_raw_sha256;                // before the correction for smoothing
  std::vector<std::string> per_head_sha256;  // of o[:, :, h, :]
  std::optional<double> rel_l2;              // the library's own error against float32, where given
};

struct GoldenCase {
  std::string name;
  std::string section;  // "public", "public_hash", ...
  ExactInputSpec inputs;
  bool causal = false;
  std::string q_sha256;
  std::string k_sha256;
  std::string v_sha256;
  std::string k_mean_sha256;
  // What preparation gives, by the file's keys without "_sha256": "sm89.per_warp.q_int8",
  // "v448.0.v_scale", ...
  std::map<std::string, std::string, std::less<>> prepared;
  std::vector<GoldenOutput> outputs;  // in the file's order
};

struct GoldenIndex {
  std::string device;
  std::vector<GoldenCase> cases;  // in the file's order, sections one after another

  const GoldenCase* Find(std::string_view name) const;  // null: none of that name
};

// kDataLoss for text that is not JSON; kInvalidArgument that names case and key for a missing key,
// a value of another type, a hash that is none, an unknown dtype, path or granularity, a size below
// 1 or above 2^31, tensors above 2^40 elements, heads that do not divide, a head count that
// per_head_sha256 does not have, and two cases of one name. Keys that are not known are ignored.
absl::StatusOr<GoldenIndex> ParseGoldenIndex(std::string_view json, std::string_view where);
absl::StatusOr<GoldenIndex> ReadGoldenIndex(const std::string& path);

// The key of an output in the file: "sm90.fp32+fp32.per_thread".
std::string GoldenKey(ExactPath path, ExactGranularity granularity);

// The problem of a case without pointers: extents, the library's defaults (smoothing on, the scale
// of head_dim, NaN for a zero channel of V), dense NHD strides.
ExactProblem GoldenProblem(const GoldenCase& golden, ExactPath path, ExactGranularity granularity);

}  // namespace h3rt
