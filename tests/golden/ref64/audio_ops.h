// One-dimensional convolutions and activations of the audio VAE, on arrays [channels, length].
#pragma once

#include <cstdint>
#include <string>

#include "tests/golden/ref64/array.h"
#include "tests/golden/ref64/weights.h"

namespace h3rt::ref64 {

// Convolution with name.weight [o, c, k] and, when it exists, name.bias; zeros outside.
Array Conv1d(const Array& x, const Weights& weights, const std::string& name, int64_t stride,
             int64_t dilation, int64_t pad);
// Transposed convolution with name.weight [c, o, k]; `pad` samples are cut at both ends.
Array ConvTranspose1d(const Array& x, const Weights& weights, const std::string& name,
                      int64_t stride, int64_t pad);
// x + sin^2(a x) / (a + 1e-9), a = name.alpha a channel.
Array Snake(const Array& x, const Weights& weights, const std::string& name);
// SnakeBeta between a twofold up- and downsampling with the filters of `name`: x + sin^2(e^alpha x)
// / (e^beta + 1e-9). shift rotates the filters by so many taps (0 unless a fault is planted).
Array SmoothSnakeBeta(const Array& x, const Weights& weights, const std::string& name,
                      int64_t shift);

}  // namespace h3rt::ref64
