// The case table of exact attention: lengths, layouts, contents and bad input that users of other
// implementations report faults for. One table for the tests on the host and for a device.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "h3rt/kernels/attention/exact/inputs.h"
#include "h3rt/kernels/attention/exact/problem.h"
#include "h3rt/kernels/attention/exact/type16.h"

namespace h3rt {

// Where the elements of q, k, v and o lie. The bytes of the result do not depend on it.
enum class ExactLayout : uint8_t {
  kNhd,         // [batch, row, head, channel]
  kHnd,         // [batch, head, row, channel]
  kFusedQkv,    // q, k and v are slices of rows of (q_heads + 2 k_heads) head_dim elements
  kTransposed,  // [row, head, batch, channel]
  kOddUnused,   // NHD; strides of extents below 2 are odd and large
  kOffBase,     // NHD; every base is 2 bytes off 16
};

// What is done to the generated inputs.
enum class ExactFill : uint8_t {
  kPlain,
  kConstantK,       // all keys of a head are its first
  kConstantQ,       // all elements 0.5
  kZeroVChannel,    // channel 1 of v is zeros
  kOutlierChannel,  // channel 3 of k times 200
  kLateOutliers,    // the last eighth of the keys times 64
  kLargeMean,       // 64 added to channel 2 of k
  kNan,             // one element of `spoiled`
  kInfinity,
  kMinusInfinity,
};

enum class ExactExpectation : uint8_t {
  kComputed,   // right by the contract, finite
  kRefused,    // CheckExactProblem refuses, and names `named`
  kNotFinite,  // CheckFinite refuses, and names `named`
};

struct ExactCase {
  std::string name;  // "T1.kv_193": the fault's number in the project's list first
  ExactInputSpec inputs;
  bool causal = false;
  ExactLayout layout = ExactLayout::kNhd;
  ExactFill fill = ExactFill::kPlain;
  char spoiled = 'k';  // of kNan and the infinities: 'q', 'k' or 'v'
  ExactExpectation expectation = ExactExpectation::kComputed;
  std::string named = {};
};

// A case in host memory. Every gap, and the memory before and after, holds `poison`; so does o.
// `problem` points into the vectors; PointTo points it at copies of them elsewhere.
struct ExactHostCall {
  ExactHostCall() = default;
  ExactHostCall(const ExactHostCall&) = delete;
  ExactHostCall& operator=(const ExactHostCall&) = delete;
  ExactHostCall(ExactHostCall&&) = default;
  ExactHostCall& operator=(ExactHostCall&&) = default;

  ExactProblem problem;
  std::vector<uint16_t> inputs;   // q, k and v
  std::vector<uint16_t> outputs;  // o
  std::vector<float> lse;
  std::vector<float> lse_raw;
  int64_t q_at = 0;  // elements into inputs
  int64_t k_at = 0;
  int64_t v_at = 0;
  int64_t o_at = 0;

  void PointTo(const uint16_t* in, uint16_t* out, float* to_lse, float* to_lse_raw) {
    problem.q.data = in + q_at;
    problem.k.data = in + k_at;
    problem.v.data = in + v_at;
    problem.o.data = out + o_at;
    problem.lse = to_lse;
    problem.lse_raw = to_lse_raw;
  }
};

namespace exact_cases {

inline constexpr int64_t kGapRows = 3;    // after each sequence
inline constexpr int64_t kMargin = 1024;  // elements before the first and after the last

struct Strides {
  int64_t batch = 0;
  int64_t row = 0;
  int64_t head = 0;
  int64_t elements = 0;  // that one tensor takes
};

inline Strides StridesOf(ExactLayout layout, int64_t batch, int64_t len, int64_t heads,
                         int64_t dim) {
  const int64_t rows = len + kGapRows;
  Strides s;
  s.elements = batch * rows * heads * dim;
  if (layout == ExactLayout::kHnd) {
    s = {heads * rows * dim, dim, rows * dim, s.elements};
  } else if (layout == ExactLayout::kTransposed) {
    s = {dim, heads * batch * dim, batch * dim, s.elements};
  } else {
    s = {rows * heads * dim, heads * dim, dim, s.elements};
  }
  if (layout == ExactLayout::kOddUnused) {
    constexpr int64_t kUnused = (int64_t{1} << 61) + 1;
    if (batch < 2) s.batch = kUnused;
    if (len < 2) s.row = -kUnused;
    if (heads < 2) s.head = kUnused;
  }
  return s;
}

inline void Scatter(const std::vector<uint16_t>& dense, int64_t batch, int64_t len, int64_t heads,
                    int64_t dim, const ExactInput& view, uint16_t* to) {
  size_t from = 0;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t row = 0; row < len; ++row) {
      for (int64_t h = 0; h < heads; ++h) {
        const int64_t at = b * view.batch_stride + row * view.row_stride + h * view.head_stride;
        for (int64_t c = 0; c < dim; ++c) to[at + c] = dense[from++];
      }
    }
  }
}

