#include "h3rt/runtime/plan.h"

#include <gtest/gtest.h>

#include "h3rt/model/audio_vae/audio_vae.h"
#include "h3rt/model/dit/dit.h"

namespace h3rt {
namespace {

// The released model at its canonical size; weights as section 11 of the specification counts them.
PlanInputs Released() {
  PlanInputs in;
  in.dit_adaln = {.mapped = 26'078'000'000, .owned = 0};
  in.dit_rest = {.mapped = 40'202'000'000, .owned = 0};
  in.vae_encoder = {.mapped = 721'000'000, .owned = 0};
  in.vae_decoder = {.mapped = 9'694'000'000, .owned = 0};
  in.audio_decoder = {.mapped = 0, .owned = 260'000'000};
  in.width = 1344;
  in.height = 768;
  in.frames = 124;
  in.forwards = 49;
  in.text_rows = 98;
  in.distinct_timesteps = 97;
  in.threads = 2;
  return in;
}

const PlanStage& StageOf(const MemoryPlan& plan, const std::string& name) {
  for (const PlanStage& stage : plan.stages) {
    if (stage.name == name) return stage;
  }
  ADD_FAILURE() << "no stage " << name;
  return plan.stages.front();
}

TEST(MakePlan, CountsEveryStageOfTheReleasedModel) {
  const PlanInputs in = Released();
  const MemoryPlan plan = MakePlan(in);
  const PlanStage& denoise = StageOf(plan, "denoise");
  EXPECT_EQ(denoise.weights, in.dit_rest.mapped);
  EXPECT_EQ(denoise.working, Dit::RequestBytes(in.dit, 37808, 98, in.threads));
  EXPECT_GE(denoise.carried, Dit::AdaLnBytes(in.dit, 97, 0));
  const PlanStage& audio = StageOf(plan, "decode audio");
  // The finished frames wait while the sound is made: 3 x 124 x 768 x 1344 floats.
  EXPECT_GE(audio.carried, uint64_t{3} * 124 * 768 * 1344 * 4);
  EXPECT_EQ(plan.peak(), plan.program + plan.peak_stage()->total());
  EXPECT_EQ(plan.peak_stage()->name, "denoise");
}

TEST(MakePlan, KeyframesAndForwardsDecideTheStages) {
  PlanInputs in = Released();
  EXPECT_EQ(MakePlan(in).stages.front().name, "adaln");
  in.keyframes = 2;
  EXPECT_EQ(MakePlan(in).stages.front().name, "keyframes");
  in.keyframes = 0;
  in.forwards = 0;
  EXPECT_EQ(MakePlan(in).stages.front().name, "decode video");
}

TEST(MakePlan, GrowsWithTheClip) {
  PlanInputs in = Released();
  uint64_t last = 0;
  for (const int64_t frames : {5, 22, 124, 345}) {
    in.frames = frames;
    const uint64_t peak = MakePlan(in).peak();
    EXPECT_GT(peak, last) << frames;
    last = peak;
  }
}

TEST(MemoryPlan, RefusesWhatDoesNotFitWithBothNumbers) {
  const MemoryPlan plan = MakePlan(Released());
  EXPECT_TRUE(plan.CheckFits(plan.peak()).ok());
  const absl::Status status = plan.CheckFits(plan.peak() - 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(MessageOf(status).find("denoise"), std::string::npos);
  EXPECT_NE(MessageOf(status).find("available"), std::string::npos);
}

TEST(MemoryPlan, TextAndJsonNameEveryStage) {
  const MemoryPlan plan = MakePlan(Released());
  const std::string text = plan.ToText();
  const Json json = plan.ToJson();
  ASSERT_EQ(json["stages"].size(), plan.stages.size());
  for (const PlanStage& stage : plan.stages) {
    EXPECT_NE(text.find(stage.name), std::string::npos);
  }
  EXPECT_EQ(json["peak_bytes"].get<uint64_t>(), plan.peak());
}

}  // namespace
}  // namespace h3rt
