#include "h3rt/kernels/conv/onednn/gather.h"

#include <algorithm>

namespace h3rt {
namespace {

// to[i] = x[first + i * stride] for output columns, zero outside [0, width).
void GatherLine(const float* x, int64_t width, int64_t first, int64_t stride, int64_t n,
                float* to) {
  // Columns i with 0 <= first + i * stride < width are [low, high).
  const int64_t low = first >= 0 ? 0 : std::min((-first + stride - 1) / stride, n);
  const int64_t high =
      first >= width ? low : std::clamp((width - first + stride - 1) / stride, low, n);
  std::fill(to, to + low, 0.0f);
  if (stride == 1) {
    if (high > low) std::copy(x + first + low, x + first + high, to + low);
  } else {
    for (int64_t i = low; i < high; ++i) to[i] = x[first + i * stride];
  }
  std::fill(to + high, to + n, 0.0f);
}

}  // namespace

void GatherTile(const Conv3dParams& params, int64_t row_begin, int64_t row_end, int64_t begin,
                int64_t end, float* to, int64_t ld) {
  const auto& x = params.x;
  const auto& w = params.weight;
  const int64_t oh = params.y.dim(2);
  const int64_t ow = params.y.dim(3);
  const int64_t ot_begin = begin / (ow * oh);
  const int64_t oh_begin = begin / ow % oh;
  const int64_t ow_begin = begin % ow;
  for (int64_t r = row_begin; r < row_end; ++r) {
    const int64_t kw = r % w.dim(4);
    const int64_t kh = r / w.dim(4) % w.dim(3);
    const int64_t kt = r / (w.dim(4) * w.dim(3)) % w.dim(2);
    const float* channel =
        x.as<float>() + r / (w.dim(4) * w.dim(3) * w.dim(2)) * x.dim(1) * x.dim(2) * x.dim(3);
    float* line = to + (r - row_begin) * ld;
    int64_t t = ot_begin * params.stride[0] + kt * params.dilation[0] - params.pad_begin[0];
    int64_t row = oh_begin;
    int64_t column = ow_begin;
    for (int64_t left = end - begin; left > 0;) {
      const int64_t n = std::min(ow - column, left);
      const int64_t h = row * params.stride[1] + kh * params.dilation[1] - params.pad_begin[1];
      if (t < 0 || t >= x.dim(1) || h < 0 || h >= x.dim(2)) {
        std::fill(line, line + n, 0.0f);
      } else {
        GatherLine(channel + (t * x.dim(2) + h) * x.dim(3), x.dim(3),
                   column * params.stride[2] + kw * params.dilation[2] - params.pad_begin[2],
                   params.stride[2], n, line);
      }
      line += n;
      left -= n;
      column = 0;
      if (++row == oh) {
        row = 0;
        t += params.stride[0];
      }
    }
  }
}

}  // namespace h3rt