inline void Fill(const ExactCase& c, ExactInputs& in) {
  const ExactInputSpec& s = c.inputs;
  const int64_t width = s.k_heads * s.head_dim;
  const bool bf16 = s.type == ExactType::kBf16;
  const auto each_k = [&](auto&& change) {
    for (size_t i = 0; i < in.k.size(); ++i) {
      const int64_t row = static_cast<int64_t>(i) / width % s.k_len;
      const int64_t channel = static_cast<int64_t>(i) % s.head_dim;
      in.k[i] = NarrowExact(s.type, change(WidenExact(s.type, in.k[i]), row, channel));
    }
  };
  switch (c.fill) {
    case ExactFill::kPlain:
      return;
    case ExactFill::kConstantK:
      for (size_t i = 0; i < in.k.size(); ++i) {
        const auto sequence = static_cast<size_t>(s.k_len * width);
        in.k[i] = in.k[i / sequence * sequence + i % static_cast<size_t>(width)];
      }
      return;
    case ExactFill::kConstantQ:
      std::fill(in.q.begin(), in.q.end(), NarrowExact(s.type, 0.5f));
      return;
    case ExactFill::kZeroVChannel:
      for (size_t i = 1; i < in.v.size(); i += static_cast<size_t>(s.head_dim)) in.v[i] = 0;
      return;
    case ExactFill::kOutlierChannel:
      each_k([](float x, int64_t, int64_t channel) { return channel == 3 ? x * 200.0f : x; });
      return;
    case ExactFill::kLateOutliers:
      each_k([&](float x, int64_t row, int64_t) { return row >= s.k_len * 7 / 8 ? x * 64.0f : x; });
      return;
    case ExactFill::kLargeMean:
      each_k([](float x, int64_t, int64_t channel) { return channel == 2 ? x + 64.0f : x; });
      return;
    case ExactFill::kNan:
    case ExactFill::kInfinity:
    case ExactFill::kMinusInfinity:
      break;
  }
  std::vector<uint16_t>& spoiled = c.spoiled == 'q' ? in.q : c.spoiled == 'k' ? in.k : in.v;
  uint16_t bits = bf16 ? 0x7f80 : 0x7c00;
  if (c.fill == ExactFill::kNan) bits |= 1;
  if (c.fill == ExactFill::kMinusInfinity) bits |= 0x8000;
  spoiled[spoiled.size() - 2] = bits;  // the last row and head, the last channel but one
}

}  // namespace exact_cases

// q, k, v dense in NHD, as the case wants them.
inline ExactInputs InputsOf(const ExactCase& c) {
  ExactInputs in = MakeExactInputs(c.inputs);
  exact_cases::Fill(c, in);
  return in;
}

