// One whole request from seed and embeddings.
#include <vector>

#include "h3rt/num/torch_rng.h"
#include "h3rt/parity/parity_internal.h"
#include "h3rt/runtime/session.h"
#include "h3rt/tensor/tensor.h"

namespace h3rt::parity {
namespace {

// What the fixture's description says of the request and its tensors do not.
constexpr uint64_t kSeed = 440420;
constexpr int64_t kForwards = 4;

// [3, f, h, w] -> [f, 3, h, w].
absl::StatusOr<Tensor> FramesFirst(const Tensor& frames) {
  return Tensor::Copy(frames.view().Transpose(0, 1));
}

absl::Status CompareNoise(Recorder& recorder, const SafetensorsFile& file) {
  TorchGenerator generator(kSeed);
  for (const char* name : {"noise.video", "noise.audio"}) {
    H3RT_ASSIGN_OR_RETURN(const ConstTensorView want, file.Get(name));
    std::vector<float> got(static_cast<size_t>(want.elements()));
    generator.Randn(got);
    recorder.Compare(std::string("end_to_end.") + name,
                     ConstTensorView::Of(got.data(), want.shape()), want, ParityMetric::kBits, 0);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunEndToEnd(Recorder& recorder, const ExecContext& context) {
  H3RT_ASSIGN_OR_RETURN(const std::optional<SafetensorsFile> file,
                        recorder.Open("end_to_end_f32.safetensors"));
  if (!file) return absl::OkStatus();
  H3RT_RETURN_IF_ERROR(CompareNoise(recorder, *file));
  for (const char* part : {"transformer", "vae", "audio_vae"}) {
    if (!recorder.Exists(part)) return absl::OkStatus();
  }
  H3RT_ASSIGN_OR_RETURN(const Tensor frames, ReadTensor(*file, "frames", DType::kF32, 4));
  SessionOptions options;
  options.threads = context.pool->threads();
  if (context.impls != nullptr) options.impls = *context.impls;
  H3RT_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                        Session::Open(recorder.path(), options));
  GenerateRequest request;
  H3RT_ASSIGN_OR_RETURN(request.prompt_embeds, ReadTensor(*file, "text", DType::kF32, 2));
  request.frames = frames.shape()[0];
  request.height = frames.shape()[2];
  request.width = frames.shape()[3];
  request.forwards = kForwards;
  request.seed = kSeed;
  H3RT_ASSIGN_OR_RETURN(const GenerateResult result,
                        session->Generate(request, {}, context.cancel));
  H3RT_ASSIGN_OR_RETURN(const Tensor got_frames, FramesFirst(result.frames));
  const auto compare = [&](const char* name, const ConstTensorView& got, ParityMetric metric,
                           double bound) -> absl::Status {
    H3RT_ASSIGN_OR_RETURN(const ConstTensorView want, file->Get(name));
    recorder.Compare(std::string("end_to_end.") + name, got, want, metric, bound);
    return absl::OkStatus();
  };
  H3RT_RETURN_IF_ERROR(
      compare("latents", result.latents.view(), ParityMetric::kRelativeL2, kEndToEndLatents));
  H3RT_RETURN_IF_ERROR(compare("audio_latents", result.audio_latents.view(),
                               ParityMetric::kRelativeL2, kEndToEndLatents));
  H3RT_RETURN_IF_ERROR(
      compare("frames", got_frames.view(), ParityMetric::kMaxAbs, kEndToEndFrames));
  return compare("samples", result.samples.view(), ParityMetric::kRelativeL2, kEndToEndSamples);
}

}  // namespace h3rt::parity
