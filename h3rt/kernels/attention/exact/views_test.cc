#include "h3rt/kernels/attention/exact/views.h"

#include <array>
#include <cstddef>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h3rt {
namespace {

using ::testing::HasSubstr;

// A fused buffer of 2 x 5 rows of 3 x 4 heads of 64 channels, and an output of its own.
struct Buffers {
  std::vector<std::byte> fused = std::vector<std::byte>(2 * 5 * 3 * 4 * 64 * 2);
  std::vector<std::byte> output = std::vector<std::byte>(2 * 5 * 4 * 64 * 2);

  ConstTensorView Third(int64_t which, DType dtype = DType::kBF16) const {
    const std::array<int64_t, 4> strides = {5 * 768, 768, 64, 1};
    return {fused.data() + which * 256 * 2, dtype, Shape({2, 5, 4, 64}), strides};
  }
  ExactViews Views() {
    return {Third(0), Third(1), Third(2), {output.data(), DType::kBF16, Shape({2, 5, 4, 64})}};
  }
};

TEST(ExactViewsTest, FusedBuffer) {
  Buffers buffers;
  ExactProblem options;
  options.path = ExactPath::kA16;
  options.causal = true;
  const auto p = ExactProblemOf(buffers.Views(), options);
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_EQ(p->path, ExactPath::kA16);
  EXPECT_TRUE(p->causal);
  EXPECT_EQ(p->sm_scale, 0.125f);
  EXPECT_EQ(p->k.data, buffers.fused.data() + 512);
  EXPECT_EQ(p->v.row_stride, 768);
  EXPECT_EQ(p->q.batch_stride, 3840);
  EXPECT_EQ(p->o.row_stride, 256);
  EXPECT_EQ(p->q_heads, 4);
  EXPECT_EQ(p->k_len, 5);
}

void ExpectRefused(const ExactViews& views, const char* text) {
  const auto p = ExactProblemOf(views, {});
  ASSERT_EQ(p.status().code(), absl::StatusCode::kInvalidArgument) << text;
  EXPECT_THAT(std::string(p.status().message()), HasSubstr(text));
}

// T10: mixed types, and whatever else does not fit, before anything runs.
TEST(ExactViewsTest, RefusesWhatDoesNotFit) {
  Buffers buffers;
  ExactViews views = buffers.Views();
  views.k = buffers.Third(1, DType::kF16);
  ExpectRefused(views, "dtype of k: got F16, wanted BF16, as q has");
  views = buffers.Views();
  views.o = {buffers.output.data(), DType::kF16, Shape({2, 5, 4, 64})};
  ExpectRefused(views, "dtype of o: got F16");
  views = buffers.Views();
  views.q = {buffers.fused.data(), DType::kF32, Shape({1, 1, 1, 64})};
  ExpectRefused(views, "dtype of q: got F32, wanted BF16 or F16");
  views = buffers.Views();
  views.v = {buffers.fused.data(), DType::kBF16, Shape({2, 4, 4, 64})};
  ExpectRefused(views, "extent of v: got 4, wanted 5 in dimension 1");
  views = buffers.Views();
  views.q = {buffers.fused.data(), DType::kBF16, Shape({2, 5, 256})};
  ExpectRefused(views, "rank of q: got 3, wanted 4");
  views = buffers.Views();
  const std::array<int64_t, 4> transposed = {5 * 256, 256, 1, 4};
  views.k = {buffers.fused.data(), DType::kBF16, Shape({2, 5, 4, 64}), transposed};
  ExpectRefused(views, "last stride of k: got 4, wanted 1");
  views = buffers.Views();
  const std::array<int64_t, 4> none = {0, 256, 64, 1};
  views.o = {buffers.output.data(), DType::kBF16, Shape({2, 5, 4, 64}), none};
  EXPECT_EQ(ExactProblemOf(views, {}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace h3rt
