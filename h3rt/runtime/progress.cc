#include "h3rt/runtime/progress.h"

#include <fmt/format.h>

#include <utility>

#include "h3rt/base/units.h"

namespace h3rt {
namespace {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

ProgressMeter::ProgressMeter(std::string stage, int64_t steps, const ProgressSink& sink,
                             Clock clock)
    : stage_(std::move(stage)),
      steps_(steps),
      sink_(sink),
      clock_(clock ? std::move(clock) : Clock(&Now)),
      begin_(clock_()) {
  Emit(0, 0);
}

double ProgressMeter::seconds() const { return clock_() - begin_; }

void ProgressMeter::Emit(int64_t done, double per_step) {
  if (!sink_) return;
  sink_({.stage = stage_,
         .step = done,
         .steps = steps_,
         .seconds_per_step = per_step,
         .seconds_left = per_step * static_cast<double>(steps_ - done)});
}

void ProgressMeter::Step(int64_t done) {
  if (done <= 0) return;
  const double now = clock_();
  if (first_done_ == 0) {
    first_done_ = done;
    first_end_ = now;
    return Emit(done, (now - begin_) / static_cast<double>(done));
  }
  Emit(done, (now - first_end_) / static_cast<double>(done - first_done_));
}

StageClock::StageClock(const ProgressSink& sink, std::vector<StageTime>& stages)
    : stages_(stages), recording_([this, &sink](const ProgressEvent& event) {
        if (event.stage != current_) {
          Finish();
          current_ = event.stage;
          begin_ = Now();
        }
        if (sink) sink(event);
      }) {}

void StageClock::Finish() {
  if (!current_.empty()) stages_.push_back({current_, Now() - begin_});
  current_.clear();
}

std::string FormatProgress(const ProgressEvent& event) {
  std::string text = event.stage;
  if (event.steps > 1 || event.step > 0) text += fmt::format(" {}/{}", event.step, event.steps);
  if (event.seconds_per_step > 0) {
    text += fmt::format(", {} a step", FormatSeconds(event.seconds_per_step));
    if (event.step < event.steps) text += ", " + FormatSeconds(event.seconds_left) + " left";
  }
  return text;
}

}  // namespace h3rt
