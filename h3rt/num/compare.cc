#include "h3rt/num/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "h3rt/num/bf16.h"
#include "h3rt/num/f16.h"

namespace h3rt {
namespace {

// Maps the bits of a sign-magnitude float to integers in the order of the values, with both zeros
// at 0.
template <typename Bits>
int64_t Ordered(Bits bits) {
  constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  const auto magnitude = static_cast<int64_t>(static_cast<Bits>(bits & ~kSign));
  return (bits & kSign) != 0 ? -magnitude : magnitude;
}

int64_t Distance(int64_t a, int64_t b) {
  int64_t distance = 0;
  // Doubles of unlike sign may lie further apart than int64_t counts.
  if (__builtin_sub_overflow(std::max(a, b), std::min(a, b), &distance)) {
    return std::numeric_limits<int64_t>::max();
  }
  return distance;
}

template <typename Bits>
int64_t UnlikeBytes(Bits a, Bits b) {
  int64_t count = 0;
  auto unlike = static_cast<uint64_t>(static_cast<Bits>(a ^ b));
  for (; unlike != 0; unlike >>= 8) count += (unlike & 0xffu) != 0 ? 1 : 0;
  return count;
}

template <typename Bits>
struct Pair {
  double actual = 0;
  double expected = 0;
  Bits actual_bits = 0;
  Bits expected_bits = 0;
};

std::string WhyNotComparable(size_t actual, size_t expected) {
  if (actual != expected) {
    return fmt::format("unlike sizes: got {} elements, wanted {}", actual, expected);
  }
  if (actual == 0) return "nothing to compare";
  return {};
}

// The first element of each kind of difference, in the order of CompareResult::worst_index.
struct Worst {
  int64_t nonfinite = -1;
  int64_t largest = -1;
  int64_t bytes = -1;

