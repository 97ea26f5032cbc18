#include "h3rt/cpu/convert.h"

#include <cstring>

#include "h3rt/cpu/multiversion.h"

namespace h3rt {
namespace {

H3RT_MULTIVERSION void WidenBf16Row(const uint16_t* from, int64_t n, float* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = Bf16ToFloat(from[i]);
}

H3RT_MULTIVERSION void WidenF16Row(const uint16_t* from, int64_t n, float* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = F16ToFloat(from[i]);
}

H3RT_MULTIVERSION void RoundRow(float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = RoundToBf16(x[i]);
}

}  // namespace

void WidenRow(const ConstTensorView& view, int64_t offset, int64_t n, float* to) {
  if (n <= 0) return;
  switch (view.dtype()) {
    case DType::kF32:
      std::memcpy(to, view.as<float>() + offset, static_cast<size_t>(n) * sizeof(float));
      return;
    case DType::kBF16:
      WidenBf16Row(view.as<uint16_t>() + offset, n, to);
      return;
    case DType::kF16:
      WidenF16Row(view.as<uint16_t>() + offset, n, to);
      return;
    default:
      H3RT_CHECK(false && "WidenRow takes F32, BF16 and F16");
  }
}

double LoadElement(const ConstTensorView& view, int64_t offset) {
  if (view.dtype() == DType::kF64) return view.as<double>()[offset];
  if (view.dtype() == DType::kF32) return static_cast<double>(view.as<float>()[offset]);
  const uint16_t bits = view.as<uint16_t>()[offset];
  return static_cast<double>(view.dtype() == DType::kBF16 ? Bf16ToFloat(bits) : F16ToFloat(bits));
}

void RoundRowToBf16(float* x, int64_t n) { RoundRow(x, n); }

}  // namespace h3rt
