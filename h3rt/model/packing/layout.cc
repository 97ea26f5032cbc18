// The packed sequence: positions in float64 as numpy computes them, tags, index lists.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <new>
#include <numeric>

#include "fmt/format.h"
#include "h3rt/base/check.h"
#include "h3rt/model/packing/packing.h"

namespace h3rt {
namespace {

// Media clock units a frame at 24 fps: audio runs at 40 latents a second, one unit each.
constexpr double kUnitsPerFrame = 5.0 / 3.0;
// Frames that latent j of a 17-frame clip stands for.
constexpr std::array<double, 5> kFramesOfLatent = {1.0, 4.0, 4.0, 4.0, 4.0};

double SpanOf(int64_t latent) {
  return kUnitsPerFrame * kFramesOfLatent[static_cast<size_t>(latent % 5)];
}

// numpy's sum: eight running sums up to 128 items, halves (a multiple of 8 first) beyond.
double PairwiseSum(std::span<const double> values) {
  const size_t n = values.size();
  if (n < 8) return std::accumulate(values.begin(), values.end(), 0.0);
  if (n > 128) {
    const size_t half = n / 2 - (n / 2) % 8;
    return PairwiseSum(values.first(half)) + PairwiseSum(values.subspan(half));
  }
  std::array<double, 8> r{};
  std::copy_n(values.begin(), 8, r.begin());
  size_t i = 8;
  for (; i + 8 <= n; i += 8) {
    for (size_t k = 0; k < 8; ++k) r[k] += values[i + k];
  }
  double sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
  for (; i < n; ++i) sum += values[i];
  return sum;
}

// Patch coordinates along an axis of `extent` latents in a frame of `area` = h * w latents: numpy's
// linspace without its end point, whose step is (stop - start) / n with stop already rounded.
std::vector<double> AxisCoordinates(int64_t extent, double area) {
  const int64_t points = extent / 2;
  const double ratio = static_cast<double>(extent) / std::sqrt(area);
  const double left = (1.0 - ratio) / 2.0;
  const double step = ((left + ratio) - left) / static_cast<double>(points);
  std::vector<double> axis(static_cast<size_t>(points));
  for (size_t k = 0; k < axis.size(); ++k) {
    axis[k] = (static_cast<double>(k) * step + left) * 32.0;
  }
  return axis;
}

absl::Status BadCount(const char* what, int64_t got, const char* wanted) {
  return InvalidArgument(
      {.what = what, .got = fmt::format("{}", got), .wanted = wanted, .where = "layout"});
}

absl::Status CheckRequest(const LayoutRequest& r) {
  if (r.text_rows < 0 || r.text_rows > kMaxRows) {
    return BadCount("text rows", r.text_rows, "0 to 2^31");
  }
  if (r.latent_frames < 0 || r.latent_frames > kMaxRows) {
    return BadCount("latent frames", r.latent_frames, "0 to 2^31");
  }
  if (r.audio_latents < 0 || r.audio_latents > kMaxRows) {
    return BadCount("audio latents", r.audio_latents, "0 to 2^31");
  }
  for (const int64_t extent : {r.latent_height, r.latent_width}) {
    if (extent <= 0 || extent > kMaxRows || extent % 2 != 0) {
      return BadCount("latent height or width", extent, "a positive even number up to 2^31");
    }
  }
  if (!r.text_tags.empty()) {
    if (r.text_tags.size() != static_cast<size_t>(r.text_rows)) {
      return BadCount("tags of the text", static_cast<int64_t>(r.text_tags.size()),
                      "one a text row");
    }
    for (const RowTag tag : r.text_tags) {
      if (tag != RowTag::kText && tag != RowTag::kVideo) {
        return BadCount("tag of a text row", static_cast<int64_t>(tag), "1 (text) or 0 (vision)");
      }
    }
  }
  return absl::OkStatus();
}

// Every factor is at most 2^31, so one product is exact; the next is checked by division.
absl::StatusOr<int64_t> CountRows(const LayoutRequest& r) {
  const int64_t per_frame = (r.latent_height / 2) * (r.latent_width / 2);
  const int64_t frames =
      r.latent_frames + static_cast<int64_t>(r.first_frame) + static_cast<int64_t>(r.last_frame);
  const bool fits = frames <= kMaxRows / per_frame;
  const int64_t rows = fits ? r.text_rows + 2 * r.audio_latents + frames * per_frame : kMaxRows + 1;
  if (rows > kMaxRows) {
    return InvalidArgument({.what = "the packed sequence is too long",
                            .got = fmt::format("{} frames of {} rows, {} audio latents, {} text "
                                               "rows",
                                               frames, per_frame, r.audio_latents, r.text_rows),
                            .wanted = "at most 2^31 rows",
                            .where = "layout"});
  }
  return rows;
}

// Appends rows one behind the other.
class Builder {
 public:
  Builder(PackedLayout& layout, int64_t rows) : layout_(layout) {
    layout_.rows = rows;
    layout_.position_ids.resize(static_cast<size_t>(3 * rows));
    layout_.token_tags.resize(static_cast<size_t>(rows));
  }

