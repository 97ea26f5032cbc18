// What the public fixtures cannot see (spec h3 section 16), and the contract of dit.h.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "h3rt/model/dit/dit_testing.h"
#include "h3rt/model/dit/embed.h"
#include "h3rt/model/dit/layer.h"

namespace h3rt {
namespace {

using namespace dit_testing;  // NOLINT(google-build-using-namespace): a test
using testing::HasSubstr;

// What two float32 forwards of the same values in another order of sums may differ by: the bound
// against the public implementation.
constexpr double kFp32Bound = 2e-6;

class DitRules : public testing::TestWithParam<const char*> {
 protected:
  DitRules() : checkpoint_(OpenModel(GetParam())), in_(FixtureInputs(GetParam())) {}

  Dit Make() const { return Dit::Create(checkpoint_.config, checkpoint_.weights).value(); }
  const DitConfig& config() const { return checkpoint_.config; }

  // The fixture's sequence as fl2va sees it: two vision rows in the text, the first 12 video rows
  // as a condition, three timesteps.
  Inputs WithConditions() const {
    Inputs in = in_;
    in.tags[3] = 0;
    in.tags[4] = 0;
    in.timesteps = {0.25f, 0.625f, 0.999f};
    std::fill(in.row_timestep.begin(), in.row_timestep.end(), 0);
    for (const int64_t row : in.audio_indices) in.row_timestep[static_cast<size_t>(row)] = 1;
    for (size_t i = 0; i < 12; ++i) {
      in.row_timestep[static_cast<size_t>(in.video_indices[i])] = 2;
    }
    return in;
  }

