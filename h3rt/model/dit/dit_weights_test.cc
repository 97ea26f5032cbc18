// The forms in which released checkpoints hold the weights: interleaved heads, F16, F32 where the
// mixed precision wants bfloat16, and the pruned AdaLN.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "h3rt/model/dit/dit_testing.h"
#include "h3rt/num/f16.h"

namespace h3rt {
namespace {

using namespace dit_testing;  // NOLINT(google-build-using-namespace): a test

// The same values of every tap and output, to the byte.
void ExpectSameResults(const Results& a, const Results& b) {
  ASSERT_EQ(a.size(), b.size());
  ASSERT_GE(a.size(), 9u);
  for (const auto& [name, values] : a) EXPECT_TRUE(SameBytes(values, b.at(name))) << name;
}

// F32 weights that neither BF16 nor F16 holds: the fixture's, each changed by less than a unit.
Tensor Fine(const WeightStore& store, const std::string& name) {
  Tensor tensor = Widened(store, name);
  float* values = tensor.as<float>();
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    values[i] *= 1.0f + 0x1p-14f * static_cast<float>(i * 37 % 61 - 30);
  }
  return tensor;
}

Tensor Narrowed(const Tensor& wide, DType dtype) {
  Tensor narrow = Tensor::Create(dtype, wide.shape()).value();
  for (int64_t i = 0; i < wide.elements(); ++i) {
    const float value = wide.as<float>()[i];
    narrow.as<uint16_t>()[i] = dtype == DType::kF16 ? FloatToF16(value) : FloatToBf16(value);
  }
  return narrow;
}

Tensor WidenedBack(const Tensor& narrow) {
  Tensor wide = Tensor::Create(DType::kF32, narrow.shape()).value();
  for (int64_t i = 0; i < wide.elements(); ++i) {
    const uint16_t bits = narrow.as<uint16_t>()[i];
    wide.as<float>()[i] = narrow.dtype() == DType::kF16 ? F16ToFloat(bits) : Bf16ToFloat(bits);
  }
  return wide;
}

bool IsIsland(const std::string& name) {
  return name.rfind("proj_in", 0) == 0 || name.rfind("audio_proj", 0) == 0 ||
         name.rfind("proj_out", 0) == 0 || name.rfind("time_embedder", 0) == 0;
}

TEST(DitWeights, InterleavedHeadsGiveTheBytesOfContiguousOnes) {
  const TransformerCheckpoint checkpoint = OpenModel("nano");
  const DitConfig& c = checkpoint.config;
  WeightStore store;
  for (const auto& [name, view] : checkpoint.weights.entries()) {
    const size_t at = name.find("attn.to_");
    const bool fused = at != std::string::npos && name.find("attn.to_out") == std::string::npos;
    if (!fused) store.AddView(name, view);
    if (name.find("attn.to_q.weight") == std::string::npos) continue;
    // Rows of one fused matrix [heads, 3, head_dim, hidden].
    Tensor all = Tensor::Create(DType::kF32, {c.num_heads, 3, c.head_dim, c.hidden}).value();
    const int64_t block = c.head_dim * c.hidden;
    const char* const parts[] = {"q", "k", "v"};
    for (int64_t part = 0; part < 3; ++part) {
      const Tensor from =
          Widened(checkpoint.weights, name.substr(0, at + 8) + parts[part] + ".weight");
      for (int64_t h = 0; h < c.num_heads; ++h) {
        std::copy_n(from.as<float>() + h * block, block, all.as<float>() + (3 * h + part) * block);
      }
    }
    const ConstTensorView backing = store.AddBacking(std::move(all));
    const int64_t strides[] = {3 * block, c.hidden, 1};
    for (int64_t part = 0; part < 3; ++part) {
      const auto* first = backing.as<float>() + part * block;
      store.AddView(name.substr(0, at + 8) + parts[part] + ".weight",
                    ConstTensorView(reinterpret_cast<const std::byte*>(first), DType::kF32,
                                    {c.num_heads, c.head_dim, c.hidden}, strides));
    }
  }
  ASSERT_EQ(store.entries().size(), checkpoint.weights.entries().size());
  ASSERT_FALSE(store.entries().at("transformer_blocks.0.attn.to_k.weight").contiguous());
  const Dit plain = Dit::Create(c, checkpoint.weights).value();
  const Dit interleaved = Dit::Create(c, store).value();
  const Inputs in = FixtureInputs("nano");
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    ExpectSameResults(RunModel(interleaved, in, {.precision = precision}).value(),
                      RunModel(plain, in, {.precision = precision}).value());
  }
}

TEST(DitWeights, F16WeightsGiveTheBytesOfTheirValuesInF32) {
  const TransformerCheckpoint checkpoint = OpenModel("nano");
  std::map<std::string, Tensor> half;
  std::map<std::string, Tensor> wide;
  for (const auto& [name, view] : checkpoint.weights.entries()) {
    half[name] = Narrowed(Fine(checkpoint.weights, name), DType::kF16);
    wide[name] = WidenedBack(half[name]);
  }
  const WeightStore half_store = Replace(checkpoint.weights, std::move(half));
  const WeightStore wide_store = Replace(checkpoint.weights, std::move(wide));
  const Dit a = Dit::Create(checkpoint.config, half_store).value();
  const Dit b = Dit::Create(checkpoint.config, wide_store).value();
  const Inputs in = FixtureInputs("nano");
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    ExpectSameResults(RunModel(a, in, {.precision = precision}).value(),
                      RunModel(b, in, {.precision = precision}).value());
  }
}

