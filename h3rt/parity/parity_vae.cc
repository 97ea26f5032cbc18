// The two autoencoders.
#include <cmath>
#include <vector>

#include "h3rt/io/checkpoint.h"
#include "h3rt/model/audio_vae/audio_vae.h"
#include "h3rt/model/video_vae/video_vae.h"
#include "h3rt/parity/parity_internal.h"
#include "h3rt/tensor/tensor.h"

namespace h3rt::parity {
namespace {

// [1, ...] -> [...]; the fixtures hold one clip.
absl::StatusOr<Tensor> ReadClip(const SafetensorsFile& file, std::string_view name) {
  H3RT_ASSIGN_OR_RETURN(const Tensor batch, ReadTensor(file, name, DType::kF32, 5));
  if (batch.shape()[0] != 1) {
    return DataLoss({.what = "batch of " + std::string(name),
                     .got = std::to_string(batch.shape()[0]),
                     .wanted = "1",
                     .where = file.path()});
  }
  return Tensor::Copy(batch.view().Select(0, 0));
}

struct VaeCase {
  const char* input;
  const char* output;
  bool decode;
  bool small_tiles;  // tiles of 2x2 latents with an overlap of one
};

constexpr VaeCase kVaeCases[] = {
    {"z", "decode", true, false},
    {"pixels", "encode_mode", false, false},
    {"image", "encode_image_mode", false, false},
    {"tiled_z", "tiled_decode", true, true},
    {"long_z", "long_decode", true, true},
};

// Samples at the clamp carry no information: compares the others alone.
void CompareUnclamped(Recorder& recorder, const Tensor& got, const Tensor& want) {
  std::vector<float> a;
  std::vector<float> b;
  if (got.shape().elements() != want.shape().elements()) return;  // the full row already fails
  for (int64_t i = 0; i < want.elements(); ++i) {
    const float w = want.as<float>()[i];
    if (std::fabs(w) >= 1.0f) continue;
    a.push_back(got.as<float>()[i]);
    b.push_back(w);
  }
  const Shape shape = {static_cast<int64_t>(a.size())};
  recorder.Compare("audio_vae.decode_unclamped", ConstTensorView::Of(a.data(), shape),
                   ConstTensorView::Of(b.data(), shape), ParityMetric::kRelativeL2, kAudioVae);
}

}  // namespace

absl::Status RunVideoVae(Recorder& recorder, const ExecContext& context) {
  H3RT_ASSIGN_OR_RETURN(const std::optional<SafetensorsFile> file,
                        recorder.Open("vae.safetensors"));
  if (!file || !recorder.Exists("vae")) return absl::OkStatus();
  H3RT_ASSIGN_OR_RETURN(const VideoVaeCheckpoint checkpoint, OpenVideoVae(recorder.PathOf("vae")));
  H3RT_ASSIGN_OR_RETURN(const VideoVae vae,
                        VideoVae::Create(checkpoint.config, checkpoint.weights));
  const int64_t factor = checkpoint.config.spatial_factor();
  for (const VaeCase& c : kVaeCases) {
    if (!file->Has(c.input) || !file->Has(c.output)) {
      recorder.Missing(std::string("vae.") + (file->Has(c.input) ? c.output : c.input));
      continue;
    }
    const VaeTiling tiling =
        c.small_tiles ? VaeTiling{.tile = 2 * factor, .overlap = factor} : VaeTiling{};
    H3RT_ASSIGN_OR_RETURN(const Tensor input, ReadClip(*file, c.input));
    H3RT_ASSIGN_OR_RETURN(const ConstTensorView want, file->Get(c.output));
    H3RT_ASSIGN_OR_RETURN(const Tensor output, c.decode
                                                   ? vae.Decode(input.view(), tiling, context)
                                                   : vae.Encode(input.view(), tiling, context));
    // The recorded encodings are posterior means: the first half of the moments.
    const ConstTensorView got =
        c.decode ? output.view() : output.view().Slice(0, 0, output.shape()[0] / 2);
    recorder.Compare(std::string("vae.") + c.output, got, want, ParityMetric::kRelativeL2,
                     kVideoVae);
  }
  return absl::OkStatus();
}

absl::Status RunAudioVae(Recorder& recorder, const ExecContext& context) {
  H3RT_ASSIGN_OR_RETURN(const std::optional<SafetensorsFile> file,
                        recorder.Open("audio_vae.safetensors"));
  if (!file || !recorder.Exists("audio_vae")) return absl::OkStatus();
  H3RT_ASSIGN_OR_RETURN(const AudioVaeCheckpoint checkpoint,
                        OpenAudioVae(recorder.PathOf("audio_vae")));
  H3RT_ASSIGN_OR_RETURN(const AudioVae vae,
                        AudioVae::Create(checkpoint.config, checkpoint.weights));
  for (const char* name : {"z", "decode", "wave", "encode_mode"}) {
    if (!file->Has(name)) recorder.Missing(std::string("audio_vae.") + name);
  }
  if (file->Has("z") && file->Has("decode")) {
    H3RT_ASSIGN_OR_RETURN(const Tensor z, ReadTensor(*file, "z", DType::kF32, 3));
    H3RT_ASSIGN_OR_RETURN(const Tensor recorded, ReadTensor(*file, "decode", DType::kF32, 3));
    const ConstTensorView want =
        recorded.view().Reshape({recorded.shape()[0], recorded.shape()[1] * recorded.shape()[2]});
    H3RT_ASSIGN_OR_RETURN(const Tensor got, vae.Decode(z.view(), context));
    recorder.Compare("audio_vae.decode", got.view(), want, ParityMetric::kRelativeL2, kAudioVae);
    CompareUnclamped(recorder, got, recorded);
  }
  if (file->Has("wave") && file->Has("encode_mode")) {
    H3RT_ASSIGN_OR_RETURN(const Tensor wave, ReadTensor(*file, "wave", DType::kF32, 3));
    const ConstTensorView samples =
        wave.view().Reshape({wave.shape()[0], wave.shape()[1] * wave.shape()[2]});
    H3RT_ASSIGN_OR_RETURN(const ConstTensorView want, file->Get("encode_mode"));
    H3RT_ASSIGN_OR_RETURN(const Tensor got, vae.Encode(samples, context));
    recorder.Compare("audio_vae.encode_mode", got.view(), want, ParityMetric::kRelativeL2,
                     kAudioVae);
  }
  return absl::OkStatus();
}

}  // namespace h3rt::parity