  TransformerCheckpoint checkpoint_;
  Inputs in_;
  ThreadPool pool_{2};
  ExecContext context_{.pool = &pool_};
};
INSTANTIATE_TEST_SUITE_P(Models, DitRules, testing::Values("nano", "mini"));

// ---- SiLU before the cast ----------------------------------------------------------------------

// AdaLN rows in float64 from the recorded temb: RN(b + sum s W) with s = RN(silu(temb)), or with
// the wrong order s = RN(silu(RN(temb))).
std::vector<float> AdaLnRows(const std::vector<float>& temb, int64_t width, const Tensor& weight,
                             const Tensor& bias, bool round_first) {
  const auto silu = [](double x) { return x / (1.0 + std::exp(-x)); };
  std::vector<double> s;
  for (const float t : temb) {
    const float silu_f32 =
        static_cast<float>(silu(static_cast<double>(round_first ? RoundToBf16(t) : t)));
    s.push_back(static_cast<double>(RoundToBf16(silu_f32)));
  }
  const int64_t out = bias.elements();
  std::vector<float> rows;
  for (size_t i = 0; i < temb.size() / static_cast<size_t>(width); ++i) {
    for (int64_t r = 0; r < out; ++r) {
      double sum = bias.as<float>()[r];
      for (int64_t k = 0; k < width; ++k) {
        sum += s[i * static_cast<size_t>(width) + static_cast<size_t>(k)] *
               static_cast<double>(weight.as<float>()[r * width + k]);
      }
      rows.push_back(RoundToBf16(static_cast<float>(sum)));
    }
  }
  return rows;
}

TEST_P(DitRules, SiluIsEvaluatedBeforeTheCastToBf16) {
  const Dit dit = Make();
  Results taps;
  const std::vector<float> timesteps = {0.0f, 0.1f, 0.37f, 0.5f, 0.7777f, 0.999f, 1.0f};
  const AdaLnTable table =
      dit.MakeAdaLn(timesteps, Precision::kBf16, context_, Record(taps)).value();
  const std::vector<float>& temb = taps.at("temb");
  const int64_t width = config().time_embed;
  const auto check = [&](const ConstTensorView& values, const std::string& layer) {
    const Tensor weight = Widened(checkpoint_.weights, layer + ".weight");
    const Tensor bias = Widened(checkpoint_.weights, layer + ".bias");
    const std::vector<float> got(values.as<float>(), values.as<float>() + values.elements());
    const std::vector<float> right = AdaLnRows(temb, width, weight, bias, false);
    const std::vector<float> wrong = AdaLnRows(temb, width, weight, bias, true);
    // A float32 sum differs from the float64 one by about 1e-7 relative, so its bfloat16 rounding
    // differs for about one value in 2^-9 / 1e-7 = 20,000; a hundred times that many, each by one
    // place (2^-8), give sqrt(1/200) * 2^-8 = 2.8e-4.
    constexpr double kBound = 2.8e-4;
    EXPECT_TRUE(Within(CompareFloats(got, right), kBound))
        << layer << ": " << Describe(CompareFloats(got, right));
    EXPECT_GT(RelativeL2(got, wrong), kBound) << layer;
  };
  check(table.block(0), "transformer_blocks.0.adaln_proj.linear");
  check(table.block(1), "transformer_blocks.1.adaln_proj.linear");
  check(table.final_norm(), "norm_out.linear");
}

// ---- Rows, tags, timesteps ---------------------------------------------------------------------

// x_out = x_in + gate_msa[row] attn + gate_mlp[row] ff in float64 from the recorded branches: the
// row of the table is 3 * timestep + tag, also for vision rows of the text and condition rows.
TEST_P(DitRules, ResidualsUseTheRowOfTimestepAndTag) {
  const Dit dit = Make();
  const Inputs in = WithConditions();
  const Results results = RunModel(dit, in).value();
  const AdaLnTable table = dit.MakeAdaLn(in.timesteps, Precision::kFp32, context_).value();
  const auto hidden = static_cast<size_t>(config().hidden);
  const auto residual_error = [&](const std::vector<int32_t>& tags) {
    const std::vector<float>& before = results.at("block_0");
    const std::vector<float>& attn = results.at("block_1.attn");
    const std::vector<float>& ff = results.at("block_1.ff");
    std::vector<double> expected(before.begin(), before.end());
    for (size_t i = 0; i < tags.size(); ++i) {
      const auto row = static_cast<size_t>(3 * in.row_timestep[i] + tags[i]);
      const float* values = table.block(1).as<float>() + row * 6 * hidden;
      for (size_t c = 0; c < hidden; ++c) {
        const size_t at = i * hidden + c;
        expected[at] += static_cast<double>(values[2 * hidden + c]) * attn[at] +
                        static_cast<double>(values[5 * hidden + c]) * ff[at];
      }
    }
    return CompareToReference(results.at("block_1"), expected).relative_l2;
  };
  EXPECT_LE(residual_error(in.tags), 2e-7);   // four roundings of 2^-24
  EXPECT_GT(residual_error(in_.tags), 1e-4);  // vision rows taken for text: planted
}

// Not the same bytes: a product with one row may sum in another order than one with three.
TEST_P(DitRules, ThreeEqualTimestepsAreOneTimestep) {
  const Dit dit = Make();
  Inputs in = WithConditions();
  in.timesteps = {0.5f, 0.5f, 0.5f};
  const Results three = RunModel(dit, in).value();
  in.timesteps = {0.5f};
  std::fill(in.row_timestep.begin(), in.row_timestep.end(), 0);
  const Results one = RunModel(dit, in).value();
  EXPECT_LE(RelativeL2(three.at("video"), one.at("video")), kFp32Bound);
  EXPECT_LE(RelativeL2(three.at("audio"), one.at("audio")), kFp32Bound);
}

TEST_P(DitRules, TheOrderOfTheTableDoesNotMatter) {
  const Dit dit = Make();
  const Inputs in = WithConditions();
  Inputs turned = in;
  turned.timesteps = {0.999f, 0.25f, 0.625f};
  for (int32_t& i : turned.row_timestep) i = (i + 1) % 3;
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    const Results a = RunModel(dit, in, {.precision = precision}).value();
    const Results b = RunModel(dit, turned, {.precision = precision}).value();
    EXPECT_TRUE(SameBytes(a.at("video"), b.at("video")));
    EXPECT_TRUE(SameBytes(a.at("audio"), b.at("audio")));
  }
}

// Attention has no order: rows packed in any order give the same values, up to the order of sums.
TEST_P(DitRules, AnyPackingOrderGivesTheSameValues) {
  const Dit dit = Make();
  const Inputs in = WithConditions();
  std::vector<size_t> to(in.tags.size());  // old row -> new row
  std::iota(to.begin(), to.end(), size_t{0});
  std::mt19937 random(20260830);
  for (size_t i = to.size() - 1; i > 0; --i) std::swap(to[i], to[random() % (i + 1)]);
  Inputs moved = in;
  for (size_t i = 0; i < to.size(); ++i) {
    std::copy_n(in.positions.begin() + static_cast<int64_t>(3 * i), 3,
                moved.positions.begin() + static_cast<int64_t>(3 * to[i]));
    moved.tags[to[i]] = in.tags[i];
    moved.row_timestep[to[i]] = in.row_timestep[i];
  }
  for (auto* list : {&moved.text_indices, &moved.audio_indices, &moved.video_indices}) {
    for (int64_t& row : *list) row = static_cast<int64_t>(to[static_cast<size_t>(row)]);
  }
  const Results a = RunModel(dit, in).value();
  const Results b = RunModel(dit, moved).value();
  EXPECT_LE(RelativeL2(b.at("video"), a.at("video")), kFp32Bound);
  EXPECT_LE(RelativeL2(b.at("audio"), a.at("audio")), kFp32Bound);
}

// ---- Bytes -------------------------------------------------------------------------------------

TEST_P(DitRules, ThreadsAndRepetitionDoNotChangeAByte) {
  const Dit dit = Make();
  const Inputs in = WithConditions();
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    const Results one = RunModel(dit, in, {.precision = precision, .threads = 1}).value();
    for (const int threads : {1, 2, 3, 8}) {
      const Results more = RunModel(dit, in, {.precision = precision, .threads = threads}).value();
      for (const auto& [name, values] : one) {
        EXPECT_TRUE(SameBytes(more.at(name), values)) << name << " at " << threads;
      }
    }
  }
}

