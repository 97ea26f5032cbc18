// What the tests of the host ops share: seeded input, guarded output, pools of several sizes.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "h3rt/base/exec.h"
#include "h3rt/num/bf16.h"
#include "h3rt/num/compare.h"
#include "h3rt/num/f16.h"
#include "h3rt/tensor/view.h"

namespace h3rt::test {

// Roughly normal numbers, mean 0 and deviation `scale`; the same for a seed everywhere.
inline std::vector<float> RandomFloats(int64_t n, uint64_t seed, float scale = 1.0f) {
  std::vector<float> values(static_cast<size_t>(n));
  uint64_t state = seed * 0x9e3779b97f4a7c15ull + 0x1234567ull;
  const auto uniform = [&state] {
    state += 0x9e3779b97f4a7c15ull;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return static_cast<float>((z ^ (z >> 31)) >> 40) * 0x1p-24f;
  };
  for (float& v : values) {
    v = (uniform() + uniform() + uniform() + uniform() - 2.0f) * 1.7320508f * scale;
  }
  return values;
}

inline std::vector<uint16_t> ToBf16(std::span<const float> from) {
  std::vector<uint16_t> to(from.size());
  NarrowToBf16(from.data(), to.data(), static_cast<int64_t>(from.size()));
  return to;
}

inline std::vector<uint16_t> ToF16(std::span<const float> from) {
  std::vector<uint16_t> to(from.size());
  for (size_t i = 0; i < from.size(); ++i) to[i] = FloatToF16(from[i]);
  return to;
}

// A view of floats or 16-bit patterns. `elements` may be a part of the array.
inline ConstTensorView ViewOf(const std::vector<float>& data, const Shape& shape) {
  return ConstTensorView::Of(data.data(), shape);
}
inline ConstTensorView ViewOf(const std::vector<uint16_t>& data, DType dtype, const Shape& shape) {
  return ConstTensorView(reinterpret_cast<const std::byte*>(data.data()), dtype, shape);
}

// An output that knows what was written: a NaN of a payload that no computation makes lies in it
// and in the bands around it.
class GuardedOutput {
 public:
  static constexpr int64_t kBand = 64;

  explicit GuardedOutput(int64_t n)
      : n_(n), data_(static_cast<size_t>(n + 2 * kBand), std::bit_cast<float>(0x7fdead01u)) {}

  float* data() { return data_.data() + kBand; }
  TensorView view(const Shape& shape) { return TensorView::Of(data(), shape); }
  std::span<const float> values() const { return {data_.data() + kBand, static_cast<size_t>(n_)}; }
  bool GuardsIntact() const {
    for (int64_t i = 0; i < kBand; ++i) {
      if (!Poisoned(i) || !Poisoned(kBand + n_ + i)) return false;
    }
    return true;
  }
  bool AllWritten() const { return Unwritten() == 0; }
  int64_t Unwritten() const {
    int64_t count = 0;
    for (int64_t i = 0; i < n_; ++i) count += Poisoned(kBand + i) ? 1 : 0;
    return count;
  }

 private:
  bool Poisoned(int64_t i) const {
    return std::bit_cast<uint32_t>(data_[static_cast<size_t>(i)]) == 0x7fdead01u;
  }

  int64_t n_;
  std::vector<float> data_;
};

// Zeroed floats of which only touched pages exist: for offsets past 2^31 and 2^32 elements.
class SparseFloats {
 public:
  explicit SparseFloats(int64_t n) : bytes_(static_cast<size_t>(n) * sizeof(float)) {
    void* p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    data_ = p == MAP_FAILED ? nullptr : static_cast<float*>(p);
  }
  ~SparseFloats() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  SparseFloats(const SparseFloats&) = delete;
  SparseFloats& operator=(const SparseFloats&) = delete;
  float* data() { return data_; }  // null: the system gives no such address range

 private:
  size_t bytes_;
  float* data_ = nullptr;
};

// ||a - b|| / ||b||; NaN when anything is not finite in one only.
inline double RelativeL2(std::span<const float> a, std::span<const float> b) {
  return CompareFloats(a, b).relative_l2;
}

// The bound for an FP32 implementation: twice the error of the straightforward loop `naive` against
// the float64 result, but no less than one rounding of the result itself.
inline double DerivedBound(std::span<const float> naive, std::span<const float> reference) {
  return std::max(2.0 * RelativeL2(naive, reference), 0x1p-24);
}

// `fast` stays within the derived bound of the reference.
inline void ExpectWithin(std::span<const float> fast, std::span<const float> naive,
                         std::span<const float> reference) {
  const double bound = DerivedBound(naive, reference);
  const CompareResult result = CompareFloats(fast, reference);
  EXPECT_TRUE(Within(result, bound)) << Describe(result) << ", bound " << bound;
}

// For n results that are rounded to bfloat16 at the end: FP32 errors near 1e-6 move one element in
// 2^-9 / 1e-6 = 2,000 over a rounding boundary; ten times that many are allowed, and one at least.
// A moved element is off by one unit, at most 2^-7 of it and 2^-8 on average over elements of equal
// size; the square root of the moved part is the relative L2 distance. A single element may be off
// by a whole unit and also be larger than the others: `n` below 200 allow for twice the root mean
// square.
inline double Bf16FlipBound(int64_t n) {
  const auto elements = static_cast<double>(std::max<int64_t>(n, 1));
  const double moved = std::ceil(elements / 200.0);
  return (n < 200 ? 2.0 : 1.0) * 0x1p-8 * std::sqrt(moved / elements);
}

// A context with its own pool and, if named, one op's implementation.
class TestContext {
 public:
  explicit TestContext(int threads, const std::string& op = "", const std::string& impl = "")
      : pool_(threads) {
    if (!op.empty()) impls_[op] = impl;
    context_.pool = &pool_;
    context_.impls = &impls_;
  }
  const ExecContext& operator()() const { return context_; }

 private:
  ThreadPool pool_;
  ImplChoice impls_;
  ExecContext context_;
};

inline constexpr std::array<int, 4> kThreadCounts = {1, 2, 3, 8};

// Runs `body` into a fresh output of n floats for every thread count; the output of the first run,
// or nothing when two runs differ in a byte, an element was not written or a guard was.
inline std::vector<float> SameForAllThreadCounts(
    int64_t n, const std::function<bool(const ExecContext&, float*)>& body) {
  std::vector<float> first;
  for (const int threads : kThreadCounts) {
    const TestContext context(threads);
    GuardedOutput out(n);
    if (!body(context(), out.data()) || !out.GuardsIntact() || !out.AllWritten()) return {};
    const std::span<const float> values = out.values();
    if (first.empty()) {
      first.assign(values.begin(), values.end());
    } else if (std::memcmp(first.data(), values.data(), values.size_bytes()) != 0) {
      return {};
    }
  }
  return first;
}

}  // namespace h3rt::test
