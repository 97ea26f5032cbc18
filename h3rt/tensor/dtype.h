// Element types of tensors, with the names that safetensors uses.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace h3rt {

enum class DType : uint8_t {
  kF64,
  kF32,
  kF16,
  kBF16,
  kE4M3,
  kE5M2,
  kI64,
  kI32,
  kI16,
  kI8,
  kU8,
  kBool
};

// Bytes of one element.
int64_t SizeOf(DType dtype);
// "F32", "BF16", "F8_E4M3", ...
std::string_view NameOf(DType dtype);
std::optional<DType> DTypeFromName(std::string_view name);

// The C++ type that holds an element: 16-bit and 8-bit floats are held as their bit patterns.
template <typename T>
constexpr bool HoldsDType(DType dtype);

template <>
constexpr bool HoldsDType<double>(DType dtype) {
  return dtype == DType::kF64;
}
template <>
constexpr bool HoldsDType<float>(DType dtype) {
  return dtype == DType::kF32;
}
template <>
constexpr bool HoldsDType<uint16_t>(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16;
}
template <>
constexpr bool HoldsDType<uint8_t>(DType dtype) {
  return dtype == DType::kU8 || dtype == DType::kE4M3 || dtype == DType::kE5M2 ||
         dtype == DType::kBool;
}
template <>
constexpr bool HoldsDType<int8_t>(DType dtype) {
  return dtype == DType::kI8;
}
template <>
constexpr bool HoldsDType<int16_t>(DType dtype) {
  return dtype == DType::kI16;
}
template <>
constexpr bool HoldsDType<int32_t>(DType dtype) {
  return dtype == DType::kI32;
}
template <>
constexpr bool HoldsDType<int64_t>(DType dtype) {
  return dtype == DType::kI64;
}

}  // namespace h3rt
