// Positions, tags and index lists: the reference against the public layouts bit for bit, and the
// production layout against the reference on random requests.
#include "tests/golden/ref64/layout.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "h3rt/model/packing/packing.h"
#include "tests/golden/fixture.h"
#include "tests/golden/inputs.h"

namespace h3rt::golden {
namespace {

// The first index whose bits differ, or -1; lengths that differ or empty lists are a difference.
template <typename A, typename B>
int64_t FirstDifference(const A& got, const B& want) {
  if (got.size() != want.size() || got.empty()) return 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::bit_cast<uint64_t>(got[i]) != std::bit_cast<uint64_t>(want[i])) {
      return static_cast<int64_t>(i);
    }
  }
  return -1;
}

std::vector<double> Rows(const ref64::Array& positions, int64_t begin, int64_t end) {
  return ref64::Slice(positions, 0, begin, end).data;
}

// The request of the fixture task: 22 frames, 9 text rows, latent canvas 6 x 4 (w x h).
ref64::LayoutInput FixtureRequest(const std::string& task) {
  ref64::LayoutInput input;
  input.text_rows = 9;
  input.latent_frames = LatentsOf(22);
  input.latent_height = 4;
  input.latent_width = 6;
  input.audio_latents = AudioLatentsOf(22);
  input.first_frame = task == "fl2va_first" || task == "fl2va_both";
  input.last_frame = task == "fl2va_last" || task == "fl2va_both";
  return input;
}

ref64::LayoutInput CanonicalRequest() {
  ref64::LayoutInput input;
  input.text_rows = 98;
  input.latent_frames = LatentsOf(124);
  input.latent_height = 768 / 16;
  input.latent_width = 1344 / 16;
  input.audio_latents = AudioLatentsOf(124);
  return input;
}

class PublicLayout : public testing::TestWithParam<std::string> {};

TEST_P(PublicLayout, EqualsTheReferenceBitForBit) {
  for (const std::string task : {"t2va", "fl2va_first", "fl2va_last", "fl2va_both"}) {
    const Fixture fixture(GetParam(), "layout.safetensors");
    const ref64::Layout layout = ref64::BuildLayout(FixtureRequest(task));
    EXPECT_EQ(FirstDifference(layout.positions.data, fixture.Get(task + ".position_ids").data), -1)
        << task;
    EXPECT_EQ(layout.tags, fixture.Ints(task + ".token_tags")) << task;
    EXPECT_EQ(layout.text_indices, fixture.Ints(task + ".text_indices")) << task;
    EXPECT_EQ(layout.audio_indices, fixture.Ints(task + ".audio_indices")) << task;
    EXPECT_EQ(layout.video_indices, fixture.Ints(task + ".video_indices")) << task;
    EXPECT_EQ(layout.condition_video_rows, fixture.Ints(task + ".num_condition_video_rows").front())
        << task;
  }
}

TEST_P(PublicLayout, OfTheCanonicalRequestEqualsTheReferenceBitForBit) {
  const Fixture fixture(GetParam(), "layout.safetensors");
  const ref64::Layout layout = ref64::BuildLayout(CanonicalRequest());
  const int64_t rows = fixture.Ints("canonical_rows").front();
  ASSERT_EQ(layout.positions.dim(0), rows);
  const auto head = Rows(layout.positions, 0, 600);
  const auto tail = Rows(layout.positions, rows - 64, rows);
  EXPECT_EQ(FirstDifference(head, fixture.Get("canonical_position_ids_head").data), -1);
  EXPECT_EQ(FirstDifference(tail, fixture.Get("canonical_position_ids_tail").data), -1);
}

INSTANTIATE_TEST_SUITE_P(Models, PublicLayout, testing::Values("nano", "mini"),
                         [](const auto& model) { return model.param; });

