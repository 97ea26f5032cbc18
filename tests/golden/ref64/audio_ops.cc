#include "tests/golden/ref64/audio_ops.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "h3rt/base/check.h"

namespace h3rt::ref64 {
namespace {

constexpr int64_t kTaps = 12;

// x [c, n] with `left` and `right` zeros around every row.
Array ZeroPadded(const Array& x, int64_t left, int64_t right) {
  Array y({x.dim(0), x.dim(1) + left + right});
  for (int64_t c = 0; c < x.dim(0); ++c) {
    const double* row = x.p() + c * x.dim(1);
    std::copy(row, row + x.dim(1), y.p() + c * y.dim(1) + left);
  }
  return y;
}

// A row with its first and last value repeated.
std::vector<double> EdgePadded(const double* row, int64_t n, int64_t left, int64_t right) {
  std::vector<double> y(static_cast<size_t>(left), row[0]);
  y.insert(y.end(), row, row + n);
  y.insert(y.end(), static_cast<size_t>(right), row[n - 1]);
  return y;
}

std::vector<double> Taps(const Weights& weights, const std::string& name, int64_t shift) {
  const Array& filter = weights.Get(name);
  H3RT_CHECK(filter.elements() == kTaps);
  std::vector<double> taps(static_cast<size_t>(kTaps));
  for (int64_t k = 0; k < kTaps; ++k) taps.data()[(k + shift) % kTaps] = filter.p()[k];
  return taps;
}

// Twofold upsampling: 5 repeated samples a side, transposed convolution of stride 2 with gain 2,
// 15 samples cut a side. Output n gathers the taps k with n + 15 = 2 i + k.
std::vector<double> Upsampled(const double* row, int64_t n, const std::vector<double>& taps) {
  const std::vector<double> padded = EdgePadded(row, n, 5, 5);
  std::vector<double> y(static_cast<size_t>(2 * n), 0.0);
  const double* x = padded.data();
  for (int64_t phase = 0; phase < 2; ++phase) {
    for (int64_t k = (phase + 15) % 2; k < kTaps; k += 2) {
      const double tap = 2.0 * taps.data()[k];
      const int64_t first = (phase + 15 - k) / 2;
      double* to = y.data() + phase;
      for (int64_t m = 0; m < n; ++m) to[2 * m] += tap * x[m + first];
    }
  }
  return y;
}

// Twofold downsampling of 2 n samples: 5 repeated on the left, 6 on the right, stride 2.
void Downsample(const std::vector<double>& x, const std::vector<double>& taps, int64_t n,
                double* to) {
  const std::vector<double> padded = EdgePadded(x.data(), 2 * n, 5, 6);
  std::fill(to, to + n, 0.0);
  for (int64_t k = 0; k < kTaps; ++k) {
    const double* from = padded.data() + k;
    for (int64_t m = 0; m < n; ++m) to[m] += taps.data()[k] * from[2 * m];
  }
}

}  // namespace

Array Conv1d(const Array& x, const Weights& weights, const std::string& name, int64_t stride,
             int64_t dilation, int64_t pad) {
  const Array& w = weights.Get(name + ".weight");
  const int64_t channels = x.dim(0);
  const int64_t taps = w.dim(2);
  H3RT_CHECK(w.dim(1) == channels);
  const Array padded = ZeroPadded(x, pad, pad);
  const int64_t n = (padded.dim(1) - dilation * (taps - 1) - 1) / stride + 1;
  Array y({w.dim(0), n});
  for (int64_t o = 0; o < y.dim(0); ++o) {
    double* to = y.p() + o * n;
    if (weights.Has(name + ".bias")) std::fill(to, to + n, weights.Get(name + ".bias").p()[o]);
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t k = 0; k < taps; ++k) {
        const double factor = w.p()[(o * channels + c) * taps + k];
        const double* from = padded.p() + c * padded.dim(1) + k * dilation;
        if (stride == 1) {
          for (int64_t i = 0; i < n; ++i) to[i] += factor * from[i];
        } else {
          for (int64_t i = 0; i < n; ++i) to[i] += factor * from[i * stride];
        }
      }
    }
  }
  return y;
}

Array ConvTranspose1d(const Array& x, const Weights& weights, const std::string& name,
                      int64_t stride, int64_t pad) {
  const Array& w = weights.Get(name + ".weight");
  const Array& bias = weights.Get(name + ".bias");
  const int64_t outputs = w.dim(1);
  const int64_t taps = w.dim(2);
  const int64_t n = x.dim(1);
  H3RT_CHECK(w.dim(0) == x.dim(0));
  const int64_t full = (n - 1) * stride + taps;
  Array y({outputs, full});
  for (int64_t o = 0; o < outputs; ++o) {
    double* to = y.p() + o * full;
    std::fill(to, to + full, bias.p()[o]);
    for (int64_t c = 0; c < x.dim(0); ++c) {
      const double* from = x.p() + c * n;
      for (int64_t k = 0; k < taps; ++k) {
        const double factor = w.p()[(c * outputs + o) * taps + k];
        for (int64_t i = 0; i < n; ++i) to[i * stride + k] += factor * from[i];
      }
    }
  }
  return Slice(y, 1, pad, full - pad);
}

Array Snake(const Array& x, const Weights& weights, const std::string& name) {
  const Array& alpha = weights.Get(name + ".alpha");
  H3RT_CHECK(alpha.elements() == x.dim(0));
  Array y = x;
  for (int64_t c = 0; c < x.dim(0); ++c) {
    const double a = alpha.p()[c];
    double* row = y.p() + c * x.dim(1);
    for (int64_t i = 0; i < x.dim(1); ++i) {
      const double s = std::sin(a * row[i]);
      row[i] += s * s / (a + 1e-9);
    }
  }
  return y;
}

Array SmoothSnakeBeta(const Array& x, const Weights& weights, const std::string& name,
                      int64_t shift) {
  const std::vector<double> up = Taps(weights, name + ".upsample.filter", shift);
  const std::vector<double> down = Taps(weights, name + ".downsample.lowpass.filter", shift);
  const Array& alpha = weights.Get(name + ".act.alpha");
  const Array& beta = weights.Get(name + ".act.beta");
  const int64_t n = x.dim(1);
  H3RT_CHECK(alpha.elements() == x.dim(0) && beta.elements() == x.dim(0));
  Array y({x.dim(0), n});
  for (int64_t c = 0; c < x.dim(0); ++c) {
    std::vector<double> fine = Upsampled(x.p() + c * n, n, up);
    const double a = std::exp(alpha.p()[c]);
    const double b = std::exp(beta.p()[c]) + 1e-9;
    for (double& value : fine) {
      const double s = std::sin(a * value);
      value += s * s / b;
    }
    Downsample(fine, down, n, y.p() + c * n);
  }
  return y;
}

}  // namespace h3rt::ref64