// Condition rows need no head. Up to the order of sums: the head's product has fewer rows.
TEST_P(DitRules, HeadsOfTheLastRowsAreTheLastRowsOfAllHeads) {
  const Dit dit = Make();
  const Inputs in = WithConditions();
  const Results all = RunModel(dit, in, {.tap = false}).value();
  const Results some = RunModel(dit, in, {.video_rows = 30, .audio_rows = 5, .tap = false}).value();
  const auto tail = [](const std::vector<float>& values, size_t n) {
    return std::vector<float>(values.end() - static_cast<int64_t>(n), values.end());
  };
  ASSERT_EQ(some.at("video").size(), 30 * static_cast<size_t>(config().video_row()));
  ASSERT_EQ(some.at("audio").size(), 5 * static_cast<size_t>(config().audio_in_channels));
  for (const std::string name : {"video", "audio"}) {
    EXPECT_LE(RelativeL2(some.at(name), tail(all.at(name), some.at(name).size())), kFp32Bound);
  }
  const Results none = RunModel(dit, in, {.video_rows = 0, .tap = false}).value();
  EXPECT_TRUE(SameBytes(none.at("audio"), all.at("audio")));
}

TEST_P(DitRules, InputsAreNotModified) {
  const Dit dit = Make();
  const Inputs in = WithConditions();
  const Inputs copy = in;
  ASSERT_TRUE(RunModel(dit, in, {.precision = Precision::kBf16}).ok());
  EXPECT_TRUE(SameBytes(in.text, copy.text));
  EXPECT_TRUE(SameBytes(in.video, copy.video));
  EXPECT_TRUE(SameBytes(in.audio, copy.audio));
  EXPECT_EQ(in.row_timestep, copy.row_timestep);
  EXPECT_EQ(in.positions, copy.positions);
}

TEST_P(DitRules, ReportedBytesAreTheAllocatedBytes) {
  const Dit dit = Make();
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    const DitRequest request =
        dit.Prepare(in_.sequence(), Matrix(in_.text, config().text_dim), precision, context_)
            .value();
    EXPECT_EQ(request.bytes(), Dit::RequestBytes(config(), in_.rows(), 9, 0));
    const std::vector<float> timesteps = {0.0f, 0.5f, 0.75f};
    const AdaLnTable table = dit.MakeAdaLn(timesteps, precision, context_).value();
    EXPECT_EQ(table.bytes(), Dit::AdaLnBytes(config(), 3, 0));
    const auto hidden = static_cast<uint64_t>(config().hidden);
    EXPECT_EQ(table.bytes(), 3u * 4u * (2u * 18u * hidden + 2u * hidden));
  }
}

