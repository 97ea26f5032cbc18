#include "h3rt/runtime/keyframes.h"

#include <cmath>
#include <vector>

#include "h3rt/num/f16.h"
#include "h3rt/num/torch_rng.h"

namespace h3rt {
namespace {

constexpr uint64_t kPosteriorSeed = 42;

}  // namespace

absl::StatusOr<Tensor> EncodeKeyframe(const VideoVae& vae, const Tensor& image,
                                      const VaeTiling& tiling, const ExecContext& context) {
  H3RT_ASSIGN_OR_RETURN(Tensor pixels, Tensor::Copy(image.view()));
  NormalizePixels(pixels.view());
  H3RT_ASSIGN_OR_RETURN(const Tensor moments, vae.Encode(pixels.view(), tiling, context));
  const Shape& s = moments.shape();
  H3RT_ASSIGN_OR_RETURN(Tensor latents, Tensor::Create(DType::kF32, {s[0] / 2, s[1], s[2], s[3]}));
  const int64_t n = latents.elements();
  std::vector<float> noise(static_cast<size_t>(n));
  TorchGenerator generator(kPosteriorSeed);
  generator.Randn(noise);
  const float* mean = moments.as<float>();
  const float* log_variance = mean + n;
  float* z = latents.as<float>();
  for (int64_t i = 0; i < n; ++i) {
    const float deviation = std::exp(0.5f * log_variance[i]);
    z[i] = F16ToFloat(FloatToF16(mean[i] + deviation * noise[static_cast<size_t>(i)]));
  }
  vae.Normalize(latents.view());
  return latents;
}

}  // namespace h3rt
