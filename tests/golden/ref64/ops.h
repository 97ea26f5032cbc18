// The few operations that the reference networks share, in plain loops. Each one is written from
// its formula; the order of the loops only keeps the innermost one free of a running sum, so that
// the compiler may vectorise it without being allowed to reassociate.
#pragma once

#include <cstdint>
#include <string>

#include "tests/golden/ref64/array.h"
#include "tests/golden/ref64/weights.h"

namespace h3rt::ref64 {

double Silu(double x);      // x / (1 + e^-x)
double GeluTanh(double x);  // x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))

// x [n, in], w [out, in], bias [out] or null -> x w^T + bias [n, out].
Array Linear(const Array& x, const Array& w, const Array* bias);
// The weights name.weight and, when they exist, name.bias.
Array Linear(const Array& x, const Weights& weights, const std::string& name);

// x [n, d] -> x / sqrt(mean(x^2) + eps) * w, row by row; w [d] or null for no weight.
Array RmsNorm(const Array& x, const Array* w, double eps);
// x [n, d] -> (x - mean) / sqrt(var + eps) * w + b, row by row.
Array LayerNorm(const Array& x, const Array& w, const Array& b, double eps);

// q, k, v [n, heads * d] -> softmax(q k^T / sqrt(d)) v a head, [n, heads * d]. causal: row i sees
// the keys up to i only.
Array Attention(const Array& q, const Array& k, const Array& v, int64_t heads, bool causal);

// x [n, d], same shape: x + y.
Array Add(const Array& x, const Array& y);
// x [n, d] -> [d, n].
Array Transposed(const Array& x);

}  // namespace h3rt::ref64
