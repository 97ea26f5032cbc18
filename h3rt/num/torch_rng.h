// torch's CPU random numbers, bit for bit, so that a seed gives the latents of the public
// pipelines. Source: specification 3.7 with C2 and C3.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace h3rt {

// torch.Generator("cpu"). Copies continue independently from the same state.
class TorchGenerator {
 public:
  // Only the low 32 bits of the seed count, as in torch.
  explicit TorchGenerator(uint64_t seed);

  // One call of torch.randn(n, generator=self) in float32: standard normal numbers. The numbers
  // depend on the size of the call: two calls of n elements are not one call of 2n. With 16
  // elements or more they are those of a torch that runs on a CPU with AVX2 (or AVX-512); a torch
  // on older or other CPUs differs in the last places. An empty span draws nothing.
  void Randn(std::span<float> out);

  // The next 32-bit output of the Mersenne Twister (MT19937).
  uint32_t Next32();

 private:
  static constexpr int kStateSize = 624;

  void Refill();
  float NextUniform24();      // [0, 1) with 24 bits
  double NextUniform53();     // [0, 1) with 53 bits, two outputs
  double NextNormalScalar();  // the path of draws below 16 elements

  std::array<uint32_t, kStateSize> state_;
  int next_ = kStateSize;
  // The second value of the last scalar pair. It belongs to the generator: draws of 16 elements or
  // more neither use nor clear it.
  std::optional<double> kept_normal_;
};

}  // namespace h3rt
