// Exact attention from prepared buffers, one query row after another: rows share nothing.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "h3rt/kernels/attention/exact/check.h"
#include "h3rt/kernels/attention/exact/type16.h"
#include "h3rt/kernels/attention/oracle/oracle.h"
#include "h3rt/kernels/attention/oracle/strict_f32.h"
#include "h3rt/num/e4m3.h"

namespace h3rt {
namespace {

constexpr int kMaxDim = 128;
constexpr int kMaxKeys = 128;  // of an epoch
constexpr int kLanes = 4;      // lane classes: columns c with c mod 8 div 2 = t share a lane

using strict::AddFtz;
using strict::FmaFtz;
using strict::MaxFtz;
using strict::MulFtz;
using strict::SubFtz;

float Constant(uint32_t bits) { return strict::FromBits(bits); }

const std::array<double, 256>& E4m3Values() {
  static const std::array<double, 256> values = [] {
    std::array<double, 256> table{};
    for (size_t i = 0; i < table.size(); ++i) table[i] = E4m3ToFloat(static_cast<uint8_t>(i));
    return table;
  }();
  return values;
}

struct RowState {
  float m = Constant(exact::kMasked);
  std::array<float, kLanes> d{1.0f, 1.0f, 1.0f, 1.0f};  // one in every lane; epoch 0 takes it away
  std::array<float, kMaxDim> ro{};
};

struct Epoch {
  int64_t index = 0;
  float a = 0.0f;
  std::array<float, kLanes> s{};
  std::array<float, kMaxKeys> x{};
  std::array<float, kMaxKeys> p{};
  std::array<uint8_t, kMaxKeys> p8{};
};

class Attention {
 public:
  Attention(const ExactProblem& problem, const ExactPrepared& prepared,
            const OracleHardware& hardware, const ExactCheckpoints& captured,
            const ExactCheckpoints& out)
      : problem_(problem),
        prepared_(prepared),
        hardware_(hardware),
        captured_(captured),
        out_(out),
        geometry_(exact::GeometryOf(problem.path)),
        dim_(problem.padded_dim()),
        q_pad_(exact::RoundUp(problem.q_len, exact::kRowPad)),
        k_pad_(exact::RoundUp(problem.k_len, exact::kRowPad)),
        epochs_(exact::Epochs(geometry_, (problem.q_len - 1) / geometry_.cta_q, problem.k_len,
                              problem.causal)),
        steps_(geometry_.cta_k / kStepKeys),
        scale_(MulFtz(problem.sm_scale, Constant(exact::kLog2E))) {}

  void Row(int64_t batch, int64_t head, int64_t row) {
    batch_ = batch;
    head_ = head;
    row_ = row;
    q_tensor_ = batch * problem_.q_heads + head;
    k_tensor_ = batch * problem_.k_heads + head / (problem_.q_heads / problem_.k_heads);
    at_ = q_tensor_ * problem_.q_len + row;
    const int64_t epochs =
        exact::Epochs(geometry_, row / geometry_.cta_q, problem_.k_len, problem_.causal);
    RowState state;
    for (int64_t j = 0; j < epochs; ++j) {
      Epoch epoch;
      epoch.index = j;
      Scores(j + geometry_.tail >= epochs, epoch);
      Softmax(epoch, state);
      Denominator(epoch, state);
      Values(epoch, state);
    }
    Finish(state);
  }

 private:
  float Ex2Of(float value) const {
    return hardware_.ex2 != nullptr ? hardware_.ex2(value) : strict::Ex2(value);
  }
  // Where an epoch of this row lies in an observable with `width` elements an epoch.
  int64_t EpochAt(int64_t epoch, int64_t width) const { return (at_ * epochs_ + epoch) * width; }
  static int Lane(int key) { return key % 8 / 2; }

  int32_t IntegerScore(int64_t key) const {
    const int8_t* q = prepared_.q8 + (q_tensor_ * q_pad_ + row_) * dim_;
    const int8_t* k = prepared_.k8 + (k_tensor_ * k_pad_ + key) * dim_;
    int32_t sum = 0;
    for (int c = 0; c < dim_; ++c) sum += static_cast<int32_t>(q[c]) * k[c];
    return sum;
  }

