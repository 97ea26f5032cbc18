#include "h3rt/kernels/attention/exact/check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

namespace h3rt {
namespace {

using Wide = __int128;

constexpr float kLeastScale = 1.8e-5f;

// a * b for values of about 2^63 at most, cut to 2^63: enough to see that a limit is passed.
Wide Times(Wide a, Wide b) { return std::min(a * b, Wide{1} << 63); }

std::string Text(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.9g", value);
  return text;
}

absl::Status Refuse(std::string what, std::string got, std::string wanted) {
  return InvalidArgument(
      {.what = "exact attention: " + std::move(what), .got = std::move(got), .wanted = wanted});
}

absl::Status CheckExtents(const ExactProblem& p) {
  const std::pair<const char*, int64_t> extents[] = {
      {"batch", p.batch}, {"q_heads", p.q_heads}, {"k_heads", p.k_heads},
      {"q_len", p.q_len}, {"k_len", p.k_len},
  };
  for (const auto& [name, value] : extents) {
    if (value < 0) return Refuse(name, std::to_string(value), "0 or more");
  }
  if (p.padded_dim() == 0) {
    return Refuse("head_dim", std::to_string(p.head_dim), "1 to 128");
  }
  if (p.k_heads == 0 ? p.q_heads != 0 : p.q_heads % p.k_heads != 0) {
    return Refuse("q_heads", std::to_string(p.q_heads),
                  "a multiple of k_heads = " + std::to_string(p.k_heads));
  }
  const std::array<std::pair<const char*, std::array<int64_t, 3>>, 2> tensors = {{
      {"q", {p.batch, p.q_heads, p.q_len}},
      {"k", {p.batch, p.k_heads, p.k_len}},
  }};
  for (const auto& [name, e] : tensors) {
    const Wide rows = std::max<Wide>(Wide{e[2]} + exact::kRowPad, exact::kRowPad);
    const Wide elements = Times(Times(Times(e[0], e[1]), rows), p.padded_dim());
    if (elements > kMostExactElements) {
      return Refuse(std::string("padded elements of ") + name,
                    "[" + std::to_string(e[0]) + ", " + std::to_string(e[2]) + ", " +
                        std::to_string(e[1]) + ", " + std::to_string(p.head_dim) + "]",
                    "at most 2^59");
    }
  }
  return absl::OkStatus();
}

struct Tensor {
  const char* name;
  const void* data;
  std::array<int64_t, 3> extents;  // batch, row, head
  std::array<int64_t, 3> strides;
};

constexpr std::array<const char*, 3> kStrideNames = {"batch_stride", "row_stride", "head_stride"};

Wide Magnitude(int64_t stride) { return stride < 0 ? -Wide{stride} : Wide{stride}; }

std::string Address(const void* data) {
  char text[32];
  std::snprintf(text, sizeof(text), "%p", data);
  return text;
}

absl::Status CheckTensor(const Tensor& t, int64_t head_dim, size_t alignment) {
  if (t.extents[0] == 0 || t.extents[1] == 0 || t.extents[2] == 0) return absl::OkStatus();
  if (t.data == nullptr) {
    return Refuse(std::string(t.name) + ".data", "null", "memory: the tensor has elements");
  }
  if (reinterpret_cast<uintptr_t>(t.data) % alignment != 0) {
    return Refuse(std::string(t.name) + ".data", Address(t.data),
                  "an address on " + std::to_string(alignment) + " bytes");
  }
  // Of the farthest element to either side, in bytes of a 16-bit type.
  Wide above = head_dim - 1;
  Wide below = 0;
  for (size_t i = 0; i < 3; ++i) {
    const Wide reach = Times(Wide{t.extents[i]} - 1, Magnitude(t.strides[i]));
    (t.strides[i] < 0 ? below : above) += reach;
    if (2 * std::max(above, below) > INT64_MAX) {
      return Refuse(std::string(t.name) + "." + kStrideNames[i], std::to_string(t.strides[i]),
                    "byte offsets that fit 63 bits");
    }
  }
  return absl::OkStatus();
}

// Strides nest when, from the smallest up, each is at least what lies within one step of it: then
// no two elements share a place.
absl::Status CheckNesting(const Tensor& t, int64_t head_dim) {
  if (t.extents[0] == 0 || t.extents[1] == 0 || t.extents[2] == 0) return absl::OkStatus();
  std::array<size_t, 3> order = {0, 1, 2};
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return Magnitude(t.strides[a]) < Magnitude(t.strides[b]); });
  Wide within = head_dim;
  for (const size_t i : order) {
    if (t.extents[i] < 2) continue;
    const Wide stride = Magnitude(t.strides[i]);
    if (stride < within) {
      return Refuse(std::string(t.name) + "." + kStrideNames[i], std::to_string(t.strides[i]),
                    "at least " + std::to_string(static_cast<int64_t>(within)) +
                        " in magnitude, so that elements of the output do not overlap");
    }
    within += (Wide{t.extents[i]} - 1) * stride;
  }
  return absl::OkStatus();
}

