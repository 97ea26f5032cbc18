#include "tests/golden/ref64/layout.h"

#include <cmath>
#include <utility>

namespace h3rt::ref64 {
namespace {

// Frames of 24 a second on a clock of 40 audio latents a second; a latent spans 1, 4, 4, 4, 4.
std::vector<double> Spans(int64_t latent_frames) {
  std::vector<double> spans;
  for (int64_t j = 0; j < latent_frames; ++j) spans.push_back(5.0 / 3.0 * (j % 5 == 0 ? 1.0 : 4.0));
  return spans;
}

// The order in which numpy adds: eight lanes up to 128 items, halves above.
double PairwiseSum(const double* x, int64_t n) {
  if (n < 8) {
    double sum = 0.0;
    for (int64_t i = 0; i < n; ++i) sum += x[i];
    return sum;
  }
  if (n <= 128) {
    double lane[8] = {x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]};
    int64_t i = 8;
    for (; i < n - n % 8; i += 8) {
      for (int64_t j = 0; j < 8; ++j) lane[j] += x[i + j];
    }
    double sum =
        ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
    for (; i < n; ++i) sum += x[i];
    return sum;
  }
  const int64_t half = n / 2 - n / 2 % 8;
  return PairwiseSum(x, half) + PairwiseSum(x + half, n - half);
}

// The n = extent / 2 coordinates of one spatial axis of a frame of `area` latents.
std::vector<double> Axis(int64_t extent, int64_t area, const LayoutFaults& faults) {
  const int64_t n = extent / 2;
  const double r = static_cast<double>(extent) / std::sqrt(static_cast<double>(area));
  const double left = (1.0 - r) / 2.0;
  const double span = faults.plain_linspace ? r : (left + r) - left;
  const double step = span / static_cast<double>(n);
  std::vector<double> points;
  for (int64_t k = 0; k < n; ++k) {
    points.push_back((static_cast<double>(k) * step + left) * 32.0);
  }
  return points;
}

struct Builder {
  std::vector<double> rows;
  Layout layout;

  int64_t Add(double t, double h, double w, int64_t tag) {
    rows.insert(rows.end(), {t, h, w});
    layout.tags.push_back(tag);
    return static_cast<int64_t>(layout.tags.size()) - 1;
  }
  void AddFrame(double t, const std::vector<double>& ys, const std::vector<double>& xs) {
    for (const double y : ys) {
      for (const double x : xs) layout.video_indices.push_back(Add(t, y, x, 0));
    }
  }
};

}  // namespace

Layout BuildLayout(const LayoutInput& input, const LayoutFaults& faults) {
  const int64_t area = input.latent_height * input.latent_width;
  const std::vector<double> ys = Axis(input.latent_height, area, faults);
  const std::vector<double> xs = Axis(input.latent_width, area, faults);
  const std::vector<double> spans = Spans(input.latent_frames);
  const double origin =
      static_cast<double>(input.text_rows) - (faults.media_clock_off_by_one ? 1.0 : 0.0);

  Builder b;
  for (int64_t i = 0; i < input.text_rows; ++i) {
    const int64_t tag = i < input.vision_rows ? 0 : 1;
    b.layout.text_indices.push_back(b.Add(static_cast<double>(i), 0.0, 0.0, tag));
  }
  if (input.first_frame) b.AddFrame(origin, ys, xs);
  if (input.last_frame) {
    const double total = PairwiseSum(spans.data(), input.latent_frames);
    b.AddFrame(origin + total - 5.0 / 3.0, ys, xs);
  }
  b.layout.condition_video_rows = static_cast<int64_t>(b.layout.video_indices.size());
  for (const double w : {xs.front(), xs.back()}) {
    for (int64_t i = 0; i < input.audio_latents; ++i) {
      b.layout.audio_indices.push_back(b.Add(origin + static_cast<double>(i), 0.0, w, 2));
    }
  }
  double clock = faults.running_clock ? origin : 0.0;
  for (int64_t k = 0; k < input.latent_frames; ++k) {
    b.AddFrame(faults.running_clock ? clock : origin + clock, ys, xs);
    clock += spans[static_cast<size_t>(k)];
  }
  b.layout.positions = Array({static_cast<int64_t>(b.layout.tags.size()), 3});
  b.layout.positions.data = std::move(b.rows);
  return b.layout;
}

}  // namespace h3rt::ref64
