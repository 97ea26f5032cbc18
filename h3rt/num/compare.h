// Comparators of results. They are made so that a fault cannot pass: a value that is not finite
// fails unless both sides have the same bits, unlike shapes fail, and nothing compared fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

namespace h3rt {

struct CompareResult {
  // False for unlike sizes or shapes, and for empty input; `reason` says which. The measures below
  // then keep their failing defaults.
  bool comparable = false;
  std::string reason;
  int64_t n = 0;       // elements compared
  int64_t finite = 0;  // of these, finite on both sides: the ones the measures below are over
  // ||actual - expected|| / ||expected||, summed in double; NaN when nonfinite_mismatches > 0, and
  // infinite when something differs from an expectation of zeros.
  double relative_l2 = std::numeric_limits<double>::quiet_NaN();
  double max_abs = std::numeric_limits<double>::quiet_NaN();  // largest |actual - expected|
  // The first element that is not finite and unlike, else the one with the largest difference, else
  // the first whose bytes differ, else -1.
  int64_t worst_index = -1;
  double worst_actual = 0;
  double worst_expected = 0;
  // Largest distance in representable values of the element type (+0 and -0 are the same);
  // INT64_MAX when nonfinite_mismatches > 0. -1 where the type has no such measure.
  int64_t max_ulp = std::numeric_limits<int64_t>::max();
  int64_t mismatched_bytes = std::numeric_limits<int64_t>::max();
  int64_t nonfinite_mismatches = 0;  // not finite on one side at least, and not the same bits
};

using Extents = std::span<const int64_t>;

CompareResult CompareBytes(std::span<const std::byte> actual, std::span<const std::byte> expected);
CompareResult CompareFloats(std::span<const float> actual, std::span<const float> expected);
CompareResult CompareDoubles(std::span<const double> actual, std::span<const double> expected);
CompareResult CompareBf16(std::span<const uint16_t> actual, std::span<const uint16_t> expected);
CompareResult CompareF16(std::span<const uint16_t> actual, std::span<const uint16_t> expected);
// Against a float64 reference: bytes and ulp are those of the reference rounded to float32, the
// other measures are against the reference itself.
CompareResult CompareToReference(std::span<const float> actual, std::span<const double> expected);

// The same with shapes: unlike shapes fail even where the counts agree, and so does a span that
// does not hold what its shape says.
CompareResult CompareFloats(std::span<const float> actual, Extents actual_shape,
                            std::span<const float> expected, Extents expected_shape);
CompareResult CompareBytes(std::span<const std::byte> actual, Extents actual_shape,
                           std::span<const std::byte> expected, Extents expected_shape,
                           int64_t element_bytes);

// Verdicts. All are false for what was not comparable, for bounds that are negative or NaN, and
// (Within...) where no element was finite: a result that is NaN throughout proves nothing.
[[nodiscard]] bool Identical(const CompareResult& result);  // every byte
[[nodiscard]] bool Within(const CompareResult& result, double relative_l2_bound);
[[nodiscard]] bool WithinAbs(const CompareResult& result, double max_abs_bound);
[[nodiscard]] bool WithinUlp(const CompareResult& result, int64_t max_ulp_bound);

// One line for messages and tables.
std::string Describe(const CompareResult& result);

}  // namespace h3rt
