#include "h3rt/harness/attention_compare.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "h3rt/base/check.h"
#include "h3rt/base/hash.h"
#include "h3rt/kernels/attention/exact/public_layout.h"
#include "h3rt/kernels/attention/exact/type16.h"
#include "h3rt/kernels/attention/oracle/oracle.h"

namespace h3rt::lab {
namespace {

// Products that a reference of all rows may take, and the rows beyond that.
constexpr double kCheapProducts = 2e10;
constexpr int64_t kLeastRows = 32;

std::vector<std::byte> Copy(const void* data, int64_t bytes) {
  const auto* const from = static_cast<const std::byte*>(data);
  return {from, from + bytes};
}
template <typename T>
std::vector<std::byte> Copy(const std::vector<T>& values) {
  return Copy(values.data(), static_cast<int64_t>(values.size() * sizeof(T)));
}

// The distance of neighbours of a value in the type: one unit of its last place.
double UnitOf(ExactType type, double value) {
  const int digits = type == ExactType::kBf16 ? 7 : 10;
  const int least = type == ExactType::kBf16 ? -126 : -14;
  const int exponent = value == 0 ? least : std::max(least, std::ilogb(value));
  return std::ldexp(1.0, exponent - digits);
}

double FloatUnit(float value) {
  return std::ldexp(1.0, (value == 0 ? -126 : std::max(-126, std::ilogb(value))) - 23);
}

void MergeInto(LseDifference& total, const LseDifference& part) {
  total.elements += part.elements;
  total.differing += part.differing;
  total.beyond_unit += part.beyond_unit;
  total.max_difference = std::max(total.max_difference, part.max_difference);
}

}  // namespace

OutputHashes HashOutput(const ExactProblem& p, std::span<const uint16_t> o, ThreadPool& pool) {
  OutputHashes hashes;
  hashes.heads.resize(static_cast<size_t>(p.q_heads));
  // Task 0 is the whole; it is the longest.
  const absl::Status done = pool.ParallelFor(p.q_heads + 1, nullptr, [&](int64_t task) {
    if (task == 0) {
      hashes.whole = Sha256Hex(std::as_bytes(o));
      return absl::OkStatus();
    }
    const auto head = static_cast<size_t>(task - 1);
    const auto dim = static_cast<size_t>(p.head_dim);
    Sha256 hash;
    for (size_t row = 0; row < static_cast<size_t>(p.batch * p.q_len); ++row) {
      const size_t at = (row * static_cast<size_t>(p.q_heads) + head) * dim;
      hash.Update(std::as_bytes(o.subspan(at, dim)));
    }
    hashes.heads[head] = hash.Finish();
    return absl::OkStatus();
  });
  H3RT_CHECK(done.ok());
  return hashes;
}

absl::StatusOr<std::vector<std::byte>> PreparedBytes(const ExactProblem& p,
                                                     const ExactPrepared& prepared,
                                                     std::string_view tensor) {
  const ExactPreparedSizes sizes = PreparedSizes(p);
  const int64_t dim = p.padded_dim();
  if (tensor == "q_int8") {
    return Copy(PublicCodes(prepared.q8, p.batch, p.q_heads, p.q_len, dim));
  }
  if (tensor == "k_int8") {
    return Copy(PublicCodes(prepared.k8, p.batch, p.k_heads, p.k_len, dim));
  }
  if (tensor == "v_fp8") {
    return Copy(PublicValueCodes(prepared.v8, p.batch, p.k_heads, p.k_len, dim));
  }
  if (tensor == "q_scale") return Copy(prepared.q_scale, sizes.q_scale * 4);
  if (tensor == "k_scale") return Copy(prepared.k_scale, sizes.k_scale * 4);
  if (tensor == "v_scale") return Copy(prepared.v_scale, sizes.v_scale * 4);
  if (tensor == "k_mean") return Copy(prepared.k_mean, sizes.k_mean * 2);
  return InvalidArgument({.what = "prepared tensor",
                          .got = std::string(tensor),
                          .wanted = "q_int8, q_scale, k_int8, k_scale, v_fp8, v_scale or k_mean"});
}

std::vector<std::pair<std::string, std::string>> PreparedKeys(const ExactProblem& p) {
  const std::string codes =
      std::string(p.path == ExactPath::kB ? "sm90." : "sm89.") +
      (p.granularity == ExactGranularity::kPerWarp ? "per_warp." : "per_thread.");
  const std::string values = p.path == ExactPath::kA16 ? "v2.25." : "v448.0.";
  std::vector<std::pair<std::string, std::string>> keys;
  for (const char* tensor : {"q_int8", "q_scale", "k_int8", "k_scale"}) {
    keys.emplace_back(codes + tensor, tensor);
  }
  for (const char* tensor : {"v_fp8", "v_scale"}) keys.emplace_back(values + tensor, tensor);
  return keys;
}

LseDifference CompareLse(const ExactProblem& p, const uint16_t* k_mean,
                         std::span<const float> lse_raw, std::span<const float> lse,
                         std::span<const float> wanted, ThreadPool& pool) {
  const int64_t tensors = p.batch * p.q_heads;
  std::vector<LseDifference> parts(static_cast<size_t>(tensors));
  const auto* const q = static_cast<const uint16_t*>(p.q.data);
  const int64_t group = p.q_heads / p.k_heads;
  const absl::Status done = pool.ParallelFor(tensors, nullptr, [&](int64_t tensor) {
    LseDifference& part = parts[static_cast<size_t>(tensor)];
    const int64_t b = tensor / p.q_heads;
    const int64_t h = tensor % p.q_heads;
    const uint16_t* const mean = k_mean + (b * p.k_heads + h / group) * p.padded_dim();
    for (int64_t n = 0; n < p.q_len; ++n) {
      const uint16_t* const row =
          q + b * p.q.batch_stride + n * p.q.row_stride + h * p.q.head_stride;
      double dot = 0;
      for (int64_t d = 0; d < p.head_dim; ++d) {
        dot += static_cast<double>(WidenExact(p.type, row[d])) *
               static_cast<double>(WidenExact(p.type, mean[d]));
      }
      const auto at = static_cast<size_t>(tensor * p.q_len + n);
      const float correction = WidenExact(p.type, NarrowExactOnce(p.type, dot));
      const float expected = wanted.empty() ? lse_raw[at] + correction * p.sm_scale : wanted[at];
      ++part.elements;
      if (std::bit_cast<uint32_t>(expected) == std::bit_cast<uint32_t>(lse[at])) continue;
      ++part.differing;
      const double difference = std::fabs(static_cast<double>(expected) - lse[at]);
      const double most = UnitOf(p.type, dot) * 1.0000002 * p.sm_scale + FloatUnit(lse[at]) +
                          FloatUnit(correction * p.sm_scale);
      // Also when a side is not finite.
      if (!(difference <= most)) ++part.beyond_unit;
      part.max_difference = std::isnan(difference) ? std::numeric_limits<double>::infinity()
                                                   : std::max(part.max_difference, difference);
    }
    return absl::OkStatus();
  });
  H3RT_CHECK(done.ok());
  LseDifference total;
  for (const LseDifference& part : parts) MergeInto(total, part);
  return total;
}

absl::StatusOr<FloatReference> FloatReference::Create(const ExactProblem& problem, ThreadPool& pool,
                                                      const CancelToken& cancel) {
  FloatReference reference;
  reference.problem_ = problem;
  const double row = static_cast<double>(problem.batch * problem.q_heads) *
                     static_cast<double>(problem.k_len * problem.head_dim) * 2;
  int64_t rows = static_cast<int64_t>(std::min(kCheapProducts / std::max(row, 1.0), 1e15));
  rows = std::min(problem.q_len, std::max(kLeastRows, rows));
  for (int64_t i = 0; i < rows; ++i) {
    reference.rows_.push_back(rows == 1 ? 0 : i * (problem.q_len - 1) / (rows - 1));
  }
  const auto elements =
      static_cast<size_t>(problem.batch * problem.q_len * problem.q_heads * problem.head_dim);
  reference.o_.reset(new double[std::max<size_t>(elements, 1)]);  // not touched: it may be large
  H3RT_RETURN_IF_ERROR(pool.ParallelFor(rows, &cancel, [&](int64_t i) {
    const int64_t at = reference.rows_[static_cast<size_t>(i)];
    return Float64Attention(problem, at, at + 1, reference.o_.get(), nullptr);
  }));
  return reference;
}

FloatReference::Error FloatReference::Of(std::span<const uint16_t> o) const {
  std::vector<double> errors, squares;  // of each (batch, row, head)
  for (int64_t b = 0; b < problem_.batch; ++b) {
    for (const int64_t row : rows_) {
      for (int64_t h = 0; h < problem_.q_heads; ++h) {
        const int64_t at = ((b * problem_.q_len + row) * problem_.q_heads + h) * problem_.head_dim;
        double error = 0, square = 0;
        for (int64_t d = at; d < at + problem_.head_dim; ++d) {
          const double wanted = o_[static_cast<size_t>(d)];
          const double off = WidenExact(problem_.type, o[static_cast<size_t>(d)]) - wanted;
          error += off * off;
          square += wanted * wanted;
        }
        errors.push_back(error);
        squares.push_back(square);
      }
    }
  }
  double error = 0, square = 0;
  for (size_t i = 0; i < errors.size(); ++i) {
    error += errors[i];
    square += squares[i];
  }
  if (!std::isfinite(error)) return {std::numeric_limits<double>::infinity(), 0};
  if (square == 0) return {error == 0 ? 0 : std::numeric_limits<double>::infinity(), 0};
  const double ratio = error / square;
  if (whole() || ratio == 0) return {std::sqrt(ratio), 0};
  // A ratio of means: its variance by linearisation, halved for the root.
  const auto n = static_cast<double>(errors.size());
  double scatter = 0;
  for (size_t i = 0; i < errors.size(); ++i) {
    const double residual = errors[i] - ratio * squares[i];
    scatter += residual * residual;
  }
  const double deviation = std::sqrt(scatter / (n * (n - 1))) / (square / n);
  return {std::sqrt(ratio), 0.5 * deviation / std::sqrt(ratio)};
}

}  // namespace h3rt::lab
