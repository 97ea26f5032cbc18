// Packing against the public fixtures, byte for byte, and the rules for what a person may ask.
#include "h3rt/model/packing/packing.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "h3rt/base/check.h"
#include "h3rt/io/safetensors.h"

namespace h3rt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

SafetensorsFile Open(const std::string& file) {
  return SafetensorsFile::Open(H3RT_TEST_DATA "/h3/" + file).value();
}

template <typename T>
std::vector<T> Values(const SafetensorsFile& file, const std::string& key) {
  const ConstTensorView view = file.Get(key).value();
  H3RT_CHECK(HoldsDType<T>(view.dtype()));
  std::vector<T> values(static_cast<size_t>(view.elements()));
  std::memcpy(values.data(), view.data(), values.size() * sizeof(T));
  return values;
}

template <typename T>
bool SameBytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

LayoutRequest FixtureRequest() {
  return {.text_rows = 9,
          .latent_frames = LatentFrames(22),
          .latent_height = 4,
          .latent_width = 6,
          .audio_latents = AudioLatents(22)};
}

// ---- Geometry ----------------------------------------------------------------------------------

TEST(Frames, OnlySeventeenKPlusFiveIsLegal) {
  for (const int64_t legal : {5, 22, 124, 345, 362}) {
    EXPECT_TRUE(CheckFrames(legal).ok()) << legal;
  }
  for (const int64_t bad : {-17, -12, 0, 1, 4, 6, 121, 122, 123, 125, 346, 363, 3600}) {
    EXPECT_EQ(CheckFrames(bad).code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(Frames, TheErrorNamesTheNearestLegalCounts) {
  const std::pair<int64_t, const char*> cases[] = {{-9, "nearest 5 "},
                                                   {0, "nearest 5 "},
                                                   {1, "nearest 5 "},
                                                   {4, "nearest 5 "},
                                                   {6, "nearest 5 or 22 "},
                                                   {121, "nearest 107 or 124 "},
                                                   {122, "nearest 107 or 124 "},
                                                   {123, "nearest 107 or 124 "},
                                                   {125, "nearest 124 or 141 "},
                                                   {346, "nearest 345 or 362 "},
                                                   {363, "nearest 362 or 379 "},
                                                   {3600, "nearest 3592 or 3609 "}};
  for (const auto& [frames, nearest] : cases) {
    const std::string message = MessageOf(CheckFrames(frames));
    EXPECT_THAT(message, HasSubstr(nearest));
    EXPECT_THAT(message, HasSubstr("17k+5"));
    EXPECT_THAT(message, HasSubstr("got " + std::to_string(frames)));
  }
}

TEST(Frames, ExtremesAreRefusedWithALegalNeighbour) {
  for (const int64_t huge : {std::numeric_limits<int64_t>::max(), kMaxFrames + 17}) {
    EXPECT_THAT(MessageOf(CheckFrames(huge)), HasSubstr("nearest 2147483644 "));
  }
  EXPECT_TRUE(CheckFrames(2147483644).ok());
  EXPECT_THAT(MessageOf(CheckFrames(kMaxFrames)), HasSubstr("nearest 2147483644 "));
  EXPECT_FALSE(CheckFrames(std::numeric_limits<int64_t>::min()).ok());
}

TEST(Frames, SecondsSnapUpToTheNextLegalCount) {
  EXPECT_EQ(FramesOfSeconds(5.0).value(), 124);
  EXPECT_EQ(FramesOfSeconds(15.0).value(), 362);
  EXPECT_EQ(FramesOfSeconds(15.04).value(), 362);
  EXPECT_EQ(FramesOfSeconds(0.001).value(), 5);
  EXPECT_EQ(FramesOfSeconds(3600.0).value(), 86416);
}

TEST(Frames, SecondsThatAreExactlyALegalCountStayThere) {
  for (int64_t frames = 5; frames < 20000; frames += 17) {
    const double seconds = static_cast<double>(frames) / 24.0;
    ASSERT_EQ(FramesOfSeconds(seconds).value(), frames);
    ASSERT_EQ(FramesOfSeconds(std::nextafter(seconds, 1e9)).value(), frames + 17);
  }
}

TEST(Frames, SecondsThatMakeNoSenseAreRefused) {
  for (const double bad : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity(), 9e7, 1e300}) {
    EXPECT_EQ(FramesOfSeconds(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
  EXPECT_EQ(FramesOfSeconds(2147483644.0 / 24.0).value(), 2147483644);
  EXPECT_FALSE(FramesOfSeconds(2147483645.0 / 24.0).ok());
}

TEST(Frames, LatentsAndAudioFollowTheTable) {
  const int64_t table[][3] = {{5, 2, 8},      {22, 7, 37},     {124, 37, 207}, {141, 42, 235},
                              {243, 72, 405}, {345, 102, 575}, {362, 107, 603}};
  for (const auto& [frames, latents, audio] : table) {
    EXPECT_EQ(LatentFrames(frames), latents);
    EXPECT_EQ(AudioLatents(frames), audio);
    EXPECT_EQ(AudioLatents(frames), std::llround(static_cast<double>(frames) / 24.0 * 40.0));
  }
}

TEST(CanvasRule, MultiplesOfThirtyTwoFromThirtyTwoUp) {
  for (const auto& [w, h] : {std::pair{32, 32}, {864, 480}, {1344, 768}, {1376, 768}}) {
    EXPECT_TRUE(CheckCanvas(w, h).ok()) << w << "x" << h;
  }
  const std::tuple<int64_t, int64_t, const char*> bad[] = {
      {1056, 592, "nearest width 1056, nearest height 576 or 608"},
      {1345, 767, "nearest width 1344 or 1376, nearest height 736 or 768"},
      {31, 32, "nearest width 32, nearest height 32"},
      {0, 0, "nearest width 32, nearest height 32"},
      {-64, 64, "nearest width 32, nearest height 64"},
      {65568, 32, "nearest width 65536, nearest height 32"}};
  for (const auto& [w, h, nearest] : bad) {
    const absl::Status status = CheckCanvas(w, h);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(MessageOf(status), HasSubstr(nearest));
  }
}

TEST(CanvasRule, AspectRatiosGiveTheReleasedSizes) {
  EXPECT_EQ(CanvasOfAspect(16.0 / 9.0).value(), (Canvas{1344, 768}));
  EXPECT_EQ(CanvasOfAspect(9.0 / 16.0).value(), (Canvas{768, 1344}));
  EXPECT_EQ(CanvasOfAspect(1.0).value(), (Canvas{768, 768}));
  EXPECT_EQ(CanvasOfAspect(4.0).value(), (Canvas{2016, 512}));
  EXPECT_EQ(CanvasOfAspect(0.25).value(), (Canvas{512, 2016}));
}

TEST(CanvasRule, HalvesRoundToEven) {
  EXPECT_EQ(CanvasOfAspect(24.5 / 24.0).value(), (Canvas{768, 768}));  // 24.5 cells -> 24
  EXPECT_EQ(CanvasOfAspect(25.5 / 24.0).value(), (Canvas{832, 768}));  // 25.5 cells -> 26
}

TEST(CanvasRule, AspectRatiosOutsideOneToFourAreRefused) {
  for (const double bad : {0.0, -1.0, 0.2499, 4.0001, std::nan("")}) {
    EXPECT_EQ(CanvasOfAspect(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

// ---- Layout ------------------------------------------------------------------------------------

class LayoutOfFixture : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, LayoutOfFixture, testing::Values("nano", "mini"));

void ExpectLayout(const SafetensorsFile& file, const std::string& task,
                  const PackedLayout& layout) {
  EXPECT_TRUE(SameBytes(layout.position_ids, Values<double>(file, task + ".position_ids"))) << task;
  const std::vector<int64_t> tags(layout.token_tags.begin(), layout.token_tags.end());
  EXPECT_EQ(tags, Values<int64_t>(file, task + ".token_tags")) << task;
  EXPECT_EQ(layout.text_indices, Values<int64_t>(file, task + ".text_indices")) << task;
  EXPECT_EQ(layout.audio_indices, Values<int64_t>(file, task + ".audio_indices")) << task;
  EXPECT_EQ(layout.video_indices, Values<int64_t>(file, task + ".video_indices")) << task;
  EXPECT_EQ(layout.condition_video_rows,
            Values<int64_t>(file, task + ".num_condition_video_rows").at(0))
      << task;
  EXPECT_EQ(layout.rows, static_cast<int64_t>(tags.size())) << task;
}

TEST_P(LayoutOfFixture, EveryTaskIsEqualInBits) {
  const SafetensorsFile file = Open(std::string(GetParam()) + "/layout.safetensors");
  const std::tuple<const char*, bool, bool> tasks[] = {{"t2va", false, false},
                                                       {"fl2va_first", true, false},
                                                       {"fl2va_last", false, true},
                                                       {"fl2va_both", true, true}};
  for (const auto& [task, first, last] : tasks) {
    LayoutRequest request = FixtureRequest();
    request.first_frame = first;
    request.last_frame = last;
    ExpectLayout(file, task, BuildLayout(request).value());
  }
}

TEST_P(LayoutOfFixture, CanonicalHeadAndTailAreEqualInBits) {
  const SafetensorsFile file = Open(std::string(GetParam()) + "/layout.safetensors");
  const PackedLayout layout = BuildLayout({.text_rows = 98,
                                           .latent_frames = LatentFrames(124),
                                           .latent_height = 48,
                                           .latent_width = 84,
                                           .audio_latents = AudioLatents(124)})
                                  .value();
  EXPECT_EQ(layout.rows, 37808);
  EXPECT_EQ(layout.rows, Values<int64_t>(file, "canonical_rows").at(0));
  const std::vector<double> head = Values<double>(file, "canonical_position_ids_head");
  const std::vector<double> tail = Values<double>(file, "canonical_position_ids_tail");
  ASSERT_EQ(head.size(), 3u * 600u);
  ASSERT_EQ(tail.size(), 3u * 64u);
  EXPECT_EQ(std::memcmp(head.data(), layout.position_ids.data(), head.size() * sizeof(double)), 0);
  EXPECT_EQ(std::memcmp(tail.data(), layout.position_ids.data() + 3 * (37808 - 64),
                        tail.size() * sizeof(double)),
            0);
}

TEST(Layout, ReleasedSequenceLengths) {
  const auto rows = [](int64_t w, int64_t h, int64_t frames, bool first, bool last) {
    return BuildLayout({.text_rows = 0,
                        .latent_frames = LatentFrames(frames),
                        .latent_height = h / 16,
                        .latent_width = w / 16,
                        .audio_latents = AudioLatents(frames),
                        .first_frame = first,
                        .last_frame = last})
        .value()
        .rows;
  };
  EXPECT_EQ(rows(1344, 768, 124, false, false), 37710);
  EXPECT_EQ(rows(1344, 768, 124, true, false), 37710 + 1008);
  EXPECT_EQ(rows(1344, 768, 124, true, true), 37710 + 2016);
  EXPECT_EQ(rows(1344, 768, 362, false, false), 109062);
  EXPECT_EQ(rows(960, 544, 124, false, false), 19284);
  EXPECT_EQ(rows(864, 480, 124, false, false), 15399);
}

// The spec states these doubles (sections 3.4 and C12).
TEST(Layout, ClockIsARunningSumFromZero) {
  const PackedLayout layout = BuildLayout({.text_rows = 98,
                                           .latent_frames = 37,
                                           .latent_height = 48,
                                           .latent_width = 84,
                                           .last_frame = true})
                                  .value();
  const auto t_of = [&](int64_t video_row) {
    const int64_t row = layout.video_indices[static_cast<size_t>(video_row)];
    return layout.position_ids[static_cast<size_t>(3 * row)];
  };
  const int64_t target = layout.condition_video_rows;
  ASSERT_EQ(target, 1008);
  EXPECT_EQ(t_of(target + 36 * 1008), 98.0 + 199.99999999999991);
  EXPECT_NEAR(t_of(0), 98.0 + 205.0, 1e-12);  // the last keyframe
  EXPECT_EQ(layout.position_ids[static_cast<size_t>(3 * 98 + 1)], 3.9051368637047297);
  EXPECT_EQ(layout.position_ids[static_cast<size_t>(3 * 98 + 2)], -5.166010488516722);
}

TEST(Layout, VisionRowsOfTheTextKeepTheirTag) {
  std::vector<RowTag> tags(9, RowTag::kText);
  for (size_t i = 2; i < 6; ++i) tags[i] = RowTag::kVideo;
  LayoutRequest request = FixtureRequest();
  request.text_tags = tags;
  const PackedLayout layout = BuildLayout(request).value();
  EXPECT_THAT(std::vector<int32_t>(layout.token_tags.begin(), layout.token_tags.begin() + 9),
              ElementsAre(1, 1, 0, 0, 0, 0, 1, 1, 1));
  EXPECT_EQ(layout.text_indices.size(), 9u);
  // A vision row of the text is not a video row.
  EXPECT_EQ(std::count(layout.video_indices.begin(), layout.video_indices.end(), 3), 0);
}

TEST(Layout, BadRequestsAreRefused) {
  const auto code = [](const auto& change) {
    LayoutRequest request = FixtureRequest();
    change(request);
    return BuildLayout(request).status().code();
  };
  const auto bad = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code([](LayoutRequest& r) { r.latent_height = 5; }), bad);
  EXPECT_EQ(code([](LayoutRequest& r) { r.latent_width = 0; }), bad);
  EXPECT_EQ(code([](LayoutRequest& r) { r.latent_width = -2; }), bad);
  EXPECT_EQ(code([](LayoutRequest& r) { r.text_rows = -1; }), bad);
  EXPECT_EQ(code([](LayoutRequest& r) { r.latent_frames = -1; }), bad);
  EXPECT_EQ(code([](LayoutRequest& r) { r.audio_latents = -1; }), bad);
  EXPECT_EQ(code([](LayoutRequest& r) { r.audio_latents = int64_t{1} << 30; }), bad);
  EXPECT_EQ(code([](LayoutRequest& r) { r.latent_frames = kMaxRows; }), bad);
  EXPECT_EQ(code([](LayoutRequest& r) { r.latent_width = int64_t{1} << 62; }), bad);
  EXPECT_EQ(code([](LayoutRequest& r) {
              r.latent_width = kMaxRows;
              r.latent_height = kMaxRows;
            }),
            bad);
  const std::vector<RowTag> eight(8, RowTag::kText);
  EXPECT_EQ(code([&](LayoutRequest& r) { r.text_tags = eight; }), bad);
  const std::vector<RowTag> audio(9, RowTag::kAudio);
  EXPECT_EQ(code([&](LayoutRequest& r) { r.text_tags = audio; }), bad);
}

// ---- Row timesteps -----------------------------------------------------------------------------

TEST_P(LayoutOfFixture, RowTimestepsOfTheTrajectoryAreEqual) {
  const SafetensorsFile steps = Open(std::string(GetParam()) + "/trajectory_f32.safetensors");
  const SafetensorsFile grid = Open(std::string(GetParam()) + "/schedule.safetensors");
  const std::vector<float> video = Values<float>(grid, "video.5.timesteps");
  const std::vector<float> audio = Values<float>(grid, "audio.5.timesteps");
  const PackedLayout layout = BuildLayout(FixtureRequest()).value();
  ASSERT_EQ(video.size(), 4u);
  for (size_t step = 0; step < 4; ++step) {
    const std::string prefix = "step" + std::to_string(step);
    const RowTimesteps plan = BuildRowTimesteps(layout, video[step], audio[step]);
    EXPECT_TRUE(SameBytes(plan.timesteps, Values<float>(steps, prefix + ".timestep"))) << step;
    const std::vector<int64_t> index(plan.index.begin(), plan.index.end());
    EXPECT_EQ(index, Values<int64_t>(steps, prefix + ".timestep_indices")) << step;
  }
}

TEST(RowPlan, ConditionRowsStandNearTheData) {
  LayoutRequest request = FixtureRequest();
  request.first_frame = true;
  const PackedLayout layout = BuildLayout(request).value();
  const RowTimesteps plan = BuildRowTimesteps(layout, 0.25f, 0.5f);
  EXPECT_THAT(plan.timesteps, ElementsAre(0.25f, 0.5f, 0.999f));
  EXPECT_EQ(plan.index[0], 0);                                                 // text
  EXPECT_EQ(plan.index[static_cast<size_t>(layout.video_indices[0])], 2);      // condition
  EXPECT_EQ(plan.index[static_cast<size_t>(layout.audio_indices[0])], 1);      // audio
  EXPECT_EQ(plan.index[static_cast<size_t>(layout.video_indices.back())], 0);  // target
  // Beyond 0.999 a condition row has the timestep of the target rows.
  EXPECT_THAT(BuildRowTimesteps(layout, 0.9995f, 0.5f).timesteps, ElementsAre(0.5f, 0.9995f));
  EXPECT_THAT(BuildRowTimesteps(layout, 0.0f, 0.0f).timesteps, ElementsAre(0.0f, 0.999f));
}

TEST(RowPlan, OneTimestepAtTheStartOfATextToVideoRun) {
  const PackedLayout layout = BuildLayout(FixtureRequest()).value();
  EXPECT_THAT(BuildRowTimesteps(layout, 0.0f, 0.0f).timesteps, ElementsAre(0.0f));
}

// ---- Patches -----------------------------------------------------------------------------------

TEST(Patches, RowsAreTimeHeightWidthAndChannelsFirstInside) {
  constexpr int64_t kC = 3;
  constexpr int64_t kT = 2;
  constexpr int64_t kH = 4;
  constexpr int64_t kW = 6;
  std::vector<float> latents(kC * kT * kH * kW);
  std::iota(latents.begin(), latents.end(), 0.0f);
  std::vector<float> rows(latents.size(), -1.0f);
  Patchify(latents, kC, kT, kH, kW, rows);
  for (int64_t t = 0; t < kT; ++t) {
    for (int64_t y = 0; y < kH; ++y) {
      for (int64_t x = 0; x < kW; ++x) {
        for (int64_t c = 0; c < kC; ++c) {
          const int64_t row = (t * (kH / 2) + y / 2) * (kW / 2) + x / 2;
          const int64_t element = c * 4 + (y % 2) * 2 + x % 2;
          EXPECT_EQ(rows[static_cast<size_t>(row * 4 * kC + element)],
                    latents[static_cast<size_t>(((c * kT + t) * kH + y) * kW + x)]);
        }
      }
    }
  }
  std::vector<float> back(latents.size(), -1.0f);
  Unpatchify(rows, kC, kT, kH, kW, back);
  EXPECT_EQ(back, latents);
}

TEST(Patches, AudioRowsAreLeftThenRight) {
  const std::vector<float> latents = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};  // [2, 2, 3]
  std::vector<float> rows(latents.size());
  AudioLatentsToRows(latents, 2, 3, rows);
  EXPECT_THAT(rows, ElementsAre(1, 4, 2, 5, 3, 6, 7, 10, 8, 11, 9, 12));
  std::vector<float> back(latents.size());
  AudioRowsToLatents(rows, 2, 3, back);
  EXPECT_EQ(back, latents);
}

}  // namespace
}  // namespace h3rt
