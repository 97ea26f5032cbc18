// Seeded noise of machines, to prove the method on.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "h3rt/lab/stats.h"

namespace h3rt::lab {

// The state of the machine (drift, wander, clock) runs on through all processes. kBlocks measures
// all of the baseline and then all of the candidate, as two builds one after the other. `quads`
// counts those of the pair; after every third comes an A/A quad.
enum class Noise { kIndependent, kSpikes, kDrift, kAutoregressive, kClockState, kAll };
enum class Order { kAbba, kAbab, kBlocks };
struct SimulatedRun {
  Noise noise = Noise::kIndependent;
  Order order = Order::kAbba;
  int64_t processes = 6;
  int64_t quads = 30;
  double effect = 0;  // true log gain
  double sample_sd = 0.01;
  double process_sd = 0.0;  // effect that differs between processes
};

namespace simulator {

// Picoseconds: what the compute kernel of the method took.
inline constexpr double kBaseTime = 433e6;
inline constexpr double kDrift = 0.02;      // over the run
inline constexpr double kWander = 0.01;     // deviation of the slow autoregressive part
inline constexpr double kClockStep = 0.08;  // to either side
inline constexpr double kSpikeShare = 0.02;

class Generator {
 public:
  explicit Generator(uint64_t seed) : state_(seed) {}
  double Uniform() { return static_cast<double>(NextRandom(state_) >> 11) * 0x1p-53; }
  // Marsaglia's polar method: a logarithm and a root, nothing of libm.
  double Normal() {
    for (;;) {
      const double u = 2 * Uniform() - 1;
      const double v = 2 * Uniform() - 1;
      const double square = u * u + v * v;
      if (square > 0 && square < 1) return u * std::sqrt(-2 * PlainLog(square) / square);
    }
  }

 private:
  uint64_t state_;
};

// The machine, sample by sample. Its slow parts have the time scale of the run: a correlation of
// four fifths of it, two changes of clock on average.
class Machine {
 public:
  Machine(const SimulatedRun& run, int64_t samples, Generator& generator)
      : run_(run), length_(static_cast<double>(samples)), generator_(generator) {
    keep_ = PlainExp(-1 / (0.8 * length_));
    wander_ = kWander * generator_.Normal();
    clock_ = generator_.Uniform() < 0.5 ? -1 : 1;
  }
  // Log of the time of the next sample, the arm's effect left out.
  double Next() {
    double log_time = run_.sample_sd * generator_.Normal();
    const bool all = run_.noise == Noise::kAll;
    if ((all || run_.noise == Noise::kSpikes) && generator_.Uniform() < kSpikeShare) {
      log_time += 0.1 + 0.4 * generator_.Uniform();
    }
    if (all || run_.noise == Noise::kDrift) log_time += kDrift * at_ / length_;
    if (all || run_.noise == Noise::kAutoregressive) {
      wander_ = keep_ * wander_ + kWander * std::sqrt(1 - keep_ * keep_) * generator_.Normal();
      log_time += wander_;
    }
    if (all || run_.noise == Noise::kClockState) {
      if (generator_.Uniform() < 2 / length_) clock_ = -clock_;
      log_time += kClockStep * clock_;
    }
    at_ += 1;
    return log_time;
  }

 private:
  const SimulatedRun& run_;
  double length_;
  Generator& generator_;
  double keep_ = 0;
  double wander_ = 0;
  double clock_ = 1;
  double at_ = 0;
};

inline uint8_t ArmOfSlot(Order order, uint8_t slot, bool candidate_first) {
  const bool candidate = order == Order::kAbba ? slot == 1 || slot == 2 : slot % 2 == 1;
  return candidate != candidate_first ? 1 : 0;
}

}  // namespace simulator

inline std::vector<Sample> Simulate(const SimulatedRun& run, uint64_t seed) {
  simulator::Generator generator(seed);
  std::vector<Sample> samples;
  std::vector<double> effects;
  for (int64_t p = 0; p < run.processes; ++p) {
    effects.push_back(run.effect + run.process_sd * generator.Normal());
    const bool candidate_first = run.order != Order::kBlocks && generator.Uniform() < 0.5;
    uint16_t number = 0;
    for (int64_t q = 0; q < run.quads; ++q) {
      for (const uint8_t role : {uint8_t{0}, uint8_t{1}}) {
        if (role == 1 && q % 3 != 2) continue;
        for (uint8_t slot = 0; slot < 4; ++slot) {
          Sample sample;
          sample.process = static_cast<uint16_t>(p);
          sample.quad = number;
          sample.slot = slot;
          sample.role = role;
          sample.arm =
              role == 1 ? uint8_t{0} : simulator::ArmOfSlot(run.order, slot, candidate_first);
          samples.push_back(sample);
        }
        ++number;
      }
    }
  }
  if (run.order == Order::kBlocks) {
    std::stable_sort(samples.begin(), samples.end(),
                     [](const Sample& a, const Sample& b) { return a.arm < b.arm; });
  }
  simulator::Machine machine(run, static_cast<int64_t>(samples.size()), generator);
  for (Sample& sample : samples) {
    double log_time = machine.Next();
    if (sample.arm == 1) log_time -= effects[sample.process];
    sample.picoseconds = std::llround(simulator::kBaseTime * PlainExp(log_time));
  }
  return samples;
}

}  // namespace h3rt::lab
