#include "tests/golden/ref64/ops.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "h3rt/base/check.h"

namespace h3rt::ref64 {

double Silu(double x) { return x / (1.0 + std::exp(-x)); }

double GeluTanh(double x) {
  const double inner = std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1.0 + std::tanh(inner));
}

Array Transposed(const Array& x) {
  Array y({x.dim(1), x.dim(0)});
  for (int64_t i = 0; i < x.dim(0); ++i) {
    for (int64_t j = 0; j < x.dim(1); ++j) y.p()[j * x.dim(0) + i] = x.p()[i * x.dim(1) + j];
  }
  return y;
}

Array Linear(const Array& x, const Array& w, const Array* bias) {
  const int64_t n = x.dim(0);
  const int64_t in = x.dim(1);
  const int64_t out = w.dim(0);
  H3RT_CHECK(w.elements() == out * in);
  H3RT_CHECK(bias == nullptr || bias->elements() == out);
  const Array wt = Transposed(Reshaped(w, {out, in}));
  Array y({n, out});
  for (int64_t r = 0; r < n; ++r) {
    double* row = y.p() + r * out;
    if (bias != nullptr) std::copy(bias->p(), bias->p() + out, row);
    for (int64_t i = 0; i < in; ++i) {
      const double xi = x.p()[r * in + i];
      const double* column = wt.p() + i * out;
      for (int64_t o = 0; o < out; ++o) row[o] += xi * column[o];
    }
  }
  return y;
}

Array Linear(const Array& x, const Weights& weights, const std::string& name) {
  const std::string bias = name + ".bias";
  return Linear(x, weights.Get(name + ".weight"), weights.Has(bias) ? &weights.Get(bias) : nullptr);
}

Array RmsNorm(const Array& x, const Array* w, double eps) {
  const int64_t n = x.dim(0);
  const int64_t d = x.dim(1);
  H3RT_CHECK(w == nullptr || w->elements() == d);
  Array y({n, d});
  for (int64_t r = 0; r < n; ++r) {
    const double* from = x.p() + r * d;
    double squares = 0.0;
    for (int64_t i = 0; i < d; ++i) squares += from[i] * from[i];
    const double scale = 1.0 / std::sqrt(squares / static_cast<double>(d) + eps);
    for (int64_t i = 0; i < d; ++i) {
      y.p()[r * d + i] = from[i] * scale * (w == nullptr ? 1.0 : w->p()[i]);
    }
  }
  return y;
}

Array LayerNorm(const Array& x, const Array& w, const Array& b, double eps) {
  const int64_t n = x.dim(0);
  const int64_t d = x.dim(1);
  H3RT_CHECK(w.elements() == d && b.elements() == d);
  Array y({n, d});
  for (int64_t r = 0; r < n; ++r) {
    const double* from = x.p() + r * d;
    double mean = 0.0;
    for (int64_t i = 0; i < d; ++i) mean += from[i];
    mean /= static_cast<double>(d);
    double squares = 0.0;
    for (int64_t i = 0; i < d; ++i) squares += (from[i] - mean) * (from[i] - mean);
    const double scale = 1.0 / std::sqrt(squares / static_cast<double>(d) + eps);
    for (int64_t i = 0; i < d; ++i) {
      y.p()[r * d + i] = (from[i] - mean) * scale * w.p()[i] + b.p()[i];
    }
  }
  return y;
}

namespace {

// Turns scores into exp(s - max) / sum over the first `keys` entries.
void SoftmaxInPlace(double* scores, int64_t keys) {
  double top = scores[0];
  for (int64_t j = 1; j < keys; ++j) top = std::max(top, scores[j]);
  double sum = 0.0;
  for (int64_t j = 0; j < keys; ++j) {
    scores[j] = std::exp(scores[j] - top);
    sum += scores[j];
  }
  for (int64_t j = 0; j < keys; ++j) scores[j] /= sum;
}

}  // namespace

Array Attention(const Array& q, const Array& k, const Array& v, int64_t heads, bool causal) {
  const int64_t n = q.dim(0);
  const int64_t width = q.dim(1);
  const int64_t d = width / heads;
  const double scale = 1.0 / std::sqrt(static_cast<double>(d));
  Array out({n, width});
  for (int64_t head = 0; head < heads; ++head) {
    const Array kt = Transposed(Slice(k, 1, head * d, (head + 1) * d));
    std::vector<double> scores(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
      const int64_t keys = causal ? i + 1 : n;
      double* s = scores.data();
      std::fill(s, s + keys, 0.0);
      for (int64_t c = 0; c < d; ++c) {
        const double qc = q.p()[i * width + head * d + c] * scale;
        const double* row = kt.p() + c * n;
        for (int64_t j = 0; j < keys; ++j) s[j] += qc * row[j];
      }
      SoftmaxInPlace(s, keys);
      double* o = out.p() + i * width + head * d;
      for (int64_t j = 0; j < keys; ++j) {
        const double* row = v.p() + j * width + head * d;
        for (int64_t c = 0; c < d; ++c) o[c] += s[j] * row[c];
      }
    }
  }
  return out;
}

Array Add(const Array& x, const Array& y) {
  H3RT_CHECK(x.elements() == y.elements());
  Array z = x;
  for (int64_t i = 0; i < z.elements(); ++i) z.p()[i] += y.p()[i];
  return z;
}

}  // namespace h3rt::ref64
