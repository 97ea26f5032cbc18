// The transformer against the public implementation: every recorded tensor.
#include "h3rt/model/dit/dit.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "h3rt/kernels/linear/linear.h"
#include "h3rt/kernels/norm/norm.h"
#include "h3rt/model/dit/dit_testing.h"
#include "h3rt/model/dit/layer.h"

namespace h3rt {
namespace {

using namespace dit_testing;  // NOLINT(google-build-using-namespace): a test

// The bounds. An independent implementation reached 6.2e-7, 2.3e-7 and 2.5e-3.
constexpr double kFp32Bound = 2e-6;
constexpr double kTrajectoryBound = 1e-6;
constexpr double kBf16Bound = 3e-3;

class DitFixture : public testing::TestWithParam<const char*> {
 protected:
  std::string model() const { return GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Models, DitFixture, testing::Values("nano", "mini"));

const std::vector<std::string>& TensorNames() {
  static const auto* names = new std::vector<std::string>{
      "token_refiner", "temb",     "block_0.attn", "block_0.ff", "block_0",
      "block_1",       "norm_out", "video",        "audio"};
  return *names;
}

void ExpectFixture(const Results& results, const SafetensorsFile& file, double bound) {
  for (const std::string& name : TensorNames()) {
    const auto it = results.find(name);
    ASSERT_NE(it, results.end()) << name;
    const CompareResult result = CompareFloats(it->second, Floats(file, name));
    EXPECT_TRUE(Within(result, bound)) << name << ": " << Describe(result);
  }
}

TEST_P(DitFixture, Fp32TensorsAreWithinBounds) {
  const TransformerCheckpoint checkpoint = OpenModel(model());
  const Dit dit = Dit::Create(checkpoint.config, checkpoint.weights).value();
  const Results results = RunModel(dit, FixtureInputs(model())).value();
  ExpectFixture(results, OpenFixture(model(), "transformer_forward_f32"), kFp32Bound);
}

TEST_P(DitFixture, Bf16TensorsAreWithinBounds) {
  const TransformerCheckpoint checkpoint = OpenModel(model());
  const Dit dit = Dit::Create(checkpoint.config, checkpoint.weights).value();
  const Results results =
      RunModel(dit, FixtureInputs(model()), {.precision = Precision::kBf16}).value();
  ExpectFixture(results, OpenFixture(model(), "transformer_forward_bf16"), kBf16Bound);
}

TEST_P(DitFixture, PlantedFp32ArithmeticMissesTheBf16Bound) {
  const TransformerCheckpoint checkpoint = OpenModel(model());
  const Dit dit = Dit::Create(checkpoint.config, checkpoint.weights).value();
  const Results results = RunModel(dit, FixtureInputs(model())).value();
  const SafetensorsFile file = OpenFixture(model(), "transformer_forward_bf16");
  double worst = 0.0;
  for (const std::string& name : TensorNames()) {
    worst = std::max(worst, RelativeL2(results.at(name), Floats(file, name)));
  }
  EXPECT_GT(worst, kBf16Bound);
}

// Rounding point (a): the text is rounded before condition_proj. The refiner by hand, with it and
// without it.
TEST_P(DitFixture, PlantedUnroundedTextMissesTheBf16Bound) {
  const TransformerCheckpoint checkpoint = OpenModel(model());
  const DitConfig& c = checkpoint.config;
  const dit::Weights weights = dit::FindWeights(c, checkpoint.weights).value();
  const Inputs in = FixtureInputs(model());
  ThreadPool pool(2);
  const ExecContext context{.pool = &pool};
  const auto refine = [&](const std::vector<float>& text) {
    const auto rows = static_cast<int64_t>(in.text_indices.size());
    const auto make = [](int64_t n, int64_t width) {
      return Tensor::Create(DType::kF32, {n, width}).value();
    };
    Tensor x = make(rows, c.hidden);
    Tensor n = make(rows, c.hidden);
    Tensor q = make(rows, c.inner());
    Tensor k = make(rows, c.inner());
    Tensor v = make(rows, c.inner());
    Tensor o = make(rows, c.inner());
    Tensor gate = make(rows, c.ffn);
    Tensor value = make(rows, c.ffn);
    const dit::Workspace w{.x = x.view(),
                           .n = n.view(),
                           .q = q.view(),
                           .k = k.view(),
                           .v = v.view(),
                           .o = o.view(),
                           .gate = gate.view(),
                           .value = value.view(),
                           .block_row = {},
                           .head_row = {}};
    H3RT_CHECK(Linear({.x = Matrix(text, c.text_dim),
                       .weight = weights.context_embedder.weight,
                       .bias = weights.context_embedder.bias,
                       .y = w.x,
                       .round_bf16 = true},
                      context)
                   .ok());
    for (const dit::LayerWeights& layer_weights : weights.refiner) {
      dit::Layer layer;
      layer.config = &c;
      layer.weights = &layer_weights;
      layer.round = true;
      layer.name = "refiner";
      H3RT_CHECK(dit::RunLayer(layer, w, context, {}).ok());
    }
    H3RT_CHECK(RmsNorm({.x = w.x,
                        .weight = weights.refiner_norm,
                        .y = w.n,
                        .eps = c.final_norm_eps,
                        .round_bf16 = true},
                       context)
                   .ok());
    return std::vector<float>(n.as<float>(), n.as<float>() + n.elements());
  };
  const std::vector<float> expected =
      Floats(OpenFixture(model(), "transformer_forward_bf16"), "token_refiner");
  std::vector<float> rounded = in.text;
  RoundToBf16InPlace(rounded.data(), static_cast<int64_t>(rounded.size()));
  ASSERT_FALSE(SameBytes(rounded, in.text)) << "the fixture's text is not bf16";
  EXPECT_LE(RelativeL2(refine(rounded), expected), kBf16Bound);
  EXPECT_GT(RelativeL2(refine(in.text), expected), kBf16Bound);
}

// The bounds are tight enough to see an eps of 1e-6 where 1e-5 is meant (spec h3, section 16 B2).
TEST_P(DitFixture, PlantedNormEpsMissesTheFp32Bound) {
  TransformerCheckpoint checkpoint = OpenModel(model());
  checkpoint.config.norm_eps = 1e-6;
  checkpoint.config.qk_norm_eps = 1e-6;
  checkpoint.config.final_norm_eps = 1e-6;
  const Dit dit = Dit::Create(checkpoint.config, checkpoint.weights).value();
  const Results results = RunModel(dit, FixtureInputs(model())).value();
  const SafetensorsFile file = OpenFixture(model(), "transformer_forward_f32");
  double worst = 0.0;
  for (const std::string& name : TensorNames()) {
    worst = std::max(worst, RelativeL2(results.at(name), Floats(file, name)));
  }
  EXPECT_GT(worst, kFp32Bound);
}

TEST_P(DitFixture, TrajectoryOfFourForwardsIsWithinBounds) {
  const TransformerCheckpoint checkpoint = OpenModel(model());
  const Dit dit = Dit::Create(checkpoint.config, checkpoint.weights).value();
  const DitConfig& c = checkpoint.config;
  const SafetensorsFile file = OpenFixture(model(), "trajectory_f32");
  const SafetensorsFile grid = OpenFixture(model(), "schedule");
  Inputs in = FixtureInputs(model());
  in.text = Values<float>(file, "text");
  ThreadPool pool(2);
  const ExecContext context{.pool = &pool};
  // One table for all steps, one request for the run.
  std::vector<float> all;
  for (const char* name : {"video.5.timesteps", "audio.5.timesteps"}) {
    for (const float t : Values<float>(grid, name)) {
      if (std::find(all.begin(), all.end(), t) == all.end()) all.push_back(t);
    }
  }
  const AdaLnTable table = dit.MakeAdaLn(all, Precision::kFp32, context).value();
  DitRequest request =
      dit.Prepare(in.sequence(), Matrix(in.text, c.text_dim), Precision::kFp32, context).value();
  std::vector<float> video = Values<float>(file, "init.video");
  std::vector<float> audio = Values<float>(file, "init.audio");
  const auto advance = [&](std::vector<float>& x, const std::vector<float>& velocity,
                           const std::string& name, size_t step) {
    const std::vector<float> sigmas = Values<float>(grid, name + ".5.sigmas");
    const float t = Values<float>(grid, name + ".5.timesteps")[step];
    const float ratio = sigmas[step + 1] / sigmas[step];
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = ratio * x[i] + (1.0f - ratio) * (x[i] + (1.0f - t) * velocity[i]);
    }
    const std::string key = "step" + std::to_string(step) + "." + name;
    const CompareResult result = CompareFloats(x, Values<float>(file, key));
    EXPECT_TRUE(Within(result, kTrajectoryBound)) << key << ": " << Describe(result);
  };
  for (size_t step = 0; step < 4; ++step) {
    const std::string prefix = "step" + std::to_string(step);
    const std::vector<float> timesteps = Values<float>(file, prefix + ".timestep");
    std::vector<int32_t> rows;
    for (const int32_t i : Ints(file, prefix + ".timestep_indices")) {
      rows.push_back(table.Find(timesteps[static_cast<size_t>(i)]).value());
    }
    std::vector<float> video_velocity(video.size(), 1e30f);
    std::vector<float> audio_velocity(audio.size(), 1e30f);
    ASSERT_TRUE(dit.Forward(request, table, rows, Matrix(std::as_const(video), c.video_row()),
                            Matrix(std::as_const(audio), c.audio_in_channels),
                            Matrix(video_velocity, c.video_row()),
                            Matrix(audio_velocity, c.audio_in_channels), context)
                    .ok());
    advance(video, video_velocity, "video", step);
    advance(audio, audio_velocity, "audio", step);
  }
}

// ---- The pruned variant ------------------------------------------------------------------------

class PrunedFixture : public DitFixture {
 protected:
  PrunedModel pruned_ = OpenPruned(model());
  const SafetensorsFile& file_ = pruned_.file;
  const WeightStore& store_ = pruned_.store;
  const DitConfig& config_ = pruned_.config;
};
INSTANTIATE_TEST_SUITE_P(Models, PrunedFixture, testing::Values("nano", "mini"));

TEST_P(PrunedFixture, OutputsAreWithinBounds) {
  const Dit dit = Dit::Create(config_, store_).value();
  const Results results = RunModel(dit, FixtureInputs(model())).value();
  for (const std::string name : {"video", "audio"}) {
    const CompareResult result =
        CompareFloats(results.at(name), Values<float>(file_, "out." + name));
    EXPECT_TRUE(Within(result, kFp32Bound)) << name << ": " << Describe(result);
  }
}

// The fixture's timesteps are grid points, so a nearest-point lookup would pass it (section 16 B1).
TEST_P(PrunedFixture, AdaLnBetweenGridPointsIsInterpolated) {
  const Dit dit = Dit::Create(config_, store_).value();
  ThreadPool pool(1);
  const ExecContext context{.pool = &pool};
  const std::vector<float> timesteps = {0.3f, 0.99999f, 1.0f, -0.0009f, 1.0009f, 0.0f};
  const AdaLnTable table = dit.MakeAdaLn(timesteps, Precision::kFp32, context).value();
  const std::vector<float> curve = Values<float>(file_, "adaln_t_table");
  const std::vector<float> weight = Values<float>(file_, "blocks.1.adaln_proj.linear.weight");
  const std::vector<float> bias = Values<float>(file_, "blocks.1.adaln_proj.linear.bias");
  const auto expected_row = [&](float tau, bool interpolate) {
    const double p = std::clamp(static_cast<double>(tau), 0.0, 1.0) * 1024.0;
    const auto i0 = static_cast<size_t>(std::min(std::floor(p), 1023.0));
    const double t = interpolate ? p - static_cast<double>(i0) : 0.0;
    std::vector<double> row(bias.begin(), bias.end());
    for (size_t r = 0; r < row.size(); ++r) {
      for (size_t j = 0; j < 8; ++j) {
        const double a = curve[i0 * 8 + j];
        const double b = curve[(i0 + 1) * 8 + j];
        row[r] += (a + (b - a) * t) * static_cast<double>(weight[r * 8 + j]);
      }
    }
    return row;
  };
  const auto width = static_cast<int64_t>(bias.size());
  for (size_t i = 0; i < timesteps.size(); ++i) {
    const float* got = table.block(1).as<float>() + static_cast<int64_t>(i) * width;
    const std::vector<float> row(got, got + width);
    // Nine float32 operations on values of size one, sqrt(9) * 2^-24 rounded up.
    EXPECT_TRUE(Within(CompareToReference(row, expected_row(timesteps[i], true)), 1e-6))
        << timesteps[i];
    const bool on_grid = timesteps[i] <= 0.0f;
    const double planted = CompareToReference(row, expected_row(timesteps[i], false)).relative_l2;
    EXPECT_TRUE(on_grid || planted > 1e-4) << timesteps[i] << ": " << planted;
  }
  // The wrong unit (0 to 1000) is no timestep: clamped, every step would be the last.
  for (const float bad : {-0.25f, 1.5f, 500.0f, std::nanf("")}) {
    EXPECT_EQ(dit.MakeAdaLn(std::vector<float>{bad}, Precision::kFp32, context).status().code(),
              absl::StatusCode::kInvalidArgument)
        << bad;
  }
  // Clamped at both ends, and 1 is the last point: interval 1023, all the way.
  const auto same_row = [&](int64_t a, int64_t b) {
    return std::equal(table.block(1).as<float>() + a * width,
                      table.block(1).as<float>() + (a + 1) * width,
                      table.block(1).as<float>() + b * width);
  };
  EXPECT_TRUE(same_row(3, 5));
  EXPECT_TRUE(same_row(2, 4));
}

}  // namespace
}  // namespace h3rt
