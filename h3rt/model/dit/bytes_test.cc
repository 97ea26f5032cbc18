// What RequestBytes and AdaLnBytes promise, against the heap.
#include <utility>

#include "gtest/gtest.h"
#include "h3rt/base/count_allocations.h"
#include "h3rt/kernels/attention/attention.h"
#include "h3rt/model/dit/dit_testing.h"

namespace h3rt {
namespace {

using namespace dit_testing;  // NOLINT(google-build-using-namespace): a test

class DitBytes : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!kCountsAllocations) GTEST_SKIP() << "a sanitizer's malloc cannot be counted";
  }
  TransformerCheckpoint checkpoint_ = OpenModel("mini");
  Inputs in_ = FixtureInputs("mini");
  ThreadPool pool_{GetParam()};
  ExecContext context_{.pool = &pool_};
};
INSTANTIATE_TEST_SUITE_P(Threads, DitBytes, testing::Values(1, 2, 3));

TEST_P(DitBytes, PrepareAndForwardHoldNoMoreThanThePlanSays) {
  const Dit dit = Dit::Create(checkpoint_.config, checkpoint_.weights).value();
  const DitConfig& c = dit.config();
  const AdaLnTable table = dit.MakeAdaLn(in_.timesteps, Precision::kBf16, context_).value();
  std::vector<float> video(in_.video.size());
  std::vector<float> audio(in_.audio.size());
  const auto promised = static_cast<int64_t>(
      Dit::RequestBytes(c, in_.rows(), static_cast<int64_t>(in_.text_indices.size()), GetParam()));
  for (const bool warm : {false, true}) {  // oneDNN keeps the code that it generates
    const AllocationPeak peak;
    DitRequest request =
        dit.Prepare(in_.sequence(), Matrix(in_.text, c.text_dim), Precision::kBf16, context_)
            .value();
    ASSERT_TRUE(dit.Forward(request, table, in_.row_timestep,
                            Matrix(std::as_const(in_.video), c.video_row()),
                            Matrix(std::as_const(in_.audio), c.audio_in_channels),
                            Matrix(video, c.video_row()), Matrix(audio, c.audio_in_channels),
                            context_)
                    .ok());
    if (!warm) continue;
    EXPECT_LE(peak.bytes(), promised);
    // The tasks are a part that counts: one of them at least is beyond what the request holds, the
    // oneDNN packing of which may be half of what is allowed for.
    EXPECT_GE(peak.bytes(),
              static_cast<int64_t>(request.bytes()) + AttentionScratchBytes(c.head_dim) / 2);
  }
}

TEST_P(DitBytes, MakeAdaLnHoldsNoMoreThanThePlanSays) {
  const Dit dit = Dit::Create(checkpoint_.config, checkpoint_.weights).value();
  const std::vector<float> timesteps = {0.0f, 0.25f, 0.5f, 0.75f, 1.0f};
  for (const bool warm : {false, true}) {
    const AllocationPeak peak;
    const AdaLnTable table = dit.MakeAdaLn(timesteps, Precision::kFp32, context_).value();
    if (!warm) continue;
    EXPECT_LE(peak.bytes(), static_cast<int64_t>(Dit::AdaLnBytes(dit.config(), 5, GetParam())));
    EXPECT_GT(peak.bytes(), static_cast<int64_t>(table.bytes()));
  }
}

}  // namespace
}  // namespace h3rt