// Each planted fault changes bits that the comparison above looks at.
TEST(PublicLayoutFaults, AreSeen) {
  const Fixture fixture("mini", "layout.safetensors");
  const auto want = fixture.Get("t2va.position_ids").data;
  const auto tail = fixture.Get("canonical_position_ids_tail").data;
  const auto canonical_tail = [](const ref64::LayoutFaults& faults) {
    const ref64::Layout layout = ref64::BuildLayout(CanonicalRequest(), faults);
    return Rows(layout.positions, layout.positions.dim(0) - 64, layout.positions.dim(0));
  };
  ref64::LayoutFaults faults;
  faults.media_clock_off_by_one = true;
  EXPECT_NE(
      FirstDifference(ref64::BuildLayout(FixtureRequest("t2va"), faults).positions.data, want), -1);
  EXPECT_NE(FirstDifference(canonical_tail(faults), tail), -1);
  faults = {};
  faults.plain_linspace = true;
  EXPECT_NE(FirstDifference(canonical_tail(faults), tail), -1);
  faults = {};
  faults.running_clock = true;
  EXPECT_NE(FirstDifference(canonical_tail(faults), tail), -1);
}

// ---- Production -----------------------------------------------------------------------------

void ExpectSameLayout(const ref64::LayoutInput& input) {
  std::vector<RowTag> tags;
  for (int64_t i = 0; i < input.text_rows; ++i) {
    tags.push_back(i < input.vision_rows ? RowTag::kVideo : RowTag::kText);
  }
  LayoutRequest request;
  request.text_rows = input.text_rows;
  if (input.vision_rows > 0) request.text_tags = tags;
  request.latent_frames = input.latent_frames;
  request.latent_height = input.latent_height;
  request.latent_width = input.latent_width;
  request.audio_latents = input.audio_latents;
  request.first_frame = input.first_frame;
  request.last_frame = input.last_frame;
  const auto got = BuildLayout(request);
  ASSERT_TRUE(got.ok()) << got.status();
  const ref64::Layout want = ref64::BuildLayout(input);
  EXPECT_EQ(got->rows, want.positions.dim(0));
  EXPECT_EQ(FirstDifference(got->position_ids, want.positions.data), -1);
  EXPECT_EQ(std::vector<int64_t>(got->token_tags.begin(), got->token_tags.end()), want.tags);
  EXPECT_EQ(got->text_indices, want.text_indices);
  EXPECT_EQ(got->audio_indices, want.audio_indices);
  EXPECT_EQ(got->video_indices, want.video_indices);
  EXPECT_EQ(got->condition_video_rows, want.condition_video_rows);
}

TEST(ProductionLayout, EqualsTheReferenceOnRandomRequests) {
  std::mt19937_64 random(20260823);
  const auto pick = [&random](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  for (int i = 0; i < 300; ++i) {
    const int64_t frames = 17 * pick(0, 21) + 5;  // up to 362
    ref64::LayoutInput input;
    input.text_rows = pick(1, 400);
    input.vision_rows = pick(0, 1) == 0 ? 0 : pick(0, input.text_rows);
    input.latent_frames = LatentsOf(frames);
    input.latent_height = 2 * pick(1, 24);
    input.latent_width = 2 * pick(1, 42);
    input.audio_latents = AudioLatentsOf(frames);
    input.first_frame = pick(0, 1) == 1;
    input.last_frame = pick(0, 1) == 1;
    SCOPED_TRACE("frames " + std::to_string(frames) + ", text " + std::to_string(input.text_rows) +
                 ", latents " + std::to_string(input.latent_height) + "x" +
                 std::to_string(input.latent_width) + (input.first_frame ? ", first" : "") +
                 (input.last_frame ? ", last" : ""));
    ExpectSameLayout(input);
    if (testing::Test::HasFailure()) return;
  }
}

// More than 128 latent frames: the order of numpy's pairwise sum changes there.
TEST(ProductionLayout, EqualsTheReferenceOnVeryLongRequests) {
  for (const int64_t frames : {430, 447, 872, 3592}) {
    ref64::LayoutInput input;
    input.text_rows = 21;
    input.latent_frames = LatentsOf(frames);
    input.latent_height = 4;
    input.latent_width = 6;
    input.audio_latents = AudioLatentsOf(frames);
    input.first_frame = true;
    input.last_frame = true;
    SCOPED_TRACE(frames);
    ExpectSameLayout(input);
  }
}

TEST(ProductionLayout, OfTheCanonicalRequestEqualsTheReference) {
  ExpectSameLayout(CanonicalRequest());
}

}  // namespace
}  // namespace h3rt::golden