// `poison`: the bits of a 16-bit float.
inline ExactHostCall HostCallOf(const ExactCase& c, ExactPath path, ExactGranularity granularity,
                                uint16_t poison) {
  using exact_cases::kMargin;
  using exact_cases::StridesOf;
  const ExactInputSpec& s = c.inputs;
  ExactHostCall call;
  ExactProblem& p = call.problem;
  p = DenseProblem(s, path, granularity);
  p.causal = c.causal;

  const auto q = StridesOf(c.layout, s.batch, s.q_len, s.q_heads, s.head_dim);
  const auto k = StridesOf(c.layout, s.batch, s.k_len, s.k_heads, s.head_dim);
  const int64_t off = c.layout == ExactLayout::kOffBase ? 1 : 0;
  int64_t elements = 0;
  if (c.layout == ExactLayout::kFusedQkv) {
    const int64_t row = (s.q_heads + 2 * s.k_heads) * s.head_dim;
    const int64_t rows = std::max(s.q_len, s.k_len) + exact_cases::kGapRows;
    call.q_at = kMargin;
    call.k_at = call.q_at + s.q_heads * s.head_dim;
    call.v_at = call.k_at + s.k_heads * s.head_dim;
    elements = kMargin + s.batch * rows * row;
    p.q = {nullptr, rows * row, row, s.head_dim};
    p.k = p.q;
  } else {
    call.q_at = kMargin + off;
    call.k_at = exact::RoundUp(call.q_at + q.elements, 8) + off;
    call.v_at = exact::RoundUp(call.k_at + k.elements, 8) + off;
    elements = call.v_at + k.elements;
    p.q = {nullptr, q.batch, q.row, q.head};
    p.k = {nullptr, k.batch, k.row, k.head};
  }
  p.v = p.k;
  call.o_at = kMargin + off;
  p.o = {nullptr, q.batch, q.row, q.head};
  call.inputs.assign(static_cast<size_t>(elements + kMargin), poison);
  call.outputs.assign(static_cast<size_t>(call.o_at + q.elements + kMargin), poison);
  const auto rows = static_cast<size_t>(s.batch * s.q_heads * s.q_len);
  call.lse.assign(rows, WidenExact(ExactType::kBf16, 0xcdcd));
  call.lse_raw = call.lse;

  const ExactInputs in = InputsOf(c);
  uint16_t* const to = call.inputs.data();
  exact_cases::Scatter(in.q, s.batch, s.q_len, s.q_heads, s.head_dim, p.q, to + call.q_at);
  exact_cases::Scatter(in.k, s.batch, s.k_len, s.k_heads, s.head_dim, p.k, to + call.k_at);
  exact_cases::Scatter(in.v, s.batch, s.k_len, s.k_heads, s.head_dim, p.v, to + call.v_at);
  call.PointTo(to, call.outputs.data(), call.lse.data(), call.lse_raw.data());
  return call;
}

// o of a call, dense in NHD, from `outputs` (the call's own, or a copy brought back).
inline std::vector<uint16_t> OutputOf(const ExactHostCall& call,
                                      const std::vector<uint16_t>& outputs) {
  const ExactProblem& p = call.problem;
  std::vector<uint16_t> dense;
  for (int64_t b = 0; b < p.batch; ++b) {
    for (int64_t row = 0; row < p.q_len; ++row) {
      for (int64_t h = 0; h < p.q_heads; ++h) {
        const int64_t at =
            call.o_at + b * p.o.batch_stride + row * p.o.row_stride + h * p.o.head_stride;
        dense.insert(dense.end(), outputs.begin() + at, outputs.begin() + at + p.head_dim);
      }
    }
  }
  return dense;
}