// ---- Faults ------------------------------------------------------------------------------------

TEST_P(DitRules, ANonFiniteWeightIsReportedWithItsBlock) {
  const std::pair<const char*, const char*> cases[] = {
      {"transformer_blocks.0.attn.to_q.weight", "block_0"},
      {"transformer_blocks.1.ff.net.2.weight", "block_1"},
      {"transformer_blocks.1.attn.norm_k.weight", "block_1"},
      {"transformer_blocks.1.adaln_proj.linear.bias", "adaln of block_1"},
      {"norm_out.linear.weight", "adaln of norm_out"},
      {"token_refiner.refiner_blocks.0.ff.value.weight", "refiner_0"},
      {"token_refiner.final_norm.weight", "token refiner"},
      {"audio_proj_in.weight", "embedding"},
      {"proj_out.bias", "video head"}};
  for (const auto& [name, where] : cases) {
    for (const float value : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
      std::map<std::string, Tensor> changed;
      changed[name] = Widened(checkpoint_.weights, name);
      changed[name].as<float>()[changed[name].elements() / 2] = value;
      const WeightStore store = Replace(checkpoint_.weights, std::move(changed));
      const Dit dit = Dit::Create(config(), store).value();
      const absl::Status status = RunModel(dit, in_).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << name;
      EXPECT_THAT(MessageOf(status), HasSubstr(where)) << name;
    }
  }
}

TEST_P(DitRules, NonFiniteInputsAreRefusedAndLeaveNoTrace) {
  const Dit dit = Make();
  const Results before = RunModel(dit, in_).value();
  for (std::vector<float> Inputs::*field : {&Inputs::text, &Inputs::video, &Inputs::audio}) {
    for (const float value : {std::nanf(""), -std::numeric_limits<float>::infinity()}) {
      Inputs in = in_;
      (in.*field)[17] = value;
      EXPECT_EQ(RunModel(dit, in).status().code(), absl::StatusCode::kInvalidArgument);
    }
  }
  const Results after = RunModel(dit, in_).value();
  EXPECT_TRUE(SameBytes(after.at("video"), before.at("video")));
}

