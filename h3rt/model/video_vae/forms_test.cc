// The forms in which files hold weights: half precision, and queries, keys and values interleaved
// by head. Both are built here from the plain fixture.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "h3rt/io/checkpoint.h"
#include "h3rt/model/video_vae/video_vae.h"
#include "h3rt/num/bf16.h"
#include "h3rt/num/compare.h"
#include "h3rt/num/f16.h"

namespace h3rt {
namespace {

// Issue: relative L2 of the video VAE.
constexpr double kBound = 3e-6;

class VideoVaeForms : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = OpenVideoVae(std::string(H3RT_TEST_DATA) + "/h3/nano/vae");
    ASSERT_TRUE(opened.ok()) << opened.status();
    checkpoint_ = *std::move(opened);
  }

  // Two values of decode and encode, tiled: a clip of two chunks and pixels of two clips.
  std::array<Tensor, 2> RunBoth(const WeightStore& weights) {
    std::array<Tensor, 2> results;
    const auto vae = VideoVae::Create(checkpoint_.config, weights);
    EXPECT_TRUE(vae.ok()) << vae.status();
    if (!vae.ok()) return results;
    const VaeTiling tiling = {.tile = 16, .overlap = 8};
    auto decoded = vae->Decode(Waves({4, 8, 4, 6}).view(), tiling, context_);
    auto encoded = vae->Encode(Waves({3, 18, 16, 24}).view(), tiling, context_);
    EXPECT_TRUE(decoded.ok() && encoded.ok()) << decoded.status() << encoded.status();
    if (decoded.ok()) results[0] = *std::move(decoded);
    if (encoded.ok()) results[1] = *std::move(encoded);
    return results;
  }

  static Tensor Waves(const Shape& shape) {
    Tensor x = Tensor::Create(DType::kF32, shape).value();
    for (int64_t i = 0; i < x.elements(); ++i) {
      x.as<float>()[i] = static_cast<float>(i * 37 % 101) / 50.0f - 1.0f;
    }
    return x;
  }

  VideoVaeCheckpoint checkpoint_;
  ThreadPool pool_{2};
  ExecContext context_{.pool = &pool_};
};

std::string BytesOf(const Tensor& tensor) {
  const ConstTensorView view = tensor.view();
  return {reinterpret_cast<const char*>(view.data()), static_cast<size_t>(view.bytes())};
}

// Every weight in half precision, as the single-file release has them, against F32 weights of the
// same values: the widening is exact, so that nothing but the order of sums may differ.
TEST_F(VideoVaeForms, HalfPrecisionWeightsGiveWhatTheirValuesGive) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    WeightStore half;
    WeightStore wide;
    int64_t rounded = 0;
    for (const auto& [name, view] : checkpoint_.weights.entries()) {
      ASSERT_EQ(view.dtype(), DType::kF32) << name;
      const Tensor plain = Tensor::Copy(view).value();
      Tensor narrow = Tensor::Create(dtype, view.shape()).value();
      Tensor back = Tensor::Create(DType::kF32, view.shape()).value();
      for (int64_t i = 0; i < plain.elements(); ++i) {
        const float value = plain.as<float>()[i];
        const uint16_t bits = dtype == DType::kF16 ? FloatToF16(value) : FloatToBf16(value);
        narrow.as<uint16_t>()[i] = bits;
        back.as<float>()[i] = dtype == DType::kF16 ? F16ToFloat(bits) : Bf16ToFloat(bits);
        rounded += back.as<float>()[i] != value ? 1 : 0;
      }
      ASSERT_TRUE(half.AddOwned(name, std::move(narrow)).ok());
      ASSERT_TRUE(wide.AddOwned(name, std::move(back)).ok());
    }
    ASSERT_GT(rounded, 0);  // the values are not those of the fixture
    const std::array<Tensor, 2> got = RunBoth(half);
    const std::array<Tensor, 2> want = RunBoth(wide);
    for (size_t i = 0; i < 2; ++i) {
      ASSERT_FALSE(got[i].empty() || want[i].empty());
      const auto n = static_cast<size_t>(want[i].elements());
      const CompareResult result = CompareFloats({got[i].as<float>(), n}, got[i].shape().dims(),
                                                 {want[i].as<float>(), n}, want[i].shape().dims());
      EXPECT_TRUE(Within(result, kBound)) << NameOf(dtype) << " " << i << ": " << Describe(result);
    }
  }
}

// [heads, 3, head_dim, width] and [heads, 3, head_dim] in one piece; queries, keys and values are
// strided views of them.
TEST_F(VideoVaeForms, InterleavedHeadsGiveTheSameBytes) {
  const VideoVaeConfig& config = checkpoint_.config;
  const int64_t heads = config.decoder_heads;
  const int64_t head = config.decoder_head_dim;
  const int64_t width = heads * head;
  ASSERT_GT(heads, 1);
  WeightStore interleaved;
  int64_t replaced = 0;
  for (int64_t layer = 0; layer < config.decoder_layers; ++layer) {
    const std::string at = "decoder.transformer_blocks." + std::to_string(layer) + ".attn.to_";
    Tensor weight = Tensor::Create(DType::kF32, {heads, 3, head, width}).value();
    Tensor bias = Tensor::Create(DType::kF32, {heads, 3, head}).value();
    const std::array<std::string, 3> parts = {"q", "k", "v"};
    for (int64_t p = 0; p < 3; ++p) {
      const std::string name = at + parts[static_cast<size_t>(p)];
      const ConstTensorView w = checkpoint_.weights.entries().at(name + ".weight");
      const ConstTensorView b = checkpoint_.weights.entries().at(name + ".bias");
      const TensorView w_to = weight.view().Select(1, p);
      const TensorView b_to = bias.view().Select(1, p);
      ASSERT_TRUE(CopyElements(w.Reshape({heads, head, width}), w_to).ok());
      ASSERT_TRUE(CopyElements(b.Reshape({heads, head}), b_to).ok());
      ASSERT_FALSE(w_to.contiguous() || b_to.contiguous());
      interleaved.AddView(name + ".weight", w_to);
      interleaved.AddView(name + ".bias", b_to);
      ++replaced;
    }
    interleaved.AddBacking(std::move(weight));
    interleaved.AddBacking(std::move(bias));
  }
  ASSERT_EQ(replaced, 3 * config.decoder_layers);
  for (const auto& [name, view] : checkpoint_.weights.entries()) {
    if (!interleaved.Has(name)) interleaved.AddView(name, view);
  }
  const std::array<Tensor, 2> got = RunBoth(interleaved);
  const std::array<Tensor, 2> want = RunBoth(checkpoint_.weights);
  ASSERT_FALSE(got[0].empty() || want[0].empty());
  EXPECT_EQ(BytesOf(got[0]), BytesOf(want[0]));
}

}  // namespace
}  // namespace h3rt
