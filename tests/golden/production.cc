#include "tests/golden/production.h"

#include <cstdio>
#include <limits>
#include <utility>
#include <vector>

#include "h3rt/base/check.h"
#include "tests/golden/fixture.h"

namespace h3rt::golden {
namespace {

using ref64::Array;

void OrDie(const absl::Status& status) {
  if (!status.ok()) std::fprintf(stderr, "%s\n", MessageOf(status).c_str());
  H3RT_CHECK(status.ok());
}

template <typename T>
T OrDie(absl::StatusOr<T> value) {
  OrDie(value.status());
  return std::move(value).value();
}

// Outputs start as NaN: a value that is never written cannot pass.
Tensor Poisoned(const Shape& shape) {
  Tensor tensor = OrDie(Tensor::Create(DType::kF32, shape));
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    tensor.as<float>()[i] = std::numeric_limits<float>::quiet_NaN();
  }
  return tensor;
}

template <typename To, typename From>
std::vector<To> Cast(const std::vector<From>& from) {
  std::vector<To> to;
  for (const From& value : from) to.push_back(static_cast<To>(value));
  return to;
}

VaeTiling ToVaeTiling(const ref64::Tiling& tiling) {
  VaeTiling out;
  out.tile = tiling.tile;
  out.overlap = tiling.overlap;
  return out;
}

}  // namespace

Production::Production(const std::string& model)
    : model_(model),
      transformer_(OrDie(OpenTransformer(DataPath(model, "transformer")))),
      video_(OrDie(OpenVideoVae(DataPath(model, "vae")))),
      audio_(OrDie(OpenAudioVae(DataPath(model, "audio_vae")))) {
  context_.pool = &pool_;
}

MediaRows Production::Forward(const ref64::DitInput& input) const {
  return ForwardWith(transformer_.config, transformer_.weights, input);
}

MediaRows Production::PrunedForward(const ref64::DitInput& input) const {
  // Views of the full model, but what the fixture replaces, and nothing of the time embedding.
  const ref64::Weights full = LoadDiffusers(model_, "transformer");
  const ref64::Weights pruned = LoadPruned(model_);
  DitConfig config = transformer_.config;
  config.adaln_rank = pruned.Get("adaln_t_table").dim(1);
  WeightStore store;
  OrDie(store.AddOwned("adaln_t_table", ToTensor(pruned.Get("adaln_t_table"))));
  for (const auto& [name, view] : transformer_.weights.entries()) {
    if (name.starts_with("time_embedder.")) continue;
    if (pruned.Get(name).data == full.Get(name).data) {
      store.AddView(name, view);
    } else {
      OrDie(store.AddOwned(name, ToTensor(pruned.Get(name))));
    }
  }
  return ForwardWith(config, store, input);
}

MediaRows Production::ForwardWith(const DitConfig& config, const WeightStore& weights,
                                  const ref64::DitInput& input) const {
  const std::vector<int32_t> tags = Cast<int32_t>(input.tags);
  const std::vector<int32_t> row_timestep = Cast<int32_t>(input.row_timestep);
  const std::vector<float> timesteps = Cast<float>(input.timesteps);
  DitSequence sequence;
  sequence.rows = input.positions.dim(0);
  sequence.position_ids = input.positions.data;
  sequence.token_tags = tags;
  sequence.text_indices = input.text_indices;
  sequence.audio_indices = input.audio_indices;
  sequence.video_indices = input.video_indices;

  const Dit dit = OrDie(Dit::Create(config, weights));
  const AdaLnTable adaln = OrDie(dit.MakeAdaLn(timesteps, Precision::kFp32, context_));
  const Tensor text = ToTensor(input.text);
  DitRequest request = OrDie(dit.Prepare(sequence, text.view(), Precision::kFp32, context_));
  const Tensor video = ToTensor(input.video);
  const Tensor audio = ToTensor(input.audio);
  Tensor video_out = Poisoned(video.shape());
  Tensor audio_out = Poisoned(audio.shape());
  OrDie(dit.Forward(request, adaln, row_timestep, video.view(), audio.view(), video_out.view(),
                    audio_out.view(), context_));
  return {ToArray(video_out.view()), ToArray(audio_out.view())};
}

Array Production::VideoDecode(const Array& z, const ref64::Tiling& tiling) const {
  const VideoVae vae = OrDie(VideoVae::Create(video_.config, video_.weights));
  const Tensor in = ToTensor(z);
  const Tensor out = OrDie(vae.Decode(in.view(), ToVaeTiling(tiling), context_));
  return ToArray(out.view());
}

Array Production::VideoEncode(const Array& pixels, const ref64::Tiling& tiling) const {
  const VideoVae vae = OrDie(VideoVae::Create(video_.config, video_.weights));
  const Tensor in = ToTensor(pixels);
  const Tensor out = OrDie(vae.Encode(in.view(), ToVaeTiling(tiling), context_));
  return ToArray(out.view());
}

Array Production::AudioDecode(const Array& z) const {
  const AudioVae vae = OrDie(AudioVae::Create(audio_.config, audio_.weights));
  const Tensor in = ToTensor(z);
  const Tensor out = OrDie(vae.Decode(in.view(), context_));
  return ToArray(out.view());
}

Array Production::AudioEncode(const Array& samples) const {
  const AudioVae vae = OrDie(AudioVae::Create(audio_.config, audio_.weights));
  const Tensor in = ToTensor(samples);
  const Tensor out = OrDie(vae.Encode(in.view(), context_));
  return ToArray(out.view());
}

}  // namespace h3rt::golden
