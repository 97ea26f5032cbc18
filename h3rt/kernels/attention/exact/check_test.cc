// What exact attention refuses, and what it does not.
#include "h3rt/kernels/attention/exact/check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace h3rt {
namespace {

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

// Two sequences of 3 queries and 5 keys, 4 heads on 2, 64 channels. Nothing reads the memory.
struct Valid {
  Valid() {
    p.batch = 2;
    p.q_heads = 4;
    p.k_heads = 2;
    p.q_len = 3;
    p.k_len = 5;
    p.head_dim = 64;
    p.sm_scale = DefaultSmScale(64);
    p.q = {memory, 3 * 256, 256, 64};
    p.k = {memory, 5 * 128, 128, 64};
    p.v = p.k;
    p.o = {memory, 3 * 256, 256, 64};
    p.lse = lse;
    p.lse_raw = lse;
  }
  alignas(16) char memory[16] = {};
  float lse[1] = {};
  ExactProblem p;
};

template <typename Change>
void ExpectRefused(const std::string& named, const Change& change) {
  SCOPED_TRACE(named);
  Valid valid;
  change(valid.p);
  const absl::Status status = CheckExactProblem(valid.p);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_NE(status.message().find("exact attention: " + named), std::string::npos) << status;
  EXPECT_NE(status.message().find("got "), std::string::npos) << status;
  EXPECT_NE(status.message().find("wanted "), std::string::npos) << status;
}

template <typename Change>
void ExpectTaken(const Change& change) {
  Valid valid;
  change(valid.p);
  EXPECT_TRUE(CheckExactProblem(valid.p).ok()) << CheckExactProblem(valid.p);
}

TEST(ExactCheckTest, Extents) {
  ExpectTaken([](ExactProblem&) {});
  ExpectRefused("batch", [](ExactProblem& p) { p.batch = -1; });
  ExpectRefused("q_heads", [](ExactProblem& p) { p.q_heads = -4; });
  ExpectRefused("k_heads", [](ExactProblem& p) { p.k_heads = -2; });
  ExpectRefused("q_len", [](ExactProblem& p) { p.q_len = -1; });
  ExpectRefused("k_len", [](ExactProblem& p) { p.k_len = std::numeric_limits<int64_t>::min(); });
  for (const int64_t dim : {-1, 0, 129, 160, 256}) {
    ExpectRefused("head_dim", [&](ExactProblem& p) { p.head_dim = dim; });
  }
  for (const int64_t dim : {1, 40, 64, 72, 96, 128}) {
    ExpectTaken([&](ExactProblem& p) {
      p.head_dim = dim;
      p.q.head_stride = p.o.head_stride = dim;
      p.q.row_stride = p.o.row_stride = 4 * dim;
      p.q.batch_stride = p.o.batch_stride = 12 * dim;
    });
  }
  ExpectRefused("q_heads", [](ExactProblem& p) { p.k_heads = 3; });
  ExpectRefused("q_heads", [](ExactProblem& p) { p.k_heads = 8; });
  ExpectRefused("q_heads", [](ExactProblem& p) { p.k_heads = 0; });
}

TEST(ExactCheckTest, ZeroExtentsNeedNoMemory) {
  ExpectTaken([](ExactProblem& p) {
    p.batch = 0;
    p.q = p.k = p.v = {};
    p.o = {};
  });
  ExpectTaken([](ExactProblem& p) {
    p.q_len = 0;
    p.q = {};
    p.o = {};
  });
  ExpectTaken([](ExactProblem& p) {
    p.k_len = 0;
    p.k = p.v = {};
  });
  ExpectTaken([](ExactProblem& p) {
    p.q_heads = p.k_heads = 0;
    p.q = p.k = p.v = {};
    p.o = {};
  });
}

TEST(ExactCheckTest, Kinds) {
  ExpectRefused("path", [](ExactProblem& p) { p.path = static_cast<ExactPath>(4); });
  ExpectRefused("granularity",
                [](ExactProblem& p) { p.granularity = static_cast<ExactGranularity>(2); });
  ExpectRefused("type", [](ExactProblem& p) { p.type = static_cast<ExactType>(7); });
}

TEST(ExactCheckTest, Scale) {
  for (const float scale :
       {std::nanf(""), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity(), -0.1f, -0.0f, 0.0f, 1e-6f, 1.8e-5f}) {
    ExpectRefused("sm_scale", [&](ExactProblem& p) { p.sm_scale = scale; });
  }
  for (const float scale : {1.9e-5f, 0.1f, 1.0f, 100.0f}) {
    ExpectTaken([&](ExactProblem& p) { p.sm_scale = scale; });
  }
}

const void* Shifted(const void* data, int64_t bytes) {
  return reinterpret_cast<const void*>(reinterpret_cast<intptr_t>(data) + bytes);
}

TEST(ExactCheckTest, Memory) {
  ExpectRefused("q.data", [](ExactProblem& p) { p.q.data = nullptr; });
  ExpectRefused("k.data", [](ExactProblem& p) { p.k.data = nullptr; });
  ExpectRefused("v.data", [](ExactProblem& p) { p.v.data = nullptr; });
  ExpectRefused("o.data", [](ExactProblem& p) { p.o.data = nullptr; });
  ExpectRefused("q.data", [](ExactProblem& p) { p.q.data = Shifted(p.q.data, 1); });
  ExpectRefused("k.data", [](ExactProblem& p) { p.k.data = Shifted(p.k.data, 1); });
  ExpectRefused("v.data", [](ExactProblem& p) { p.v.data = Shifted(p.v.data, 3); });
  ExpectRefused("o.data",
                [](ExactProblem& p) { p.o.data = const_cast<void*>(Shifted(p.o.data, 1)); });
  ExpectTaken([](ExactProblem& p) {
    p.q.data = Shifted(p.q.data, 2);
    p.o.data = const_cast<void*>(Shifted(p.o.data, 6));
  });
  const auto odd = [](const void* data) { return reinterpret_cast<intptr_t>(data) + 2; };
  ExpectRefused("lse", [&](ExactProblem& p) { p.lse = reinterpret_cast<float*>(odd(p.lse)); });
  ExpectRefused("lse_raw",
                [&](ExactProblem& p) { p.lse_raw = reinterpret_cast<float*>(odd(p.lse)); });
  ExpectRefused("given_k_mean", [](ExactProblem& p) {
    p.given_k_mean = static_cast<const uint16_t*>(Shifted(p.q.data, 1));
  });
  ExpectTaken([](ExactProblem& p) { p.lse = p.lse_raw = nullptr; });
}

TEST(ExactCheckTest, InputsMayOverlapOutputsMayNot) {
  ExpectTaken([](ExactProblem& p) { p.q = {p.q.data, 0, 0, 0}; });
  ExpectTaken([](ExactProblem& p) { p.k = {p.k.data, -640, -128, 64}; });
  ExpectRefused("o.head_stride", [](ExactProblem& p) { p.o.head_stride = 63; });
  ExpectRefused("o.head_stride", [](ExactProblem& p) { p.o.head_stride = 0; });
  ExpectRefused("o.row_stride", [](ExactProblem& p) { p.o.row_stride = 255; });
  ExpectRefused("o.batch_stride", [](ExactProblem& p) { p.o.batch_stride = 3 * 256 - 1; });
  ExpectTaken([](ExactProblem& p) { p.o = {p.o.data, 4 * 192, 64, 192}; });  // HND
  ExpectRefused("o.head_stride", [](ExactProblem& p) { p.o = {p.o.data, 4 * 192, 64, 191}; });
  ExpectTaken([](ExactProblem& p) { p.o = {p.o.data, -3 * 256, 256, -64}; });
  ExpectTaken([](ExactProblem& p) {  // strides of extents below 2 are not looked at
    p.batch = 1;
    p.q_len = 1;
    p.o.batch_stride = 0;
    p.o.row_stride = kHuge;
    p.q.row_stride = -kHuge - 1;
  });
}

TEST(ExactCheckTest, SixtyThreeBits) {
  const int64_t most = (kHuge / 2 - 63) / 2;  // two rows apart, in elements of two bytes
  ExpectTaken([&](ExactProblem& p) { p.q = {p.q.data, 0, most, 0}; });
  ExpectRefused("q.row_stride", [&](ExactProblem& p) { p.q = {p.q.data, 0, most + 1, 0}; });
  ExpectRefused("q.row_stride", [&](ExactProblem& p) { p.q = {p.q.data, 0, -kHuge - 1, 0}; });
  ExpectRefused("v.head_stride", [&](ExactProblem& p) {
    p.v = {p.v.data, most, most / 4, kHuge / 2};
  });
  ExpectRefused("o.batch_stride", [&](ExactProblem& p) { p.o.batch_stride = kHuge; });
  ExpectRefused("padded elements of q", [](ExactProblem& p) { p.q_len = kHuge; });
  ExpectRefused("padded elements of k", [](ExactProblem& p) { p.k_len = int64_t{1} << 52; });
  ExpectRefused("padded elements of q", [](ExactProblem& p) {
    p.batch = p.q_len = kHuge;
    p.q_heads = p.k_heads = kHuge;
  });
  // 2^32 elements and more are no reason to refuse.
  ExpectTaken([](ExactProblem& p) {
    p.batch = 1;
    p.q_len = p.k_len = 200064;
    p.q_heads = p.k_heads = 56;
    p.q = {p.q.data, 0, 21504, 64};
    p.k = p.v = p.q;
    p.o = {p.o.data, 0, 56 * 64, 64};
  });
}

TEST(ExactCheckTest, FiniteNamesTensorAndIndex) {
  const Valid valid;
  const uint64_t none[3] = {kAllFinite, kAllFinite, kAllFinite};
  EXPECT_TRUE(CheckFinite(valid.p, none).ok());
  const auto message = [&](int tensor, uint64_t index) {
    uint64_t found[3] = {kAllFinite, kAllFinite, kAllFinite};
    found[tensor] = index;
    const absl::Status status = CheckFinite(valid.p, found);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_NE(message(0, 0).find("q[0, 0, 0, 0]"), std::string::npos);
  EXPECT_NE(message(0, ((1 * 3 + 2) * 4 + 3) * 64 + 63).find("q[1, 2, 3, 63]"), std::string::npos);
  EXPECT_NE(message(1, ((1 * 5 + 4) * 2 + 1) * 64 + 7).find("k[1, 4, 1, 7]"), std::string::npos);
  EXPECT_NE(message(2, 64).find("v[0, 0, 1, 0]"), std::string::npos);
}

}  // namespace
}  // namespace h3rt
