// Preparation of the contract: the mean of K, INT8 codes of Q and K, e4m3 codes of V.

#include <cstring>
#include <vector>

#include "h3rt/kernels/attention/exact/mean_order.h"
#include "h3rt/kernels/attention/exact/type16.h"
#include "h3rt/kernels/attention/oracle/oracle.h"
#include "h3rt/kernels/attention/oracle/strict_f32.h"

namespace h3rt {
namespace {

using strict::AbsFtz;
using strict::AddFtz;
using strict::FromBits;
using strict::MaxFtz;
using strict::MulFtz;

bool IsFinite(ExactType type, uint16_t bits) {
  const uint32_t exponent = type == ExactType::kBf16 ? 0x7f80u : 0x7c00u;
  return (bits & exponent) != exponent;
}

// One of q, k, v with its extents: rows as float32 with the zero channels that pad head_dim.
struct Rows {
  const ExactInput& input;
  ExactType type;
  int64_t batch, len, heads, head_dim;

  const char* At(int64_t b, int64_t row, int64_t h) const {
    const int64_t offset = b * input.batch_stride + row * input.row_stride + h * input.head_stride;
    return static_cast<const char*>(input.data) + offset * 2;
  }
  void Widen(int64_t b, int64_t row, int64_t h, float* to) const {
    const char* const from = At(b, row, h);
    for (int64_t c = 0; c < head_dim; ++c) {
      uint16_t bits = 0;
      std::memcpy(&bits, from + c * 2, 2);
      to[c] = WidenExact(type, bits);
    }
  }
  uint64_t FirstNotFinite() const {
    uint64_t index = 0;
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t row = 0; row < len; ++row) {
        for (int64_t h = 0; h < heads; ++h) {
          const char* const from = At(b, row, h);
          for (int64_t c = 0; c < head_dim; ++c, ++index) {
            uint16_t bits = 0;
            std::memcpy(&bits, from + c * 2, 2);
            if (!IsFinite(type, bits)) return index;
          }
        }
      }
    }
    return kAllFinite;
  }
};

class Preparer {
 public:
  Preparer(const ExactProblem& problem, const OracleHardware& hardware,
           const ExactPrepared& prepared)
      : p_(problem),
        out_(prepared),
        g_(exact::GeometryOf(problem.path)),
        rcp_(hardware.rcp != nullptr ? hardware.rcp : &strict::Rcp),
        dim_(problem.padded_dim()),
        chunks_(exact::CeilDiv(problem.k_len, kMeanChunk)),
        q_{problem.q,     problem.type,    problem.batch,
           problem.q_len, problem.q_heads, problem.head_dim},
        k_{problem.k,     problem.type,    problem.batch,
           problem.k_len, problem.k_heads, problem.head_dim},
        v_{problem.v,     problem.type,    problem.batch,
           problem.k_len, problem.k_heads, problem.head_dim} {}

  void Run() {
    out_.not_finite[0] = q_.FirstNotFinite();
    out_.not_finite[1] = k_.FirstNotFinite();
    out_.not_finite[2] = v_.FirstNotFinite();
    for (int64_t b = 0; b < p_.batch; ++b) {
      for (int64_t h = 0; h < p_.k_heads; ++h) {
        Partials(b, h);
        Mean(b, h);
        QuantizeV(b, h);
      }
    }
    Quantize(q_, /*is_k=*/false);
    Quantize(k_, /*is_k=*/true);
  }

 private:
  bool computes_mean() const { return p_.smooth_k && p_.given_k_mean == nullptr; }
  int64_t KHead(int64_t b, int64_t h) const { return b * p_.k_heads + h; }
  float* Partial(int64_t b, int64_t h, int64_t chunk, int which) const {
    return out_.partials + ((KHead(b, h) * chunks_ + chunk) * 2 + which) * dim_;
  }