namespace exact_cases {

// Collects cases by their names and extents.
class Table {
 public:
  static ExactInputSpec Spec(int64_t q_len, int64_t k_len, int64_t q_heads = 1, int64_t k_heads = 1,
                             int64_t dim = 64) {
    ExactInputSpec s;
    s.q_len = q_len;
    s.k_len = k_len;
    s.q_heads = q_heads;
    s.k_heads = k_heads;
    s.head_dim = dim;
    s.seed = 1000 + static_cast<uint64_t>(q_len * 7 + k_len * 3 + dim);
    return s;
  }
  ExactCase& Add(std::string name, const ExactInputSpec& spec) {
    cases.push_back({.name = std::move(name), .inputs = spec});
    return cases.back();
  }
  std::vector<ExactCase> cases;
};

inline void AddValueCases(Table& table) {
  for (const int64_t n : {1, 2, 14, 63, 64, 65, 127, 128, 129, 191, 193, 1000}) {
    table.Add("T1.both_" + std::to_string(n), Table::Spec(n, n));
    table.Add("T1.kv_" + std::to_string(n), Table::Spec(70, n, 1, 1, 128));
    table.Add("T1.causal_" + std::to_string(n), Table::Spec(n, n)).causal = true;
    table.Add("T1.causal_q_" + std::to_string(n), Table::Spec(n, 200)).causal = true;
  }
  table.Add("T1.both_4097", Table::Spec(4097, 4097));
  for (int64_t rest = 0; rest < 128; ++rest) {
    table.Add("T2.kv_128_" + std::to_string(rest), Table::Spec(65, 128 + rest, 1, 1, 128));
  }
  const std::pair<ExactLayout, const char*> layouts[] = {
      {ExactLayout::kHnd, "hnd"},
      {ExactLayout::kFusedQkv, "fused_qkv"},
      {ExactLayout::kOffBase, "off_base"},
      {ExactLayout::kTransposed, "transposed"},
      {ExactLayout::kOddUnused, "odd_unused"},
  };
  for (const auto& [layout, name] : layouts) {
    ExactInputSpec s = Table::Spec(130, 130, 4, 2, 128);
    s.batch = 2;
    table.Add(std::string("T3.") + name, s).layout = layout;
    table.Add(std::string("T3.one_head_") + name, Table::Spec(66, 131)).layout = layout;
    table.Add(std::string("T3.one_row_") + name, Table::Spec(1, 1)).layout = layout;
    table.Add(std::string("T3.dim72_") + name, Table::Spec(66, 131, 3, 1, 72)).layout = layout;
  }
  const std::pair<ExactFill, const char*> fills[] = {
      {ExactFill::kLargeMean, "T6.large_mean"},
      {ExactFill::kOutlierChannel, "T6.outlier_channel"},
      {ExactFill::kLateOutliers, "T6.late_outliers"},
      {ExactFill::kConstantK, "T7.constant_k"},
      {ExactFill::kConstantQ, "T7.constant_q"},
      {ExactFill::kZeroVChannel, "T7.zero_v_channel"},
  };
  for (const auto& [fill, name] : fills) table.Add(name, Table::Spec(100, 300, 2, 2)).fill = fill;
}

inline void AddBadAndGroupedCases(Table& table) {
  const std::pair<ExactFill, const char*> spoils[] = {{ExactFill::kNan, "nan"},
                                                      {ExactFill::kInfinity, "inf"},
                                                      {ExactFill::kMinusInfinity, "minus_inf"}};
  for (const auto& [fill, name] : spoils) {
    for (const char tensor : {'q', 'k', 'v'}) {
      for (const ExactType type : {ExactType::kBf16, ExactType::kF16}) {
        ExactInputSpec s = Table::Spec(60, 90, 2, 2);
        s.batch = 2;
        s.type = type;
        ExactCase& c = table.Add(std::string("T8.") + name + "_" + tensor +
                                     (type == ExactType::kBf16 ? "_bf16" : "_f16"),
                                 s);
        c.fill = fill;
        c.spoiled = tensor;
        c.expectation = ExactExpectation::kNotFinite;
        c.named = std::string(1, tensor) + (tensor == 'q' ? "[1, 59, 1, 62]" : "[1, 89, 1, 62]");
      }
    }
  }
  for (const int64_t dim : {1, 40, 64, 72, 96, 128, 160, 256}) {
    ExactCase& c = table.Add("T9.dim_" + std::to_string(dim), Table::Spec(70, 140, 1, 1, dim));
    if (dim <= 128) continue;
    c.expectation = ExactExpectation::kRefused;
    c.named = "head_dim";
  }
  table.Add("T11.gqa_8_to_1", Table::Spec(70, 140, 8, 1));
  table.Add("T11.gqa_7_to_1", Table::Spec(70, 140, 14, 2));
  ExactCase& indivisible = table.Add("T11.indivisible", Table::Spec(70, 140, 7, 2));
  indivisible.expectation = ExactExpectation::kRefused;
  indivisible.named = "q_heads";
  ExactInputSpec batches = Table::Spec(50, 150, 2, 2);
  batches.batch = 3;
  table.Add("T12.batch_means", batches);
  for (const bool flat : {false, true}) {
    ExactInputSpec f16 = Table::Spec(129, 193, 2, 1, 128);
    f16.type = ExactType::kF16;
    f16.flat = flat;
    table.Add(flat ? "T13.f16_flat" : "T13.f16", f16);
  }
}

}  // namespace exact_cases

// The whole table. Small shapes: all of it runs on the host in seconds.
inline std::vector<ExactCase> ExactCases() {
  exact_cases::Table table;
  exact_cases::AddValueCases(table);
  exact_cases::AddBadAndGroupedCases(table);
  return std::move(table.cases);
}

}  // namespace h3rt