  int64_t index() const {
    if (nonfinite >= 0) return nonfinite;
    return largest >= 0 ? largest : bytes;
  }
};

// get(i) gives Pair<Bits> number i.
template <typename Bits, typename Get>
CompareResult CompareElements(size_t actual_n, size_t expected_n, const Get& get) {
  CompareResult result;
  result.reason = WhyNotComparable(actual_n, expected_n);
  if (!result.reason.empty()) return result;
  result.comparable = true;
  result.n = static_cast<int64_t>(actual_n);
  result.mismatched_bytes = 0;
  result.max_ulp = 0;
  double squares_of_difference = 0;
  double squares_of_expected = 0;
  double max_abs = 0;
  Worst worst;
  for (int64_t i = 0; i < result.n; ++i) {
    const Pair<Bits> pair = get(static_cast<size_t>(i));
    const int64_t unlike = UnlikeBytes(pair.actual_bits, pair.expected_bits);
    result.mismatched_bytes += unlike;
    if (unlike > 0 && worst.bytes < 0) worst.bytes = i;
    if (!std::isfinite(pair.actual) || !std::isfinite(pair.expected)) {
      if (unlike == 0) continue;
      if (result.nonfinite_mismatches++ == 0) worst.nonfinite = i;
      continue;
    }
    ++result.finite;
    const double difference = std::fabs(pair.actual - pair.expected);
    squares_of_difference += difference * difference;
    squares_of_expected += pair.expected * pair.expected;
    if (difference > max_abs) {
      max_abs = difference;
      worst.largest = i;
    }
    result.max_ulp =
        std::max(result.max_ulp, Distance(Ordered(pair.actual_bits), Ordered(pair.expected_bits)));
  }
  result.worst_index = worst.index();
  if (result.worst_index >= 0) {
    const Pair<Bits> pair = get(static_cast<size_t>(result.worst_index));
    result.worst_actual = pair.actual;
    result.worst_expected = pair.expected;
  }
  if (result.nonfinite_mismatches > 0) {
    result.max_ulp = std::numeric_limits<int64_t>::max();
    return result;  // the other measures stay NaN
  }
  result.max_abs = max_abs;
  if (max_abs == 0) {
    result.relative_l2 = 0;
  } else if (squares_of_expected == 0) {
    result.relative_l2 = std::numeric_limits<double>::infinity();
  } else {
    result.relative_l2 = std::sqrt(squares_of_difference / squares_of_expected);
  }
  return result;
}

template <float (*kDecode)(uint16_t)>
CompareResult CompareHalves(std::span<const uint16_t> actual, std::span<const uint16_t> expected) {
  return CompareElements<uint16_t>(actual.size(), expected.size(), [&](size_t i) {
    return Pair<uint16_t>{.actual = kDecode(actual[i]),
                          .expected = kDecode(expected[i]),
                          .actual_bits = actual[i],
                          .expected_bits = expected[i]};
  });
}

std::string ShapeText(Extents shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

// The elements of a shape, or -1 where the product overflows or an extent is negative.
int64_t ElementsOf(Extents shape) {
  int64_t n = 1;
  for (const int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(n, extent, &n)) return -1;
  }
  return n;
}

std::string WhyShapesDiffer(size_t actual_n, Extents actual_shape, size_t expected_n,
                            Extents expected_shape) {
  if (!std::equal(actual_shape.begin(), actual_shape.end(), expected_shape.begin(),
                  expected_shape.end())) {
    return fmt::format("unlike shapes: got {}, wanted {}", ShapeText(actual_shape),
                       ShapeText(expected_shape));
  }
  const int64_t n = ElementsOf(actual_shape);
  if (n < 0 || actual_n != static_cast<size_t>(n) || expected_n != static_cast<size_t>(n)) {
    return fmt::format("shape {} does not describe {} and {} elements", ShapeText(actual_shape),
                       actual_n, expected_n);
  }
  return {};
}

CompareResult NotComparable(std::string reason) {
  CompareResult result;
  result.reason = std::move(reason);
  return result;
}

bool Measured(const CompareResult& result) {
  return result.comparable && result.finite > 0 && result.nonfinite_mismatches == 0;
}

}  // namespace

CompareResult CompareBytes(std::span<const std::byte> actual, std::span<const std::byte> expected) {
  CompareResult result;
  result.reason = WhyNotComparable(actual.size(), expected.size());
  if (!result.reason.empty()) return result;
  result.comparable = true;
  result.n = static_cast<int64_t>(actual.size());
  result.finite = result.n;
  result.mismatched_bytes = 0;
  result.max_ulp = -1;
  for (size_t i = 0; i < actual.size(); ++i) {
    if (actual[i] == expected[i]) continue;
    if (result.mismatched_bytes++ > 0) continue;
    result.worst_index = static_cast<int64_t>(i);
    result.worst_actual = std::to_integer<int>(actual[i]);
    result.worst_expected = std::to_integer<int>(expected[i]);
  }
  return result;
}

CompareResult CompareFloats(std::span<const float> actual, std::span<const float> expected) {
  return CompareElements<uint32_t>(actual.size(), expected.size(), [&](size_t i) {
    return Pair<uint32_t>{.actual = actual[i],
                          .expected = expected[i],
                          .actual_bits = std::bit_cast<uint32_t>(actual[i]),
                          .expected_bits = std::bit_cast<uint32_t>(expected[i])};
  });
}

CompareResult CompareDoubles(std::span<const double> actual, std::span<const double> expected) {
  return CompareElements<uint64_t>(actual.size(), expected.size(), [&](size_t i) {
    return Pair<uint64_t>{.actual = actual[i],
                          .expected = expected[i],
                          .actual_bits = std::bit_cast<uint64_t>(actual[i]),
                          .expected_bits = std::bit_cast<uint64_t>(expected[i])};
  });
}

CompareResult CompareBf16(std::span<const uint16_t> actual, std::span<const uint16_t> expected) {
  return CompareHalves<Bf16ToFloat>(actual, expected);
}

CompareResult CompareF16(std::span<const uint16_t> actual, std::span<const uint16_t> expected) {
  return CompareHalves<F16ToFloat>(actual, expected);
}

CompareResult CompareToReference(std::span<const float> actual, std::span<const double> expected) {
  return CompareElements<uint32_t>(actual.size(), expected.size(), [&](size_t i) {
    return Pair<uint32_t>{
        .actual = actual[i],
        .expected = expected[i],
        .actual_bits = std::bit_cast<uint32_t>(actual[i]),
        .expected_bits = std::bit_cast<uint32_t>(static_cast<float>(expected[i]))};
  });
}

CompareResult CompareFloats(std::span<const float> actual, Extents actual_shape,
                            std::span<const float> expected, Extents expected_shape) {
  std::string reason =
      WhyShapesDiffer(actual.size(), actual_shape, expected.size(), expected_shape);
  if (!reason.empty()) return NotComparable(std::move(reason));
  return CompareFloats(actual, expected);
}

CompareResult CompareBytes(std::span<const std::byte> actual, Extents actual_shape,
                           std::span<const std::byte> expected, Extents expected_shape,
                           int64_t element_bytes) {
  const auto size = static_cast<size_t>(element_bytes);
  if (element_bytes <= 0 || actual.size() % size != 0 || expected.size() % size != 0) {
    return NotComparable(fmt::format("{} and {} bytes are not whole elements of {} bytes",
                                     actual.size(), expected.size(), element_bytes));
  }
  std::string reason =
      WhyShapesDiffer(actual.size() / size, actual_shape, expected.size() / size, expected_shape);
  if (!reason.empty()) return NotComparable(std::move(reason));
  return CompareBytes(actual, expected);
}

// Every verdict asks `err <= bound`, never `err > bound`, so that NaN on either side fails.
bool Identical(const CompareResult& result) {
  return result.comparable && result.n > 0 && result.mismatched_bytes == 0;
}

bool Within(const CompareResult& result, double relative_l2_bound) {
  return Measured(result) && result.relative_l2 <= relative_l2_bound;
}

bool WithinAbs(const CompareResult& result, double max_abs_bound) {
  return Measured(result) && result.max_abs <= max_abs_bound;
}

bool WithinUlp(const CompareResult& result, int64_t max_ulp_bound) {
  return Measured(result) && result.max_ulp >= 0 && result.max_ulp <= max_ulp_bound;
}

std::string Describe(const CompareResult& result) {
  if (!result.comparable) return "not comparable: " + result.reason;
  std::string out = fmt::format("{} elements, {} unlike bytes", result.n, result.mismatched_bytes);
  if (result.max_ulp >= 0) {
    out += fmt::format(", relative L2 {:.3g}, max abs {:.3g}, max ulp {}", result.relative_l2,
                       result.max_abs, result.max_ulp);
  }
  if (result.nonfinite_mismatches > 0) {
    out += fmt::format(", {} unlike values that are not finite", result.nonfinite_mismatches);
  }
  if (result.worst_index >= 0) {
    out += fmt::format(", worst at {}: got {:.9g}, wanted {:.9g}", result.worst_index,
                       result.worst_actual, result.worst_expected);
  }
  return out;
}

}  // namespace h3rt