  // For each chunk the sum of K, in the order of mean_order.h, and the maximum of |V|.
  void Partials(int64_t b, int64_t h) {
    const auto width = static_cast<size_t>(dim_);
    std::vector<float> lanes(exact::kMeanLanes * width);
    std::vector<float> row(width, 0.0f);
    for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
      float* const sums = Partial(b, h, chunk, 0);
      float* const maxima = Partial(b, h, chunk, 1);
      std::fill(sums, sums + dim_, 0.0f);
      std::fill(maxima, maxima + dim_, 0.0f);
      std::fill(lanes.begin(), lanes.end(), 0.0f);
      const int64_t begin = chunk * kMeanChunk;
      const int64_t end = std::min(begin + kMeanChunk, p_.k_len);
      for (int64_t key = begin; key < end; ++key) {
        v_.Widen(b, key, h, row.data());
        for (int c = 0; c < dim_; ++c)
          maxima[c] = MaxFtz(maxima[c], AbsFtz(row[static_cast<size_t>(c)]));
        if (!computes_mean()) continue;
        k_.Widen(b, key, h, row.data());
        float* const lane = lanes.data() + (key - begin) % exact::kMeanLanes * dim_;
        for (int c = 0; c < dim_; ++c) lane[c] = AddFtz(lane[c], row[static_cast<size_t>(c)]);
      }
      if (!computes_mean()) continue;
      std::copy(lanes.begin(), lanes.begin() + dim_, sums);
      for (int r = 1; r < exact::kMeanLanes; ++r) {
        const float* const lane = lanes.data() + r * dim_;
        for (int c = 0; c < dim_; ++c) sums[c] = AddFtz(sums[c], lane[c]);
      }
    }
  }

  void Mean(int64_t b, int64_t h) {
    uint16_t* const mean = out_.k_mean + KHead(b, h) * dim_;
    std::fill(mean, mean + dim_, uint16_t{0});
    if (!p_.smooth_k) return;
    if (p_.given_k_mean != nullptr) {
      const uint16_t* const given = p_.given_k_mean + KHead(b, h) * p_.head_dim;
      std::copy(given, given + p_.head_dim, mean);
      return;
    }
    if (chunks_ == 0) return;
    const float factor = strict::RoundFtz(1.0 / static_cast<double>(p_.k_len));
    for (int c = 0; c < dim_; ++c) {
      float sum = Partial(b, h, 0, 0)[c];
      for (int64_t chunk = 1; chunk < chunks_; ++chunk) {
        sum = AddFtz(sum, Partial(b, h, chunk, 0)[c]);
      }
      mean[c] = NarrowExact(p_.type, MulFtz(sum, factor));
    }
  }

  // What of V is quantised to which code; a channel of zeros: see ExactProblem::zero_v_nan.
  void QuantizeV(int64_t b, int64_t h) {
    const int64_t rows = exact::RoundUp(p_.k_len, exact::kRowPad);
    const int64_t contract_rows = exact::RoundUp(p_.k_len, g_.v_pad);
    const auto width = static_cast<size_t>(dim_);
    uint8_t* const codes = out_.v8 + KHead(b, h) * dim_ * rows;
    std::memset(codes, 0, static_cast<size_t>(rows) * width);
    std::vector<float> inverse(width);
    std::vector<char> zero(width);
    const float v_max = FromBits(g_.v_max);
    for (size_t c = 0; c < width; ++c) {
      float amax = 0.0f;
      for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
        amax = MaxFtz(amax, Partial(b, h, chunk, 1)[c]);
      }
      zero[c] = amax == 0.0f && !p_.zero_v_nan;
      out_.v_scale[KHead(b, h) * dim_ + static_cast<int64_t>(c)] = MulFtz(amax, rcp_(v_max));
      inverse[c] = MulFtz(rcp_(amax), v_max);
    }
    std::vector<float> row(width, 0.0f);
    for (int64_t key = 0; key < contract_rows; ++key) {
      if (key < p_.k_len) {
        v_.Widen(b, key, h, row.data());
      } else {
        std::fill(row.begin(), row.end(), 0.0f);
      }
      const int64_t at = key / 16 * 16 + exact::VPosition(static_cast<int>(key % 16));
      for (size_t c = 0; c < width; ++c) {
        if (zero[c]) continue;
        codes[static_cast<int64_t>(c) * rows + at] = strict::ToE4m3(MulFtz(row[c], inverse[c]));
      }
    }
  }

  // Row `row` of q or of smoothed k. The published per_thread path rounds the latter to its type.
  void Smoothed(const Rows& rows, bool is_k, int64_t b, int64_t row, int64_t h, float* to) const {
    rows.Widen(b, row, h, to);
    if (!is_k || !p_.smooth_k) return;
    const uint16_t* const mean = out_.k_mean + KHead(b, h) * dim_;
    for (int c = 0; c < dim_; ++c) {
      const float x = strict::SubFtz(to[c], WidenExact(p_.type, mean[c]));
      to[c] = p_.granularity == ExactGranularity::kPerWarp
                  ? x
                  : WidenExact(p_.type, NarrowExact(p_.type, x));
    }
  }

  void Quantize(const Rows& rows, bool is_k) {
    const bool per_warp = p_.granularity == ExactGranularity::kPerWarp;
    const int64_t scales = is_k ? exact::KScales(g_, p_.granularity, rows.len)
                                : exact::QScales(g_, p_.granularity, rows.len);
    const int64_t padded = exact::RoundUp(rows.len, exact::kRowPad);
    const auto width = static_cast<size_t>(dim_);
    std::vector<float> amax(static_cast<size_t>(scales));
    std::vector<float> inverse(amax.size());
    std::vector<float> row(width, 0.0f);
    const auto group = [&](int64_t i) {
      return static_cast<size_t>(is_k ? exact::KScaleIndex(g_, p_.granularity, i)
                                      : exact::QScaleIndex(g_, p_.granularity, i));
    };
    for (int64_t bh = 0; bh < rows.batch * rows.heads; ++bh) {
      const int64_t b = bh / rows.heads;
      const int64_t h = bh % rows.heads;
      std::fill(amax.begin(), amax.end(), per_warp ? FromBits(exact::kEpsilon) : 0.0f);
      for (int64_t i = 0; i < rows.len; ++i) {
        Smoothed(rows, is_k, b, i, h, row.data());
        float& most = amax[group(i)];
        for (const float x : row) most = MaxFtz(most, AbsFtz(x));
      }
      float* const scale = (is_k ? out_.k_scale : out_.q_scale) + bh * scales;
      for (size_t i = 0; i < amax.size(); ++i) {
        scale[i] = per_warp ? MulFtz(amax[i], FromBits(exact::kOver127))
                            : strict::FmaFtz(amax[i], FromBits(exact::kOver127),
                                             FromBits(exact::kEpsilon));
        inverse[i] = per_warp ? MulFtz(rcp_(amax[i]), FromBits(exact::k127)) : rcp_(scale[i]);
      }
      int8_t* const codes = (is_k ? out_.k8 : out_.q8) + bh * padded * dim_;
      std::memset(codes, 0, static_cast<size_t>(padded) * width);
      for (int64_t i = 0; i < rows.len; ++i) {
        Smoothed(rows, is_k, b, i, h, row.data());
        const float factor = inverse[group(i)];
        for (int c = 0; c < dim_; ++c) {
          codes[i * dim_ + c] = Code(MulFtz(row[static_cast<size_t>(c)], factor), per_warp);
        }
      }
    }
  }

  // per_warp: half to even. per_thread: half away from zero, as one addition rounded to float32.
  static int8_t Code(float y, bool per_warp) {
    if (per_warp) return strict::ToS8Even(y);
    return strict::ToS8Truncated(AddFtz(y, y >= 0.0f ? 0.5f : -0.5f));
  }

  const ExactProblem& p_;
  const ExactPrepared& out_;
  const exact::Geometry g_;
  float (*const rcp_)(float);
  const int dim_;
  const int64_t chunks_;
  const Rows q_;
  const Rows k_;
  const Rows v_;
};