TEST_P(DitRules, CancellationStopsInsideABlockAndTheRequestRunsAgain) {
  const Dit dit = Make();
  const DitConfig& c = config();
  CancelToken cancel;
  const ExecContext context{.pool = &pool_, .cancel = &cancel};
  const AdaLnTable table = dit.MakeAdaLn(in_.timesteps, Precision::kFp32, context).value();
  DitRequest request =
      dit.Prepare(in_.sequence(), Matrix(in_.text, c.text_dim), Precision::kFp32, context).value();
  std::vector<float> video(in_.video.size(), 1e30f);
  std::vector<float> audio(in_.audio.size(), 1e30f);
  std::vector<std::string> seen;
  const auto forward = [&](const DitTap& tap) {
    return dit.Forward(
        request, table, in_.row_timestep, Matrix(std::as_const(in_.video), c.video_row()),
        Matrix(std::as_const(in_.audio), c.audio_in_channels), Matrix(video, c.video_row()),
        Matrix(audio, c.audio_in_channels), context, tap);
  };
  const absl::Status stopped = forward([&](std::string_view name, const ConstTensorView&) {
    seen.emplace_back(name);
    if (name == "block_0.attn") cancel.Cancel();
  });
  EXPECT_EQ(stopped.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(seen, testing::ElementsAre("block_0.attn"));
  EXPECT_EQ(forward({}).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(dit.MakeAdaLn(in_.timesteps, Precision::kFp32, context).status().code(),
            absl::StatusCode::kCancelled);
  cancel.Reset();
  ASSERT_TRUE(forward({}).ok());
  const Results fresh = RunModel(dit, in_).value();
  EXPECT_TRUE(SameBytes(video, fresh.at("video")));
  EXPECT_TRUE(SameBytes(audio, fresh.at("audio")));
}

TEST_P(DitRules, BadSequencesAreRefused) {
  const Dit dit = Make();
  const auto code = [&](const auto& change) {
    Inputs in = in_;
    change(in);
    return dit
        .Prepare(in.sequence(), Matrix(in.text, config().text_dim), Precision::kFp32, context_)
        .status()
        .code();
  };
  const auto bad = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code([](Inputs&) {}), absl::StatusCode::kOk);
  EXPECT_EQ(code([](Inputs& in) { in.tags[5] = 3; }), bad);
  EXPECT_EQ(code([](Inputs& in) { in.tags[5] = -1; }), bad);
  EXPECT_EQ(code([](Inputs& in) { in.tags.pop_back(); }), bad);
  EXPECT_EQ(code([](Inputs& in) { in.tags.clear(); }), bad);
  EXPECT_EQ(code([](Inputs& in) { in.positions.pop_back(); }), bad);
  EXPECT_EQ(code([](Inputs& in) { in.positions[7] = std::nan(""); }), bad);
  EXPECT_EQ(code([](Inputs& in) { in.video_indices[0] = -1; }), bad);
  EXPECT_EQ(code([](Inputs& in) { in.video_indices[0] = 125; }), bad);
  EXPECT_EQ(code([](Inputs& in) { in.video_indices[0] = in.video_indices[1]; }), bad);
  EXPECT_EQ(code([](Inputs& in) { in.audio_indices.pop_back(); }), bad);
  EXPECT_EQ(code([](Inputs& in) { in.text.resize(in.text.size() / 9 * 8); }), bad);
  const std::vector<float> wide(9 * static_cast<size_t>(config().text_dim + 1), 0.5f);
  EXPECT_EQ(
      dit.Prepare(in_.sequence(), Matrix(wide, config().text_dim + 1), Precision::kFp32, context_)
          .status()
          .code(),
      bad);
}

TEST_P(DitRules, BadForwardsAreRefused) {
  const Dit dit = Make();
  const auto code = [&](const auto& change) {
    Inputs in = in_;
    change(in);
    return RunModel(dit, in).status().code();
  };
  const auto bad = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code([](Inputs& in) { in.row_timestep[3] = 2; }), bad);
  EXPECT_EQ(code([](Inputs& in) { in.row_timestep[3] = -1; }), bad);
  EXPECT_EQ(code([](Inputs& in) { in.row_timestep.pop_back(); }), bad);
  EXPECT_EQ(code([](Inputs& in) { in.timesteps.clear(); }), bad);
  EXPECT_EQ(code([](Inputs& in) { in.timesteps[0] = 500.0f; }), bad);
  EXPECT_EQ(code([](Inputs& in) { in.timesteps[0] = std::nanf(""); }), bad);
  const size_t row = static_cast<size_t>(config().video_row());
  EXPECT_EQ(code([row](Inputs& in) { in.video.resize(in.video.size() - row); }), bad);
  // A table of the other precision.
  const AdaLnTable table = dit.MakeAdaLn(in_.timesteps, Precision::kBf16, context_).value();
  DitRequest request =
      dit.Prepare(in_.sequence(), Matrix(in_.text, config().text_dim), Precision::kFp32, context_)
          .value();
  std::vector<float> video(in_.video.size());
  std::vector<float> audio(in_.audio.size());
  EXPECT_EQ(dit.Forward(request, table, in_.row_timestep,
                        Matrix(std::as_const(in_.video), config().video_row()),
                        Matrix(std::as_const(in_.audio), config().audio_in_channels),
                        Matrix(video, config().video_row()),
                        Matrix(audio, config().audio_in_channels), context_)
                .code(),
            bad);
  EXPECT_EQ(table.Find(0.123f).status().code(), absl::StatusCode::kInternal);
}