absl::Status CheckAligned(const char* name, const void* data, size_t alignment) {
  if (reinterpret_cast<uintptr_t>(data) % alignment == 0) return absl::OkStatus();
  return Refuse(name, Address(data), "an address on " + std::to_string(alignment) + " bytes");
}

}  // namespace

absl::Status CheckExactProblem(const ExactProblem& p) {
  if (p.path > ExactPath::kB) {
    return Refuse("path", std::to_string(static_cast<int>(p.path)), "A16, A32, A1 or B");
  }
  if (p.granularity > ExactGranularity::kPerThread) {
    return Refuse("granularity", std::to_string(static_cast<int>(p.granularity)),
                  "per_warp or per_thread");
  }
  if (p.type > ExactType::kF16) {
    return Refuse("type", std::to_string(static_cast<int>(p.type)), "bf16 or f16");
  }
  H3RT_RETURN_IF_ERROR(CheckExtents(p));
  if (!std::isfinite(p.sm_scale) || !(p.sm_scale > kLeastScale)) {
    return Refuse("sm_scale", Text(static_cast<double>(p.sm_scale)), "finite and above 1.8e-5");
  }
  const auto input = [&](const char* name, const ExactInput& in, int64_t len, int64_t heads) {
    return CheckTensor(
        {name, in.data, {p.batch, len, heads}, {in.batch_stride, in.row_stride, in.head_stride}},
        p.head_dim, 2);
  };
  H3RT_RETURN_IF_ERROR(input("q", p.q, p.q_len, p.q_heads));
  H3RT_RETURN_IF_ERROR(input("k", p.k, p.k_len, p.k_heads));
  H3RT_RETURN_IF_ERROR(input("v", p.v, p.k_len, p.k_heads));
  const Tensor o = {"o",
                    p.o.data,
                    {p.batch, p.q_len, p.q_heads},
                    {p.o.batch_stride, p.o.row_stride, p.o.head_stride}};
  H3RT_RETURN_IF_ERROR(CheckTensor(o, p.head_dim, 2));
  H3RT_RETURN_IF_ERROR(CheckNesting(o, p.head_dim));
  H3RT_RETURN_IF_ERROR(CheckAligned("given_k_mean", p.given_k_mean, 2));
  H3RT_RETURN_IF_ERROR(CheckAligned("lse", p.lse, 4));
  return CheckAligned("lse_raw", p.lse_raw, 4);
}

absl::Status CheckFinite(const ExactProblem& p, const uint64_t* not_finite) {
  const struct {
    const char* name;
    int64_t len;
    int64_t heads;
  } tensors[] = {{"q", p.q_len, p.q_heads}, {"k", p.k_len, p.k_heads}, {"v", p.k_len, p.k_heads}};
  for (size_t i = 0; i < 3; ++i) {
    uint64_t index = not_finite[i];
    if (index == kAllFinite) continue;
    const auto& [name, len, heads] = tensors[i];
    std::array<uint64_t, 4> place{};
    const std::array<int64_t, 4> extents = {p.batch, len, heads, p.head_dim};
    for (size_t d = 4; d-- > 0;) {
      const auto extent = static_cast<uint64_t>(std::max<int64_t>(extents[d], 1));
      place[d] = index % extent;
      index /= extent;
    }
    std::string text = "[";
    for (size_t d = 0; d < 4; ++d) text += (d == 0 ? "" : ", ") + std::to_string(place[d]);
    return Refuse(std::string(name) + text + "]", "NaN or infinity",
                  "finite values, by [batch, row, head, channel]");
  }
  return absl::OkStatus();
}

}  // namespace h3rt
