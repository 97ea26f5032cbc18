#include "tests/golden/ref64/weights.h"

#include <bit>
#include <cstdio>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "h3rt/base/check.h"
#include "h3rt/io/weight_store.h"

namespace h3rt::ref64 {
namespace {

double WidenHalf(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const double fraction = (bits & 1023) / 1024.0;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  H3RT_CHECK(exponent != 31);
  if (exponent == 0) return sign * fraction * 0x1p-14;
  double power = 0x1p-15;
  for (int i = 0; i < exponent; ++i) power *= 2.0;
  return sign * (1.0 + fraction) * power;
}

double Widen(DType dtype, const std::byte* at) {
  uint16_t half = 0;
  float single = 0.0f;
  double value = 0.0;
  switch (dtype) {
    case DType::kF64:
      std::memcpy(&value, at, sizeof value);
      return value;
    case DType::kF32:
      std::memcpy(&single, at, sizeof single);
      return static_cast<double>(single);
    case DType::kBF16:
      std::memcpy(&half, at, sizeof half);
      return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(half) << 16));
    case DType::kF16:
      std::memcpy(&half, at, sizeof half);
      return WidenHalf(half);
    default:
      H3RT_CHECK(false && "not a floating-point weight");
  }
}

Array WidenView(const ConstTensorView& view) {
  std::vector<int64_t> shape(view.shape().dims().begin(), view.shape().dims().end());
  Array y(shape);
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t i = 0; i < y.elements(); ++i) {
    int64_t offset = 0;
    for (int d = 0; d < view.rank(); ++d) {
      offset += index[static_cast<size_t>(d)] * view.stride(d);
    }
    y.p()[i] = Widen(view.dtype(), view.data() + offset * SizeOf(view.dtype()));
    for (int d = view.rank() - 1; d >= 0; --d) {
      if (++index[static_cast<size_t>(d)] < view.dim(d)) break;
      index[static_cast<size_t>(d)] = 0;
    }
  }
  return y;
}

bool IsHeadSplit(std::string_view name) {
  for (const char* part : {"attn.to_q.", "attn.to_k.", "attn.to_v."}) {
    if (name.find(part) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

Weights Weights::From(const WeightStore& store) {
  Weights weights;
  for (const auto& [name, view] : store.entries()) {
    Array value = WidenView(view);
    const size_t flat_rank = name.ends_with(".bias") ? 1 : 2;
    if (IsHeadSplit(name) && value.shape.size() == flat_rank + 1) {
      std::vector<int64_t> shape(value.shape.begin() + 1, value.shape.end());
      shape[0] *= value.dim(0);
      value = Reshaped(std::move(value), shape);
    }
    weights.Set(name, std::move(value));
  }
  return weights;
}

const Array& Weights::Get(std::string_view name) const {
  const auto it = entries_.find(name);
  if (it == entries_.end()) {
    std::fprintf(stderr, "ref64: no weight %.*s\n", static_cast<int>(name.size()), name.data());
  }
  H3RT_CHECK(it != entries_.end());
  return it->second;
}

}  // namespace h3rt::ref64