TEST_P(DitRules, WhatAnotherModelMadeIsRefused) {
  const Dit dit = Make();
  const Dit other = Make();  // of the same shapes: only its identity tells
  const auto prepare = [&](const Dit& by) {
    return by
        .Prepare(in_.sequence(), Matrix(in_.text, config().text_dim), Precision::kFp32, context_)
        .value();
  };
  const AdaLnTable own_table = dit.MakeAdaLn(in_.timesteps, Precision::kFp32, context_).value();
  const AdaLnTable table = other.MakeAdaLn(in_.timesteps, Precision::kFp32, context_).value();
  DitRequest own_request = prepare(dit);
  DitRequest request = prepare(other);
  DitRequest empty;
  std::vector<float> video(in_.video.size(), 1e30f);
  std::vector<float> audio(in_.audio.size(), 1e30f);
  const auto forward = [&](DitRequest& r, const AdaLnTable& t) {
    return dit.Forward(
        r, t, in_.row_timestep, Matrix(std::as_const(in_.video), config().video_row()),
        Matrix(std::as_const(in_.audio), config().audio_in_channels),
        Matrix(video, config().video_row()), Matrix(audio, config().audio_in_channels), context_);
  };
  const auto bad = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(forward(request, own_table).code(), bad);
  EXPECT_EQ(forward(own_request, table).code(), bad);
  EXPECT_EQ(forward(empty, own_table).code(), bad);
  EXPECT_EQ(forward(own_request, AdaLnTable()).code(), bad);
  EXPECT_THAT(MessageOf(forward(request, own_table)), HasSubstr("another model"));
  EXPECT_EQ(video, std::vector<float>(video.size(), 1e30f));
  EXPECT_TRUE(forward(own_request, own_table).ok());
}

TEST_P(DitRules, AMissingWeightIsNamed) {
  WeightStore store;
  for (const auto& [name, view] : checkpoint_.weights.entries()) {
    if (name != "transformer_blocks.1.attn.to_v.weight") store.AddView(name, view);
  }
  const absl::Status status = Dit::Create(config(), store).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status), HasSubstr("transformer_blocks.1.attn.to_v.weight"));
}

// ---- Chunks and tables -------------------------------------------------------------------------

// With to_out at zero attention adds nothing, so that rows do not see each other.
class DitChunks : public testing::Test {
 protected:
  DitChunks() {
    config_.layers = 1;
    config_.refiner_layers = 1;
    config_.text_dim = 2 * config_.ffn;
    std::map<std::string, Tensor> changed;
    for (const std::string block : {"transformer_blocks.0.", "token_refiner.refiner_blocks.0."}) {
      const std::string name = block + "attn.to_out.0.weight";
      const Shape shape = checkpoint_.weights.entries().at(name).shape();
      changed[name] = Tensor::Zeros(DType::kF32, shape).value();
    }
    Tensor& embedder = changed["context_embedder.weight"];
    embedder = Tensor::Create(DType::kF32, {config_.hidden, config_.text_dim}).value();
    std::mt19937 random(11);
    for (int64_t i = 0; i < embedder.elements(); ++i) embedder.as<float>()[i] = Uniform(random);
    store_ = Replace(checkpoint_.weights, std::move(changed));
  }
  static float Uniform(std::mt19937& random) {
    return static_cast<float>(random() >> 8) * 0x1p-23f - 1.0f;
  }
  // Rows of one modality with values that differ from row to row.
  Inputs Rows(size_t first, size_t rows, bool text) const {
    Inputs in;
    in.positions.assign(3 * rows, 1.0);
    in.tags.assign(rows, text ? 1 : 0);
    in.timesteps = {0.5f};
    in.row_timestep.assign(rows, 0);
    std::vector<int64_t>& list = text ? in.text_indices : in.video_indices;
    list.resize(rows);
    std::iota(list.begin(), list.end(), 0);
    const auto width = static_cast<size_t>(text ? config_.text_dim : config_.video_row());
    std::mt19937 random(7);
    std::vector<float>& values = text ? in.text : in.video;
    for (size_t i = 0; i < (first + rows) * width; ++i) {
      const float value = Uniform(random);
      if (i >= first * width) values.push_back(value);
    }
    return in;
  }
  std::vector<float> Tail(const std::vector<float>& values, size_t rows) const {
    const auto n = static_cast<int64_t>(rows) * config_.hidden;
    return {values.end() - n, values.end()};
  }

