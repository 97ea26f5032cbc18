// Widening of 16-bit floats and rounding to bfloat16, for whole rows.
#pragma once

#include <cstdint>

#include "h3rt/num/bf16.h"
#include "h3rt/num/f16.h"
#include "h3rt/tensor/view.h"

namespace h3rt {

// n contiguous elements of F32, BF16 or F16, beginning `offset` elements into `view`, as floats.
// Exact.
void WidenRow(const ConstTensorView& view, int64_t offset, int64_t n, float* to);

// Element `offset` (in elements from the first) of a F32, BF16, F16 or F64 view.
double LoadElement(const ConstTensorView& view, int64_t offset);

// For references in float64: the value, or its bfloat16 rounding by way of float32.
inline double RoundedIf(bool round_bf16, double value) {
  return round_bf16 ? static_cast<double>(RoundToBf16(static_cast<float>(value))) : value;
}

// x = RoundToBf16(x) for n elements.
void RoundRowToBf16(float* x, int64_t n);

}  // namespace h3rt