absl::Status CheckBuffers(const ExactProblem& problem, const ExactPrepared& prepared) {
  const bool inputs = problem.batch >= 0 && problem.q_len >= 0 && problem.k_len >= 0 &&
                      problem.q_heads >= 0 && problem.k_heads >= 0 && problem.padded_dim() != 0;
  if (!inputs) {
    return InvalidArgument(
        {.what = "OraclePrepare: extents",
         .got = "a negative one, or head_dim " + std::to_string(problem.head_dim),
         .wanted = "what CheckExactProblem takes"});
  }
  const ExactPreparedSizes sizes = PreparedSizes(problem);
  const struct {
    const char* name;
    const void* data;
    int64_t elements;
  } needed[] = {
      {"q", problem.q.data, sizes.q8},
      {"k", problem.k.data, sizes.k8},
      {"v", problem.v.data, sizes.v8},
      {"prepared.q8", prepared.q8, sizes.q8},
      {"prepared.k8", prepared.k8, sizes.k8},
      {"prepared.v8", prepared.v8, sizes.v8},
      {"prepared.q_scale", prepared.q_scale, sizes.q_scale},
      {"prepared.k_scale", prepared.k_scale, sizes.k_scale},
      {"prepared.v_scale", prepared.v_scale, sizes.v_scale},
      {"prepared.k_mean", prepared.k_mean, sizes.k_mean},
      {"prepared.partials", prepared.partials, sizes.partials},
      {"prepared.not_finite", prepared.not_finite, sizes.not_finite},
  };
  for (const auto& [name, data, elements] : needed) {
    if (data != nullptr || elements == 0) continue;
    return InvalidArgument({.what = std::string("OraclePrepare: ") + name,
                            .got = "null",
                            .wanted = std::to_string(elements) + " elements"});
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status OraclePrepare(const ExactProblem& problem, const OracleHardware& hardware,
                           const ExactPrepared& prepared) {
  H3RT_RETURN_IF_ERROR(CheckBuffers(problem, prepared));
  Preparer(problem, hardware, prepared).Run();
  return absl::OkStatus();
}

}  // namespace h3rt