  static constexpr size_t kTail = 300;
  TransformerCheckpoint checkpoint_ = OpenModel("nano");
  DitConfig config_ = checkpoint_.config;
  WeightStore store_;
};

TEST_F(DitChunks, RowsOfTheSecondFfnChunkAreThoseOfTheRowsAlone) {
  const Dit dit = Dit::Create(config_, store_).value();
  constexpr auto kFirst = static_cast<size_t>(dit::kFfnRows);
  const Results all = RunModel(dit, Rows(0, kFirst + kTail, false)).value();
  const Results alone = RunModel(dit, Rows(kFirst, kTail, false)).value();
  const Results planted = RunModel(dit, Rows(0, kTail, false)).value();
  EXPECT_LE(RelativeL2(Tail(all.at("block_0.ff"), kTail), alone.at("block_0.ff")), kFp32Bound);
  EXPECT_GT(RelativeL2(planted.at("block_0.ff"), alone.at("block_0.ff")), 0.1);
}

// The FFN of the second chunk in float64 with the rounding points of C4.
TEST_F(DitChunks, RowsOfTheSecondFfnChunkAreRoundedAsC4Says) {
  const Dit dit = Dit::Create(config_, store_).value();
  constexpr auto kFirst = static_cast<size_t>(dit::kFfnRows);
  const Inputs in = Rows(0, kFirst + kTail, false);
  const Results results = RunModel(dit, in, {.precision = Precision::kBf16}).value();
  ThreadPool pool(2);
  const AdaLnTable table = dit.MakeAdaLn(in.timesteps, Precision::kBf16, {.pool = &pool}).value();
  const auto get = [&](const std::string& name) { return Widened(store_, name); };
  const std::string block = "transformer_blocks.0.";
  const Tensor proj = get("proj_in.weight");
  const Tensor proj_bias = get("proj_in.bias");
  const Tensor norm = get(block + "norm2.weight");
  const Tensor gate = get(block + "ff.gate.weight");
  const Tensor value = get(block + "ff.value.weight");
  const Tensor out = get(block + "ff.net.2.weight");
  const auto rn = [](double v) { return static_cast<double>(RoundToBf16(static_cast<float>(v))); };
  using Row = std::vector<double>;
  const auto times = [](const Row& x, const Tensor& w) {  // x W^T
    Row y;
    for (int64_t r = 0; r < w.shape()[0]; ++r) {
      double sum = 0.0;
      for (size_t j = 0; j < x.size(); ++j) {
        sum +=
            x[j] * static_cast<double>(w.as<float>()[r * w.shape()[1] + static_cast<int64_t>(j)]);
      }
      y.push_back(sum);
    }
    return y;
  };
  const int64_t hidden = config_.hidden;
  const float* shift = table.block(0).as<float>() + 3 * hidden;  // row 0: timestep 0, video
  const float* scale = shift + hidden;
  const auto expected = [&](bool round_silu_and_product) {
    const auto rn_if = [&](double v) { return round_silu_and_product ? rn(v) : v; };
    const auto width = static_cast<size_t>(config_.video_row());
    std::vector<float> rows;
    for (size_t i = kFirst; i < kFirst + kTail; ++i) {
      const auto begin = in.video.begin() + static_cast<int64_t>(i * width);
      Row x = times(Row(begin, begin + static_cast<int64_t>(width)), proj);
      double squares = 0.0;
      for (int64_t j = 0; j < hidden; ++j) {
        double& v = x[static_cast<size_t>(j)];
        v = rn(v + static_cast<double>(proj_bias.as<float>()[j]));
        squares += v * v;
      }
      const double inverse =
          1.0 / std::sqrt(squares / static_cast<double>(hidden) + config_.norm_eps);
      for (int64_t j = 0; j < hidden; ++j) {
        double& v = x[static_cast<size_t>(j)];
        const double n = rn(v * inverse * static_cast<double>(norm.as<float>()[j]));
        v = rn(rn(n * rn(1.0 + static_cast<double>(scale[j]))) + static_cast<double>(shift[j]));
      }
      Row g = times(x, gate);
      const Row u = times(x, value);
      for (size_t j = 0; j < g.size(); ++j) {
        const double gated = rn(g[j]);
        g[j] = rn_if(rn_if(gated / (1.0 + std::exp(-gated))) * rn(u[j]));
      }
      for (const double v : times(g, out)) rows.push_back(RoundToBf16(static_cast<float>(v)));
    }
    return rows;
  };
  // Ten values on the way are rounded, and float32 errors move at most one in 200 of each by one
  // place of 2^-8: sqrt(10 / 200) * 2^-8.
  const double bound = std::sqrt(10.0 / 200.0) * 0x1p-8;
  const std::vector<float> got = Tail(results.at("block_0.ff"), kTail);
  const CompareResult result = CompareFloats(got, expected(true));
  EXPECT_TRUE(Within(result, bound)) << Describe(result);
  EXPECT_GT(RelativeL2(got, expected(false)), bound);
}

