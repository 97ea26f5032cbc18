// Progress of long work: stage, step, seconds a step, time left.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace h3rt {

struct ProgressEvent {
  std::string stage;  // "denoise", "decode video", ...
  int64_t step = 0;   // done, of steps; 0 announces the stage
  int64_t steps = 0;
  double seconds_per_step = 0;  // 0 until it is known
  double seconds_left = 0;      // of this stage; 0 until it is known
};

// Called on the thread that runs the job, never concurrently.
using ProgressSink = std::function<void(const ProgressEvent&)>;

// Times the steps of one stage and reports them. The time left is that of the steps that remain at
// the mean pace so far, leaving out the first step (which warms caches) once there is a second.
class ProgressMeter {
 public:
  using Clock = std::function<double()>;  // seconds; for tests
  ProgressMeter(std::string stage, int64_t steps, const ProgressSink& sink, Clock clock = {});
  void Step(int64_t done);
  double seconds() const;  // since the stage began

 private:
  void Emit(int64_t done, double per_step);

  std::string stage_;
  int64_t steps_;
  const ProgressSink& sink_;
  Clock clock_;
  double begin_;
  double first_end_ = 0;
  int64_t first_done_ = 0;
};

struct StageTime {
  std::string stage;
  double seconds = 0;
};

// Forwards events to a sink and writes down how long each stage took, from its first event to the
// first of the next.
class StageClock {
 public:
  StageClock(const ProgressSink& sink, std::vector<StageTime>& stages);
  StageClock(const StageClock&) = delete;
  StageClock& operator=(const StageClock&) = delete;
  const ProgressSink& sink() const { return recording_; }
  void Finish();  // ends the last stage

 private:
  std::vector<StageTime>& stages_;
  std::string current_;
  double begin_ = 0;
  ProgressSink recording_;
};

// "denoise 3/8, 1.2 s a step, 6.0 s left"
std::string FormatProgress(const ProgressEvent& event);

}  // namespace h3rt