TEST(DitWeights, MixedPrecisionOfF32WeightsIsThatOfTheModelSavedInBf16) {
  const TransformerCheckpoint checkpoint = OpenModel("nano");
  std::map<std::string, Tensor> fine;
  std::map<std::string, Tensor> saved;
  for (const auto& [name, view] : checkpoint.weights.entries()) {
    fine[name] = Fine(checkpoint.weights, name);
    saved[name] = IsIsland(name) ? Fine(checkpoint.weights, name)
                                 : Narrowed(Fine(checkpoint.weights, name), DType::kBF16);
  }
  const WeightStore fine_store = Replace(checkpoint.weights, std::move(fine));
  const WeightStore saved_store = Replace(checkpoint.weights, std::move(saved));
  const Dit a = Dit::Create(checkpoint.config, fine_store).value();
  const Dit b = Dit::Create(checkpoint.config, saved_store).value();
  const Inputs in = FixtureInputs("nano");
  ExpectSameResults(RunModel(a, in, {.precision = Precision::kBf16}).value(),
                    RunModel(b, in, {.precision = Precision::kBf16}).value());
  // In float32 the stored values count.
  EXPECT_FALSE(SameBytes(RunModel(a, in).value().at("video"), RunModel(b, in).value().at("video")));
}

TEST(DitWeights, PrunedAdaLnInF16OrBf16GivesTheBytesOfItsValuesInF32) {
  const PrunedModel pruned = OpenPruned("nano");
  const Inputs in = FixtureInputs("nano");
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    std::map<std::string, Tensor> narrow;
    std::map<std::string, Tensor> wide;
    for (const auto& [name, view] : pruned.store.entries()) {
      if (name.find("adaln_proj") == std::string::npos && name.rfind("norm_out.linear", 0) != 0) {
        continue;
      }
      narrow[name] = Narrowed(Fine(pruned.store, name), dtype);
      wide[name] = WidenedBack(narrow[name]);
    }
    ASSERT_EQ(narrow.size(), 6u);
    const WeightStore narrow_store = Replace(pruned.store, std::move(narrow));
    const WeightStore wide_store = Replace(pruned.store, std::move(wide));
    const Dit a = Dit::Create(pruned.config, narrow_store).value();
    const Dit b = Dit::Create(pruned.config, wide_store).value();
    for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
      const Results from_narrow = RunModel(a, in, {.precision = precision}).value();
      const Results from_wide = RunModel(b, in, {.precision = precision}).value();
      for (const auto& [name, values] : from_wide) {
        EXPECT_TRUE(SameBytes(from_narrow.at(name), values)) << name;
      }
    }
  }
}

// RN(b + sum e W) with the curve value e and the weights as they are, not rounded.
TEST(DitWeights, PrunedAdaLnInMixedPrecisionRoundsTheSumOnly) {
  const PrunedModel pruned = OpenPruned("nano");
  const std::string layer = "transformer_blocks.1.adaln_proj.linear";
  std::map<std::string, Tensor> changed;
  changed[layer + ".weight"] = Fine(pruned.store, layer + ".weight");
  const WeightStore store = Replace(pruned.store, std::move(changed));
  const Dit dit = Dit::Create(pruned.config, store).value();
  ThreadPool pool(2);
  const std::vector<float> timesteps = {0.1f, 0.3f, 0.77f, 0.999f};
  const AdaLnTable table = dit.MakeAdaLn(timesteps, Precision::kBf16, {.pool = &pool}).value();
  const std::vector<float> curve = Values<float>(pruned.file, "adaln_t_table");
  const Tensor weight = Widened(store, layer + ".weight");
  const Tensor bias = Widened(store, layer + ".bias");
  const auto expected = [&](bool round_curve, bool round_weight) {
    std::vector<float> rows;
    for (const float tau : timesteps) {
      const double p = static_cast<double>(tau) * 1024.0;
      const auto i0 = static_cast<size_t>(p);
      for (int64_t r = 0; r < bias.elements(); ++r) {
        double sum = bias.as<float>()[r];
        for (size_t j = 0; j < 8; ++j) {
          const double a = curve[i0 * 8 + j];
          const double b = curve[(i0 + 1) * 8 + j];
          double e = a + (b - a) * (p - static_cast<double>(i0));
          if (round_curve) e = RoundToBf16(static_cast<float>(e));
          const float w = weight.as<float>()[r * 8 + static_cast<int64_t>(j)];
          sum += e * static_cast<double>(round_weight ? RoundToBf16(w) : w);
        }
        rows.push_back(RoundToBf16(static_cast<float>(sum)));
      }
    }
    return rows;
  };
  const ConstTensorView values = table.block(1);
  const std::vector<float> got(values.as<float>(), values.as<float>() + values.elements());
  // As for the full model: float32 errors move at most one value in 200 over a rounding boundary,
  // by one place of 2^-8.
  constexpr double kBound = 2.8e-4;
  const CompareResult result = CompareFloats(got, expected(false, false));
  EXPECT_TRUE(Within(result, kBound)) << Describe(result);
  EXPECT_GT(RelativeL2(got, expected(true, false)), kBound);
  EXPECT_GT(RelativeL2(got, expected(false, true)), kBound);
}

}  // namespace
}  // namespace h3rt