  void Row(double t, double h, double w, RowTag tag) {
    double* position = layout_.position_ids.data() + 3 * next_;
    position[0] = t;
    position[1] = h;
    position[2] = w;
    layout_.token_tags[static_cast<size_t>(next_)] = static_cast<int32_t>(tag);
    ++next_;
  }

  void VideoFrame(double t, std::span<const double> ys, std::span<const double> xs) {
    for (const double y : ys) {
      for (const double x : xs) {
        layout_.video_indices.push_back(next_);
        Row(t, y, x, RowTag::kVideo);
      }
    }
  }

  int64_t next() const { return next_; }

 private:
  PackedLayout& layout_;
  int64_t next_ = 0;
};

PackedLayout Fill(const LayoutRequest& r, int64_t rows) {
  const double area = static_cast<double>(r.latent_height) * static_cast<double>(r.latent_width);
  const std::vector<double> ys = AxisCoordinates(r.latent_height, area);
  const std::vector<double> xs = AxisCoordinates(r.latent_width, area);
  const auto origin = static_cast<double>(r.text_rows);

  PackedLayout layout;
  Builder builder(layout, rows);
  layout.text_indices.reserve(static_cast<size_t>(r.text_rows));
  layout.audio_indices.reserve(static_cast<size_t>(2 * r.audio_latents));
  layout.video_indices.reserve(static_cast<size_t>(rows - r.text_rows - 2 * r.audio_latents));
  for (int64_t i = 0; i < r.text_rows; ++i) {
    layout.text_indices.push_back(i);
    const RowTag tag = r.text_tags.empty() ? RowTag::kText : r.text_tags[static_cast<size_t>(i)];
    builder.Row(static_cast<double>(i), 0.0, 0.0, tag);
  }
  if (r.first_frame) builder.VideoFrame(origin, ys, xs);
  if (r.last_frame) {
    std::vector<double> spans(static_cast<size_t>(r.latent_frames));
    for (size_t k = 0; k < spans.size(); ++k) spans[k] = SpanOf(static_cast<int64_t>(k));
    builder.VideoFrame(origin + PairwiseSum(spans) - kUnitsPerFrame, ys, xs);
  }
  layout.condition_video_rows = static_cast<int64_t>(layout.video_indices.size());
  for (const double w : {xs.front(), xs.back()}) {  // left, right
    for (int64_t i = 0; i < r.audio_latents; ++i) {
      layout.audio_indices.push_back(builder.next());
      builder.Row(origin + static_cast<double>(i), 0.0, w, RowTag::kAudio);
    }
  }
  double clock = 0.0;  // the running sum starts at 0 and the origin is added once (C12)
  for (int64_t k = 0; k < r.latent_frames; ++k) {
    builder.VideoFrame(origin + clock, ys, xs);
    clock += SpanOf(k);
  }
  H3RT_CHECK(builder.next() == rows);
  return layout;
}

}  // namespace

absl::StatusOr<PackedLayout> BuildLayout(const LayoutRequest& request) {
  H3RT_RETURN_IF_ERROR(CheckRequest(request));
  H3RT_ASSIGN_OR_RETURN(const int64_t rows, CountRows(request));
  try {
    return Fill(request, rows);
  } catch (const std::bad_alloc&) {
    return ResourceExhausted({.what = "no memory for the packed sequence",
                              .got = fmt::format("{} rows", rows),
                              .wanted = "",
                              .where = "layout"});
  }
}

RowTimesteps BuildRowTimesteps(const PackedLayout& layout, float t_video, float t_audio) {
  constexpr float kConditionTimestep = 0.999f;
  const float t_condition = std::max(t_video, kConditionTimestep);
  const auto video_rows = static_cast<int64_t>(layout.video_indices.size());
  const bool has_condition = layout.condition_video_rows > 0;
  const bool has_video = !layout.text_indices.empty() || video_rows > layout.condition_video_rows;

  RowTimesteps result;
  std::vector<float>& distinct = result.timesteps;
  if (has_video) distinct.push_back(t_video);
  if (has_condition) distinct.push_back(t_condition);
  if (!layout.audio_indices.empty()) distinct.push_back(t_audio);
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());

  const auto index_of = [&distinct](float t) {
    return static_cast<int32_t>(std::lower_bound(distinct.begin(), distinct.end(), t) -
                                distinct.begin());
  };
  result.index.assign(static_cast<size_t>(layout.rows), index_of(t_video));
  const int32_t condition = index_of(t_condition);
  for (int64_t i = 0; i < layout.condition_video_rows; ++i) {
    const int64_t row = layout.video_indices[static_cast<size_t>(i)];
    result.index[static_cast<size_t>(row)] = condition;
  }
  const int32_t audio = index_of(t_audio);
  for (const int64_t row : layout.audio_indices) result.index[static_cast<size_t>(row)] = audio;
  return result;
}

}  // namespace h3rt