// EmbedText rounds the text through the FFN's gate buffer, [rows, ffn]: with a text twice as wide
// half of the rows at once.
TEST_F(DitChunks, TextLongerThanTheEmbeddingChunkIsThatOfTheRowsAlone) {
  const Dit dit = Dit::Create(config_, store_).value();
  const size_t rows = 4 * kTail;
  const size_t before = rows - kTail;  // the tail is in the second chunk
  const RunOptions options = {.precision = Precision::kBf16};
  const Results all = RunModel(dit, Rows(0, rows, true), options).value();
  const Results alone = RunModel(dit, Rows(before, kTail, true), options).value();
  // Sums of other tile sizes may differ in float32, which moves one value in 200 of the 25 that are
  // rounded on the way by one place of 2^-8.
  const double bound = std::sqrt(25.0 / 200.0) * 0x1p-8;
  EXPECT_LE(RelativeL2(Tail(all.at("token_refiner"), kTail), alone.at("token_refiner")), bound);
  const Results planted = RunModel(dit, Rows(0, kTail, true), options).value();
  EXPECT_GT(RelativeL2(planted.at("token_refiner"), alone.at("token_refiner")), 0.1);
}

TEST(DitTables, RotaryAnglesFollowTheirDefinition) {
  DitConfig config;
  config.rope_freq_dim = 16;
  const std::vector<double> positions = {303.0, 27.08695787493733, -5.166010488516722};
  std::vector<float> cos(48, 1e30f);
  std::vector<float> sin(48, 1e30f);
  ThreadPool pool(1);
  ASSERT_TRUE(
      dit::FillRotary(positions, config, Matrix(cos, 48), Matrix(sin, 48), {.pool = &pool}).ok());
  for (size_t axis = 0; axis < 3; ++axis) {
    for (size_t j = 0; j < 16; ++j) {
      const double angle = positions[axis] * std::pow(10000.0, -static_cast<double>(j) / 16.0);
      // Three float32 roundings of the angle, one of the result.
      const double bound = 3.0 * 6e-8 * std::abs(angle) + 6e-8;
      EXPECT_NEAR(cos[axis * 16 + j], std::cos(angle), bound);
      EXPECT_NEAR(sin[axis * 16 + j], std::sin(angle), bound);
    }
  }
}

TEST(DitTables, TimestepFeaturesPutTheCosineFirstAndDoNotScale) {
  const std::vector<float> timesteps = {0.0f, 0.5f, 1.0f};
  std::vector<float> out(3 * 8, 1e30f);
  dit::FillTimestepFeatures(timesteps, Matrix(out, 8));
  // The exponent, at most 6.9, comes from three float32 roundings of 2^-24 relative, which f takes
  // over times 6.9 e^-6.9 < 0.37 (the most of x e^-x); then f, the angle and the result, each at
  // most 1, are rounded: (3 * 0.37 + 3) * 2^-24 = 2.5e-7.
  constexpr double kFeatureBound = 2.5e-7;
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 4; ++j) {
      const double f = std::exp(-std::log(10000.0) * static_cast<double>(j) / 4.0);
      EXPECT_NEAR(out[i * 8 + j], std::cos(timesteps[i] * f), kFeatureBound);
      EXPECT_NEAR(out[i * 8 + 4 + j], std::sin(timesteps[i] * f), kFeatureBound);
    }
  }
}

}  // namespace
}  // namespace h3rt
