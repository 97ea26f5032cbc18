// A session: one opened model that runs requests one after the other. Same request, same bytes, for
// any number of threads and whatever ran before.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "h3rt/base/exec.h"
#include "h3rt/base/status.h"
#include "h3rt/io/checkpoint.h"
#include "h3rt/model/dit/dit.h"
#include "h3rt/model/video_vae/video_vae.h"
#include "h3rt/runtime/plan.h"
#include "h3rt/runtime/progress.h"
#include "h3rt/runtime/request.h"

namespace h3rt {

struct SessionOptions {
  int threads = 0;  // 0: all that the process may use
  Precision precision = Precision::kFp32;
  LoadOptions load;
  ImplChoice impls;
  VaeTiling tiling;
  // Paths that replace the folder's own parts; empty: the folder's.
  std::string transformer;
  std::string video_vae;
  std::string audio_vae;
};

// What a request takes when it says nothing: what the folder's modular_model_index.json states
// under "h3rt" "defaults", with the released model's values where it is silent.
struct ModelDefaults {
  int64_t width = 1344;
  int64_t height = 768;
  int64_t frames = 124;
  int64_t forwards = 49;
};

class Session {
 public:
  // Finds the parts and reads configurations and headers; weights are mapped when a stage first
  // needs them, once. kNotFound, kDataLoss, kInvalidArgument as the loaders say.
  static absl::StatusOr<std::unique_ptr<Session>> Open(const std::string& model_dir,
                                                       const SessionOptions& options);
  ~Session();

  const DitConfig& dit_config() const;
  const VideoVaeConfig& video_vae_config() const;
  const AudioVaeConfig& audio_vae_config() const;
  const ModelDefaults& defaults() const;
  const std::string& model_hash() const;
  int threads() const;

  // Checks a request without running it: sizes, widths, values, seeds.
  absl::Status Check(const GenerateRequest& request) const;

  // Memory that Generate will need at its highest. The request has passed Check.
  absl::StatusOr<MemoryPlan> Plan(const GenerateRequest& request) const;

  // Runs the request. Refuses (kResourceExhausted) before allocating when the plan does not fit the
  // memory there is. Cancelled: kCancelled, within one tile or one operator, and nothing is kept;
  // the session stays usable after any error.
  absl::StatusOr<GenerateResult> Generate(const GenerateRequest& request,
                                          const ProgressSink& progress, const CancelToken* cancel);

 private:
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace h3rt
