// Shared by tests of the oracle's preparation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "h3rt/kernels/attention/exact/public_layout.h"
#include "h3rt/kernels/attention/oracle/oracle.h"
#include "h3rt/kernels/attention/oracle/strict_f32.h"

namespace h3rt {

// MUFU.RCP of an H200 where it is not the correctly rounded reciprocal, by mantissa (the exponent
// only shifts), in units of the last place: those that decide a code of a golden case. Found from
// the golden bytes and hashes, not on a device, and not the whole truth: a table captured on a
// device replaces it. With it every code of the 17 cases up to 4097 tokens is the library's (the
// last two are for V at 2.25 and Q of the canonical case, whose K is not solved); without it those
// that prepare_test.cc lists are not.
inline float H200Rcp(float a) {
  struct Correction {
    uint32_t mantissa;
    int ulp;
  };
  constexpr Correction kCorrections[] = {
      {0x040000, -1}, {0x140000, -1}, {0x260000, +1}, {0x410000, +1},
      {0x510000, +1}, {0x5a8000, +1}, {0x5b0000, +1}, {0x62a000, +1},
      {0x6d0000, +1}, {0x6d8000, +1}, {0x730000, +1}, {0x740000, +1},
      {0x760000, +1}, {0x778000, -1}, {0x790000, +1}, {0x7f0000, -1},
  };
  const uint32_t bits = strict::ToBits(strict::Rcp(a));
  const uint32_t exponent = bits >> 23 & 0xff;
  if (exponent == 0 || exponent == 0xff) return strict::FromBits(bits);
  for (const Correction& correction : kCorrections) {
    if (correction.mantissa == (strict::ToBits(a) & 0x7fffff)) {
      return strict::FromBits(bits + static_cast<uint32_t>(correction.ulp));
    }
  }
  return strict::FromBits(bits);
}

// The oracle's buffers of one problem in one workspace that was `poison` before.
class OracleWorkspace {
 public:
  OracleWorkspace(const ExactProblem& problem, const OracleHardware& hardware,
                  unsigned char poison = 0xcd)
      : sizes(PreparedSizes(problem)),
        bytes_(static_cast<size_t>(WorkspaceBytes(problem)), poison),
        prepared(PreparedIn(problem, bytes_.data())),
        status(OraclePrepare(problem, hardware, prepared)) {}
  OracleWorkspace(const OracleWorkspace&) = delete;
  OracleWorkspace& operator=(const OracleWorkspace&) = delete;

  template <typename T>
  static std::vector<T> Copy(const T* data, int64_t elements) {
    return std::vector<T>(data, data + elements);
  }
  // All buffers one after another, without the gaps between them.
  std::vector<unsigned char> Everything() const {
    std::vector<unsigned char> all;
    const auto append = [&all](const auto* data, int64_t elements) {
      const auto* const from = reinterpret_cast<const unsigned char*>(data);
      all.insert(all.end(), from, from + static_cast<size_t>(elements) * sizeof(*data));
    };
    append(prepared.q8, sizes.q8);
    append(prepared.k8, sizes.k8);
    append(prepared.v8, sizes.v8);
    append(prepared.q_scale, sizes.q_scale);
    append(prepared.k_scale, sizes.k_scale);
    append(prepared.v_scale, sizes.v_scale);
    append(prepared.k_mean, sizes.k_mean);
    append(prepared.partials, sizes.partials);
    append(prepared.not_finite, sizes.not_finite);
    return all;
  }

  const ExactPreparedSizes sizes;

 private:
  std::vector<unsigned char> bytes_;

 public:
  const ExactPrepared prepared;
  const absl::Status status;
};

}  // namespace h3rt
