// The method on simulated machines: what the gate interval claims where nothing is to be claimed.
#include <gtest/gtest.h>

#include <cmath>

#include "h3rt/lab/test_simulate.h"

namespace h3rt::lab {
namespace {

constexpr Noise kNoises[] = {Noise::kIndependent,    Noise::kSpikes,     Noise::kDrift,
                             Noise::kAutoregressive, Noise::kClockState, Noise::kAll};
constexpr const char* kNames[] = {"independent", "spikes", "drift", "wander", "clock", "all"};

// Shares in percent over seeded repetitions.
struct Rates {
  double claims = 0;    // the clustered interval excludes no effect
  double coverage = 0;  // it holds the true effect
  double exact = 0;     // the pooled exact interval excludes no effect
};
Rates Repeat(const SimulatedRun& run, int repetitions) {
  Rates rates;
  const double part = 100.0 / repetitions;
  for (int i = 0; i < repetitions; ++i) {
    const uint64_t seed =
        1000003 * static_cast<uint64_t>(i) + 17 * static_cast<uint64_t>(run.noise);
    const PairStatistics s = AnalysePair(Simulate(run, seed), 1, false);
    if (s.clustered.low > 0 || s.clustered.high < 0) rates.claims += part;
    if (s.clustered.low <= run.effect && run.effect <= s.clustered.high) rates.coverage += part;
    if (s.exact.low > 0 || s.exact.high < 0) rates.exact += part;
  }
  return rates;
}

TEST(Simulate, IsDeterministicInItsSeed) {
  const std::string one = PackSamples(Simulate({.noise = Noise::kAll}, 5));
  EXPECT_EQ(one, PackSamples(Simulate({.noise = Noise::kAll}, 5)));
  EXPECT_NE(one, PackSamples(Simulate({.noise = Noise::kAll}, 6)));
}

TEST(Simulate, GivesTheSameIntegersOnEveryMachine) {
  // No libm, no fused operations: compilers and processors must not matter to a single bit.
  const std::vector<Sample> samples =
      Simulate({.noise = Noise::kAll, .effect = 0.01, .process_sd = 0.003}, 12345);
  EXPECT_EQ(DigestOfText(PackSamples(samples)),
            "7adbc6bd678c1af03dc2af8cc11bd6d0e343a33df157424224be43ae5956a616");
  EXPECT_EQ(DigestOf(PairStatisticsDoc(AnalysePair(samples, 77))),
            "79c2042b4e76592f313042e224adcf6ebd81e3e8dc963a9b40893a3714165ed6");
  EXPECT_EQ(DigestOf(SingleStatisticsDoc(samples)),
            "9d8555602d05f3ef39e617cb01ed6a73deee76fb42416d69fa424577d7c92c5a");
}

TEST(Simulate, OrdersTheArmsAsAsked) {
  const auto arms = [](Order order) {
    std::string text;
    for (const Sample& s : Simulate({.order = order, .processes = 1, .quads = 3}, 8)) {
      text += s.role == 1 ? '.' : s.arm == 0 ? 'A' : 'B';
    }
    return text;
  };
  const std::string abba = arms(Order::kAbba);
  EXPECT_TRUE(abba == "ABBAABBAABBA...." || abba == "BAABBAABBAAB....") << abba;
  const std::string abab = arms(Order::kAbab);
  EXPECT_TRUE(abab == "ABABABABABAB...." || abab == "BABABABABABA....") << abab;
  EXPECT_EQ(arms(Order::kBlocks), "AAAAAA....BBBBBB");
}

TEST(GateInterval, ClaimsNothingOnNoiseMoreOftenThanItSays) {
  for (const Noise noise : kNoises) {
    const Rates rates = Repeat({.noise = noise}, 2000);
    EXPECT_GE(rates.claims, 3) << kNames[static_cast<int>(noise)];
    EXPECT_LE(rates.claims, 7) << kNames[static_cast<int>(noise)];
    RecordProperty(kNames[static_cast<int>(noise)], std::to_string(rates.claims));
  }
}

TEST(GateInterval, HoldsTheTrueEffectAsOftenAsItSays) {
  for (const Noise noise : kNoises) {
    const Rates rates = Repeat({.noise = noise, .effect = 0.01, .process_sd = 0.003}, 1500);
    EXPECT_GE(rates.coverage, 93) << kNames[static_cast<int>(noise)];
    EXPECT_LE(rates.coverage, 97) << kNames[static_cast<int>(noise)];
  }
}

TEST(GateInterval, IsNotSavedByAnythingWhereArmsAreMeasuredInBlocks) {
  // The same interval and the same noise: only the order of the measurements differs.
  for (const Noise noise :
       {Noise::kDrift, Noise::kAutoregressive, Noise::kClockState, Noise::kAll}) {
    const Rates rates = Repeat({.noise = noise, .order = Order::kBlocks}, 300);
    EXPECT_GT(rates.claims, 20) << kNames[static_cast<int>(noise)];
  }
  // Teeth of the right kind: without slow noise blocks are fine too.
  EXPECT_LT(Repeat({.order = Order::kBlocks}, 1000).claims, 7.5);
}

TEST(PooledInterval, LiesWhereProcessesDiffer) {
  // 6.2: one process of 60 pairs with a process effect of 0.5 %: a third of the claims are false.
  const Rates one = Repeat({.processes = 1, .quads = 30, .process_sd = 0.005}, 1000);
  EXPECT_GT(one.exact, 20);
  const Rates six = Repeat({.processes = 6, .quads = 30, .process_sd = 0.005}, 1000);
  EXPECT_GT(six.exact, 10);
  EXPECT_GE(six.claims, 3);
  EXPECT_LE(six.claims, 7);
}

TEST(PooledInterval, OfOneProcessFailsInBlocksAndHoldsInQuads) {
  // The table of 6.2: 30 pairs of one process.
  for (const Noise noise : {Noise::kDrift, Noise::kAutoregressive, Noise::kClockState}) {
    const Rates blocks =
        Repeat({.noise = noise, .order = Order::kBlocks, .processes = 1, .quads = 15}, 400);
    EXPECT_GT(blocks.exact, 20) << kNames[static_cast<int>(noise)];
    const Rates quads = Repeat({.noise = noise, .processes = 1, .quads = 15}, 1500);
    EXPECT_LT(quads.exact, 7) << kNames[static_cast<int>(noise)];
  }
}

TEST(DecidePair, NeitherPassesNorFailsOnNoiseMoreOftenThanItSays) {
  const PairThresholds thresholds = {.min_gain_ppm = 10000, .min_abs_ns = 0};
  int passed_nothing = 0;
  int failed_worthy = 0;
  int decided = 0;
  constexpr int kRuns = 400;
  for (int i = 0; i < kRuns; ++i) {
    const auto seed = static_cast<uint64_t>(9000 + i);
    const PairVerdict nothing =
        DecidePair(AnalysePair(Simulate({.sample_sd = 0.005}, seed), seed, false), thresholds);
    EXPECT_NE(nothing.decision, Decision::kFail) << "no bootstrap interval, so no fail";
    SimulatedRun run;
    run.sample_sd = 0.005;
    run.quads = 12;
    if (i % 4 != 0) continue;  // the bootstrap is the dear part
    const PairVerdict zero = DecidePair(AnalysePair(Simulate(run, seed), seed), thresholds);
    passed_nothing += zero.decision == Decision::kPass;
    decided += zero.decision == Decision::kFail;
    run.effect = std::log(1.01);  // worth exactly what is asked
    run.process_sd = 0.002;
    const PairVerdict worthy = DecidePair(AnalysePair(Simulate(run, seed + 1), seed), thresholds);
    failed_worthy += worthy.decision == Decision::kFail;
  }
  EXPECT_LE(passed_nothing, 2);  // of 100; 2.5 % and the point estimate over 1 % besides
  EXPECT_LE(failed_worthy, 7);   // of 100 at 2.5 %
  EXPECT_GE(decided, 50) << "it does decide where noise allows it";
}

TEST(DecidePair, CallsANoisyMachineInconclusiveRatherThanSlow) {
  int decided = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const SimulatedRun run = {.noise = Noise::kAll, .quads = 9, .sample_sd = 0.06};
    decided +=
        DecidePair(AnalysePair(Simulate(run, seed), seed), {}).decision != Decision::kInconclusive;
  }
  EXPECT_LE(decided, 1);
}

TEST(OptionalStopping, MakesFalseClaimsThatAFixedSizeDoesNot) {
  // One process, looked at after every five pairs from 10 to 200, stopped at the first "win".
  constexpr int kRuns = 400;
  int peeked = 0;
  int fixed = 0;
  for (int i = 0; i < kRuns; ++i) {
    const std::vector<Sample> samples =
        Simulate({.processes = 1, .quads = 100}, 77 + static_cast<uint64_t>(i));
    std::vector<double> gains;
    bool won = false;
    Interval last;
    for (size_t at = 0; at + 3 < samples.size(); at += 4) {
      if (samples[at].role != 0) continue;
      double gain = 0;
      for (size_t slot = 0; slot < 4; ++slot) {
        const Sample& s = samples[at + slot];
        const double time = PlainLog(static_cast<double>(s.picoseconds));
        gain += s.arm == 0 ? time : -time;
      }
      gains.push_back(gain / 2);
      if (gains.size() < 10 || gains.size() % 3 != 0) continue;
      last = ExactMedianInterval(gains, 0.95);
      won = won || last.low > 0 || last.high < 0;
    }
    peeked += won;
    const Interval whole = ExactMedianInterval(gains, 0.95);
    fixed += whole.low > 0 || whole.high < 0;
  }
  EXPECT_GT(peeked, kRuns * 12 / 100);
  EXPECT_LT(fixed, kRuns * 8 / 100);
}

TEST(Selection, TheBestOfTenVariantsWithoutEffectLooksBetter) {
  // 6.2: twenty pairs at 1 % noise, the best of ten: half a percent of nothing.
  double best_sum = 0;
  constexpr int kRuns = 200;
  for (int i = 0; i < kRuns; ++i) {
    double best = -1;
    for (int variant = 0; variant < 10; ++variant) {
      const auto seed = static_cast<uint64_t>(100 * i + variant);
      best = std::max(
          best, AnalysePair(Simulate({.processes = 1, .quads = 10}, seed), 1, false).log_gain);
    }
    best_sum += best;
  }
  EXPECT_GT(best_sum / kRuns, 0.004);
  EXPECT_LT(best_sum / kRuns, 0.008);
}

}  // namespace
}  // namespace h3rt::lab