  // qk, dq, s, x. `dequantised`: the scales are applied to the scores before the maximum, and masks
  // are; else both scales wait for the exponent.
  void Scores(bool dequantised, Epoch& epoch) const {
    const ExactGranularity granularity = problem_.granularity;
    const int64_t q_scales = exact::QScales(geometry_, granularity, problem_.q_len);
    const int64_t k_scales = exact::KScales(geometry_, granularity, problem_.k_len);
    const float q_scale =
        prepared_.q_scale[q_tensor_ * q_scales + exact::QScaleIndex(geometry_, granularity, row_)];
    const int64_t first = epoch.index * geometry_.cta_k;
    std::array<float, kLanes> dq{};
    for (int t = 0; t < kLanes; ++t) {
      const size_t lane = static_cast<size_t>(t);
      const int64_t index = exact::KScaleIndex(geometry_, granularity, first + 2 * t);
      dq[lane] = MulFtz(q_scale, prepared_.k_scale[k_tensor_ * k_scales + index]);
      epoch.s[lane] = dequantised ? scale_ : MulFtz(scale_, dq[lane]);
      if (out_.dq != nullptr) out_.dq[EpochAt(epoch.index, kLanes) + t] = dq[lane];
      if (out_.s != nullptr) out_.s[EpochAt(epoch.index, kLanes) + t] = epoch.s[lane];
    }
    for (int c = 0; c < geometry_.cta_k; ++c) {
      const int64_t key = first + c;
      float& x = epoch.x[static_cast<size_t>(c)];
      if (key >= problem_.k_len) {
        x = Constant(exact::kMasked);  // only the last epoch has such keys
        continue;
      }
      const int32_t score = IntegerScore(key);
      x = strict::IntToFloat(score);  // exact: below 2^24
      if (dequantised) {
        x = MulFtz(x, dq[static_cast<size_t>(Lane(c))]);
        if (problem_.causal && key > row_) x = Constant(exact::kMasked);
      }
      if (out_.qk != nullptr) out_.qk[at_ * problem_.k_len + key] = score;
      if (out_.x != nullptr) out_.x[at_ * problem_.k_len + key] = x;
    }
  }

  // m, a, p, p8.
  void Softmax(Epoch& epoch, RowState& state) const {
    std::array<float, kLanes> top;
    top.fill(Constant(exact::kMasked));
    for (int c = 0; c < geometry_.cta_k; ++c) {
      float& lane = top[static_cast<size_t>(Lane(c))];
      lane = MaxFtz(lane, epoch.x[static_cast<size_t>(c)]);
    }
    float m = state.m;
    for (size_t t = 0; t < kLanes; ++t) {
      m = MaxFtz(m, FmaFtz(top[t], epoch.s[t], Constant(exact::kMinusOffset)));
    }
    epoch.a =
        captured_.a != nullptr ? captured_.a[EpochAt(epoch.index, 1)] : Ex2Of(SubFtz(state.m, m));
    state.m = m;
    if (out_.m != nullptr) out_.m[EpochAt(epoch.index, 1)] = m;
    if (out_.a != nullptr) out_.a[EpochAt(epoch.index, 1)] = epoch.a;
    for (int c = 0; c < geometry_.cta_k; ++c) {
      const size_t i = static_cast<size_t>(c);
      const int64_t key = epoch.index * geometry_.cta_k + c;
      const bool inside = key < problem_.k_len;
      const int64_t place = at_ * problem_.k_len + key;
      epoch.p[i] = inside && captured_.p != nullptr
                       ? captured_.p[place]
                       : Ex2Of(FmaFtz(epoch.x[i], epoch.s[static_cast<size_t>(Lane(c))], -m));
      epoch.p8[i] = strict::ToE4m3(epoch.p[i]);
      if (inside && out_.p != nullptr) out_.p[place] = epoch.p[i];
      if (inside && out_.p8 != nullptr) out_.p8[place] = epoch.p8[i];
    }
  }

