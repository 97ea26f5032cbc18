// What DecodeBytes and EncodeBytes promise, against the heap.
#include <gtest/gtest.h>

#include <string>

#include "h3rt/base/count_allocations.h"
#include "h3rt/io/checkpoint.h"
#include "h3rt/model/video_vae/video_vae.h"

namespace h3rt {
namespace {

// A plan of the whole program has to be within 5 % of what it takes.
constexpr double kTolerance = 0.05;
constexpr int kThreads = 2;
// The ops promise packing at the depth of AVX-512, twice what AVX2 takes (cpu/sgemm.h); a thread's
// share of that may be missing from what is held.
constexpr int64_t kPackingBytes = int64_t{512} << 10;

class VideoVaeBytes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kCountsAllocations) GTEST_SKIP() << "a sanitizer's malloc cannot be counted";
    auto opened = OpenVideoVae(std::string(H3RT_TEST_DATA) + "/h3/mini/vae");
    ASSERT_TRUE(opened.ok()) << opened.status();
    checkpoint_ = *std::move(opened);
  }
  VideoVae Vae() { return VideoVae::Create(checkpoint_.config, checkpoint_.weights).value(); }

  static void ExpectClose(int64_t held, uint64_t promised) {
    const auto most = static_cast<double>(promised);
    const auto spare = static_cast<double>(kThreads * kPackingBytes);
    const auto bytes = static_cast<double>(held);
    EXPECT_TRUE(bytes <= most * (1.0 + kTolerance) && bytes >= most * (1.0 - kTolerance) - spare)
        << "held " << held << ", promised " << promised;
  }

  VideoVaeCheckpoint checkpoint_;
  ThreadPool pool_{kThreads};
  ExecContext context_{.pool = &pool_};
};

TEST_F(VideoVaeBytes, DecodeHoldsWhatItPromises) {
  const VideoVae vae = Vae();
  const int64_t c = vae.config().latent_channels;
  // One whole tile; tiles with strips; a clip of several chunks. Large enough that it matters
  // little whether the threads happen to be in the same op at once.
  for (const auto& [t, h, w] : {std::array<int64_t, 3>{7, 16, 16}, {7, 20, 28}, {17, 16, 12}}) {
    const Tensor z = Tensor::Zeros(DType::kF32, {c, t, h, w}).value();
    const AllocationPeak peak;
    const auto out = vae.Decode(z.view(), {}, context_);
    ASSERT_TRUE(out.ok()) << out.status();
    ExpectClose(peak.bytes(), VideoVae::DecodeBytes(vae.config(), t, h, w, {}, kThreads));
  }
}

TEST_F(VideoVaeBytes, EncodeHoldsWhatItPromises) {
  const VideoVae vae = Vae();
  for (const auto& [f, h, w] :
       {std::array<int64_t, 3>{22, 256, 256}, {5, 320, 288}, {1, 320, 288}}) {
    const Tensor pixels = Tensor::Zeros(DType::kF32, {3, f, h, w}).value();
    const AllocationPeak peak;
    const auto out = vae.Encode(pixels.view(), {}, context_);
    ASSERT_TRUE(out.ok()) << out.status();
    ExpectClose(peak.bytes(), VideoVae::EncodeBytes(vae.config(), f, h, w, {}, kThreads));
  }
}

}  // namespace
}  // namespace h3rt
