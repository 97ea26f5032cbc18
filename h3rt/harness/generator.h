// splitmix64/1: what makes the inputs of experiments from a seed, an element at a time, with the
// same bits on the host and on a device. Integers and single multiplications only: nothing that a
// compiler or a library may round otherwise.
#pragma once

#include <bit>
#include <cstdint>

namespace h3rt::lab {

constexpr uint64_t MixBits(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// The numbers are ExperimentTensor::Type and ::Fill, which need headers that device code does
// without.
enum class InputType { kBf16, kF32, kF16, kI32, kU8 };
enum class InputFill { kNormal, kUniform, kEdge };

struct InputStream {
  InputType type = InputType::kBf16;
  InputFill fill = InputFill::kNormal;
  float scale = 1.0f;
  uint64_t state = 0;  // InputState(seed, index of the tensor)
};

constexpr uint64_t InputState(uint64_t seed, uint64_t tensor) {
  return MixBits(seed + 0x9e3779b97f4a7c15ull * (tensor + 1));
}

// Draw `which` (0 to 3) of an element: splitmix64 started at the stream's state, at a place of its
// own.
constexpr uint64_t InputDraw(uint64_t state, int64_t index, uint64_t which) {
  return MixBits(state + 0x9e3779b97f4a7c15ull * (4 * static_cast<uint64_t>(index) + which + 1));
}

// The sum of eight uniform 16-bit numbers, centred and divided by its deviation: normal within 2 %
// of its density up to three deviations, never beyond 4.9.
constexpr float NormalInput(uint64_t state, int64_t index) {
  int32_t sum = 0;
  for (uint64_t which = 0; which < 2; ++which) {
    const uint64_t draw = InputDraw(state, index, which);
    for (int piece = 0; piece < 4; ++piece) {
      sum += static_cast<int32_t>((draw >> (16 * piece)) & 0xffffu);
    }
  }
  return static_cast<float>(sum - 4 * 65535) * (1.0f / 53509.918f);
}

constexpr float UniformInput(uint64_t state, int64_t index) {
  const auto bits = static_cast<int32_t>(InputDraw(state, index, 0) >> 40);
  return static_cast<float>(bits - (1 << 23)) * 0x1p-23f;
}

// One element as a float32, before it is rounded to the tensor's type. Not for kI32 and kU8.
constexpr float FloatInput(const InputStream& stream, int64_t index) {
  if (stream.fill == InputFill::kUniform) return UniformInput(stream.state, index) * stream.scale;
  const float normal = NormalInput(stream.state, index) * stream.scale;
  if (stream.fill == InputFill::kNormal) return normal;
  const uint64_t draw = InputDraw(stream.state, index, 2);
  const uint32_t sign = (draw & 0x10u) != 0 ? 0x80000000u : 0u;
  switch (draw & 0xfu) {
    case 0:
      return std::bit_cast<float>(sign);  // a zero of either sign
    case 1:                               // subnormal in bfloat16 and float32; a zero in float16
      return std::bit_cast<float>(sign | ((static_cast<uint32_t>(draw >> 8) & 0x7fu) << 16));
    case 2:  // squares of a few thousand of them still fit float32
      return std::bit_cast<float>(sign | (stream.type == InputType::kF16 ? 0x45800000u     // 2^12
                                                                         : 0x5b800000u));  // 2^56
    default:
      return normal;
  }
}

// kI32: uniform in +-scale; kU8: any byte.
constexpr int32_t IntInput(const InputStream& stream, int64_t index) {
  const uint64_t draw = InputDraw(stream.state, index, 0);
  if (stream.type == InputType::kU8) return static_cast<int32_t>(draw & 0xffu);
  const auto span = static_cast<uint64_t>(stream.scale) * 2 + 1;
  return static_cast<int32_t>(static_cast<int64_t>((draw >> 32) * span >> 32) -
                              static_cast<int64_t>(stream.scale));
}

// A term of the digest of an output: the sum over all 64-bit words of it, modulo 2^64, does not
// depend on the order of the additions, and a word that moves or changes changes its term.
constexpr uint64_t DigestTerm(uint64_t word, uint64_t index) {
  return MixBits(MixBits(word + 0x9e3779b97f4a7c15ull) ^ (index * 0xd1342543de82ef95ull + 1));
}

}  // namespace h3rt::lab