  // d_lane, from p before its quantisation.
  void Denominator(const Epoch& epoch, RowState& state) const {
    for (size_t t = 0; t < kLanes; ++t) {
      for (size_t group = 0; group < static_cast<size_t>(geometry_.cta_k); group += 16) {
        const float* p = epoch.p.data() + group + 2 * t;
        const float sum = AddFtz(AddFtz(AddFtz(p[0], p[1]), p[8]), p[9]);
        state.d[t] = group == 0 ? FmaFtz(state.d[t], epoch.a, sum) : AddFtz(state.d[t], sum);
      }
      if (out_.d_lane != nullptr) {
        out_.d_lane[EpochAt(epoch.index, kLanes) + static_cast<int64_t>(t)] = state.d[t];
      }
    }
  }

  // The accumulator after the kStepKeys keys from `first` of the epoch.
  float Step(float sum, const Epoch& epoch, int first, int channel) const {
    const int64_t begin = epoch.index * geometry_.cta_k + first;
    const uint8_t* v = prepared_.v8 + (k_tensor_ * dim_ + channel) * k_pad_ + begin;
    const std::array<double, 256>& value = E4m3Values();
    double total = sum;
    for (int position = 0; position < kStepKeys; ++position) {
      const int token = position / 16 * 16 + exact::VToken(position % 16);
      if (begin + token >= problem_.k_len) continue;  // padding: zero times zero
      total += value[epoch.p8[static_cast<size_t>(first + token)]] * value[v[position]];
    }
    if (problem_.path != ExactPath::kA16) return static_cast<float>(total);
    return WidenExact(ExactType::kF16, NarrowExactOnce(ExactType::kF16, total));
  }

  // u, ro.
  void Values(const Epoch& epoch, RowState& state) const {
    const bool whole = problem_.path == ExactPath::kA1;  // one accumulator for all keys
    for (int channel = 0; channel < dim_; ++channel) {
      float& ro = state.ro[static_cast<size_t>(channel)];
      float u = whole ? MulFtz(ro, epoch.a) : 0.0f;
      for (int f = 0; f < steps_; ++f) {
        const int64_t place = (EpochAt(epoch.index, steps_) + f) * dim_ + channel;
        u = captured_.u != nullptr ? captured_.u[place] : Step(u, epoch, f * kStepKeys, channel);
        if (out_.u != nullptr) out_.u[place] = u;
      }
      ro = whole ? u : FmaFtz(epoch.a, ro, u);
      if (out_.ro != nullptr) out_.ro[EpochAt(epoch.index, dim_) + channel] = ro;
    }
  }

  // d, r, out32, o, lse2, lse_raw, lse.
  void Finish(const RowState& state) const {
    const float d = AddFtz(AddFtz(state.d[0], state.d[1]), AddFtz(state.d[2], state.d[3]));
    const float r = captured_.r != nullptr     ? captured_.r[at_]
                    : hardware_.rcp != nullptr ? hardware_.rcp(d)
                                               : strict::Rcp(d);
    if (out_.d != nullptr) out_.d[at_] = d;
    if (out_.r != nullptr) out_.r[at_] = r;
    uint16_t* o = static_cast<uint16_t*>(problem_.o.data) + batch_ * problem_.o.batch_stride +
                  row_ * problem_.o.row_stride + head_ * problem_.o.head_stride;
    for (int channel = 0; channel < dim_; ++channel) {
      const float ro = state.ro[static_cast<size_t>(channel)];
      const float out32 = MulFtz(MulFtz(ro, r), prepared_.v_scale[k_tensor_ * dim_ + channel]);
      if (out_.out32 != nullptr) out_.out32[at_ * dim_ + channel] = out32;
      if (channel < problem_.head_dim) o[channel] = NarrowExact(problem_.type, out32);
    }
    const float lg2 = hardware_.lg2 != nullptr ? hardware_.lg2(d) : strict::Lg2(d);
    const float lse2 = captured_.lse2 != nullptr ? captured_.lse2[at_] : AddFtz(lg2, state.m);
    if (out_.lse2 != nullptr) out_.lse2[at_] = lse2;
    const float lse_raw = MulFtz(lse2, Constant(exact::kLn2));
    if (problem_.lse_raw != nullptr) problem_.lse_raw[at_] = lse_raw;
    if (problem_.lse != nullptr) problem_.lse[at_] = Corrected(lse_raw);
  }

