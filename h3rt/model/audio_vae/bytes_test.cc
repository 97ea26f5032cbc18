// What DecodeBytes and EncodeBytes promise, against the heap.
#include <gtest/gtest.h>

#include <string>

#include "h3rt/base/count_allocations.h"
#include "h3rt/io/checkpoint.h"
#include "h3rt/model/audio_vae/audio_vae.h"

namespace h3rt {
namespace {

// A plan of the whole program has to be within 5 % of what it takes.
constexpr double kTolerance = 0.05;
constexpr int kThreads = 2;

void ExpectClose(int64_t held, uint64_t promised) {
  const double ratio = static_cast<double>(held) / static_cast<double>(promised);
  EXPECT_TRUE(ratio <= 1.0 + kTolerance && ratio >= 1.0 - kTolerance)
      << "held " << held << ", promised " << promised;
}

TEST(AudioVaeBytes, DecodeAndEncodeHoldWhatTheyPromise) {
  if (!kCountsAllocations) GTEST_SKIP() << "a sanitizer's malloc cannot be counted";
  const auto checkpoint = OpenAudioVae(std::string(H3RT_TEST_DATA) + "/h3/mini/audio_vae");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const auto vae = AudioVae::Create(checkpoint->config, checkpoint->weights);
  ASSERT_TRUE(vae.ok()) << vae.status();
  ThreadPool pool(kThreads);
  const ExecContext context = {.pool = &pool};
  // A minute of sound, so that threads which do not meet in the same op matter little.
  const int64_t a = 2400;
  const Tensor z = Tensor::Zeros(DType::kF32, {2, vae->config().latent_channels, a}).value();
  {
    const AllocationPeak peak;
    const auto out = vae->Decode(z.view(), context);
    ASSERT_TRUE(out.ok()) << out.status();
    ExpectClose(peak.bytes(), AudioVae::DecodeBytes(vae->config(), 2, a, kThreads));
  }
  const int64_t n = a * vae->config().hop() - 1;
  const Tensor wave = Tensor::Zeros(DType::kF32, {2, n}).value();
  const AllocationPeak peak;
  const auto out = vae->Encode(wave.view(), context);
  ASSERT_TRUE(out.ok()) << out.status();
  ExpectClose(peak.bytes(), AudioVae::EncodeBytes(vae->config(), 2, n, kThreads));
}

}  // namespace
}  // namespace h3rt
