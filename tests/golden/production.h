// The production model behind the types of the reference, so that both can be called alike.
#pragma once

#include <string>

#include "h3rt/base/exec.h"
#include "h3rt/io/checkpoint.h"
#include "h3rt/model/audio_vae/audio_vae.h"
#include "h3rt/model/dit/dit.h"
#include "h3rt/model/video_vae/video_vae.h"
#include "tests/golden/ref64/array.h"
#include "tests/golden/ref64/dit.h"
#include "tests/golden/ref64/video_vae.h"

namespace h3rt::golden {

struct MediaRows {
  ref64::Array video;
  ref64::Array audio;
};

// One model folder under tests/data/h3, opened by the library's own loaders; an error of the
// library stops the test program with its message. Everything runs on one thread.
class Production {
 public:
  explicit Production(const std::string& model);

  // A forward in float32 arithmetic; every row of the index lists is returned.
  MediaRows Forward(const ref64::DitInput& input) const;
  // The same with the AdaLN curve of pruned_f32.safetensors in place of the time embedding.
  MediaRows PrunedForward(const ref64::DitInput& input) const;
  ref64::Array VideoDecode(const ref64::Array& z, const ref64::Tiling& tiling) const;
  ref64::Array VideoEncode(const ref64::Array& pixels, const ref64::Tiling& tiling) const;
  ref64::Array AudioDecode(const ref64::Array& z) const;
  ref64::Array AudioEncode(const ref64::Array& samples) const;

  const DitConfig& dit_config() const { return transformer_.config; }
  const VideoVaeConfig& video_config() const { return video_.config; }
  const AudioVaeConfig& audio_config() const { return audio_.config; }
  const WeightStore& dit_weights() const { return transformer_.weights; }
  const WeightStore& video_weights() const { return video_.weights; }
  const WeightStore& audio_weights() const { return audio_.weights; }

 private:
  MediaRows ForwardWith(const DitConfig& config, const WeightStore& weights,
                        const ref64::DitInput& input) const;

  std::string model_;
  TransformerCheckpoint transformer_;
  VideoVaeCheckpoint video_;
  AudioVaeCheckpoint audio_;
  mutable ThreadPool pool_{1};
  ExecContext context_;
};

}  // namespace h3rt::golden