  // lse_raw + q . mean * sm_scale: smoothing took q . mean from every score of the row.
  float Corrected(float lse_raw) const {
    if (!problem_.smooth_k) return lse_raw;
    const uint16_t* q = static_cast<const uint16_t*>(problem_.q.data) +
                        batch_ * problem_.q.batch_stride + row_ * problem_.q.row_stride +
                        head_ * problem_.q.head_stride;
    const uint16_t* mean = prepared_.k_mean + k_tensor_ * dim_;
    double dot = 0.0;
    for (int64_t c = 0; c < problem_.head_dim; ++c) {
      dot += static_cast<double>(WidenExact(problem_.type, q[c])) *
             static_cast<double>(WidenExact(problem_.type, mean[c]));
    }
    const float correction = WidenExact(problem_.type, NarrowExactOnce(problem_.type, dot));
    return AddFtz(lse_raw, MulFtz(correction, problem_.sm_scale));
  }

  const ExactProblem& problem_;
  const ExactPrepared& prepared_;
  const OracleHardware& hardware_;
  const ExactCheckpoints& captured_;
  const ExactCheckpoints& out_;
  const exact::Geometry geometry_;
  const int dim_;
  const int64_t q_pad_;
  const int64_t k_pad_;
  const int64_t epochs_;  // of the longest tile
  const int steps_;
  const float scale_;  // sm_scale * log2(e)
  int64_t batch_ = 0;
  int64_t head_ = 0;
  int64_t row_ = 0;
  int64_t q_tensor_ = 0;
  int64_t k_tensor_ = 0;
  int64_t at_ = 0;  // (batch, head, row) in dense order
};

// No key: nothing to attend to.
void EmptyRow(const ExactProblem& problem, int64_t batch, int64_t head, int64_t row) {
  uint16_t* o = static_cast<uint16_t*>(problem.o.data) + batch * problem.o.batch_stride +
                row * problem.o.row_stride + head * problem.o.head_stride;
  std::fill(o, o + problem.head_dim, uint16_t{0});
  const int64_t at = (batch * problem.q_heads + head) * problem.q_len + row;
  const float nothing = -std::numeric_limits<float>::infinity();
  if (problem.lse_raw != nullptr) problem.lse_raw[at] = nothing;
  if (problem.lse != nullptr) problem.lse[at] = nothing;
}

absl::Status CheckPrepared(const ExactPrepared& prepared) {
  const bool whole = prepared.q8 != nullptr && prepared.k8 != nullptr && prepared.v8 != nullptr &&
                     prepared.q_scale != nullptr && prepared.k_scale != nullptr &&
                     prepared.v_scale != nullptr && prepared.k_mean != nullptr;
  if (whole) return absl::OkStatus();
  return InvalidArgument({.what = "prepared buffers of exact attention",
                          .got = "a null pointer",
                          .wanted = "q8, k8, v8, their scales and k_mean",
                          .where = "OracleAttention"});
}

}  // namespace

absl::Status OracleAttention(const ExactProblem& problem, const ExactPrepared& prepared,
                             const OracleHardware& hardware, const ExactCheckpoints* captured,
                             const ExactCheckpoints& out) {
  H3RT_RETURN_IF_ERROR(CheckExactProblem(problem));
  if (problem.batch == 0 || problem.q_heads == 0 || problem.q_len == 0) return absl::OkStatus();
  if (problem.k_len > 0) H3RT_RETURN_IF_ERROR(CheckPrepared(prepared));
  const ExactCheckpoints nothing;
  Attention attention(problem, prepared, hardware, captured != nullptr ? *captured : nothing, out);
  for (int64_t b = 0; b < problem.batch; ++b) {
    for (int64_t h = 0; h < problem.q_heads; ++h) {
      for (int64_t row = 0; row < problem.q_len; ++row) {
        if (problem.k_len == 0) {
          EmptyRow(problem, b, h, row);
        } else {
          attention.Row(b, h, row);
        }
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace h3rt
