#include "h3rt/runtime/progress.h"

#include <gtest/gtest.h>

namespace h3rt {
namespace {

TEST(ProgressMeter, TellsStepPaceAndTimeLeft) {
  double now = 100;
  std::vector<ProgressEvent> events;
  const ProgressSink sink = [&](const ProgressEvent& event) { events.push_back(event); };
  ProgressMeter meter("denoise", 4, sink, [&] { return now; });
  now = 110;  // the first step warms up: 10 s
  meter.Step(1);
  now = 112;
  meter.Step(2);
  now = 114;
  meter.Step(3);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].step, 0);
  EXPECT_EQ(events[0].steps, 4);
  EXPECT_EQ(events[0].seconds_per_step, 0);
  EXPECT_DOUBLE_EQ(events[1].seconds_per_step, 10);
  EXPECT_DOUBLE_EQ(events[1].seconds_left, 30);
  // From the second step on the slow first one is left out.
  EXPECT_DOUBLE_EQ(events[2].seconds_per_step, 2);
  EXPECT_DOUBLE_EQ(events[3].seconds_per_step, 2);
  EXPECT_DOUBLE_EQ(events[3].seconds_left, 2);
  EXPECT_DOUBLE_EQ(meter.seconds(), 14);
}

TEST(ProgressMeter, WorksWithoutASink) {
  const ProgressSink none;
  ProgressMeter meter("denoise", 1, none);
  meter.Step(1);
}

TEST(FormatProgress, NamesStageStepPaceAndRest) {
  EXPECT_EQ(FormatProgress({.stage = "denoise",
                            .step = 3,
                            .steps = 8,
                            .seconds_per_step = 1.5,
                            .seconds_left = 7.5}),
            "denoise 3/8, 1.5 s a step, 7.5 s left");
  EXPECT_EQ(FormatProgress({.stage = "adaln", .step = 0, .steps = 1}), "adaln");
}

TEST(StageClock, WritesDownEveryStageOnce) {
  std::vector<StageTime> stages;
  int64_t forwarded = 0;
  const ProgressSink sink = [&](const ProgressEvent&) { ++forwarded; };
  StageClock clock(sink, stages);
  ProgressMeter a("a", 2, clock.sink());
  a.Step(1);
  a.Step(2);
  ProgressMeter b("b", 1, clock.sink());
  b.Step(1);
  clock.Finish();
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_EQ(stages[0].stage, "a");
  EXPECT_EQ(stages[1].stage, "b");
  EXPECT_EQ(forwarded, 5);
}

}  // namespace
}  // namespace h3rt
