#include "h3rt/kernels/conv/onednn/conv_onednn.h"

#include <algorithm>

#include "h3rt/cpu/convert.h"
#include "h3rt/cpu/multiversion.h"
#include "h3rt/cpu/scratch.h"
#include "h3rt/cpu/sgemm.h"
#include "h3rt/kernels/conv/onednn/gather.h"

namespace h3rt {
namespace {

// Gathered rows a product sums over. Products are summed 32 at a time and the partial sums then
// added: the error of a sum over thousands of products falls by a third (audio decoder of the mini
// model: 2.7e-6 against float64 instead of 4.1e-6 with 1024), and the time does not change
// measurably.
constexpr int64_t kDepthTile = 32;
// Output channels of a tile.
constexpr int64_t kChannelTile = 512;
constexpr int64_t kTransposedTile = 1024;

H3RT_MULTIVERSION void AddConstant(float value, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] += value;
}

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Output positions of a tile: enough tiles to share out, few enough to gather seldom. A function of
// the problem alone.
int64_t PositionTile(int64_t positions) {
  const int64_t most = positions >= 8192 ? 512 : 256;
  return CeilDiv(CeilDiv(positions, CeilDiv(positions, most)), 16) * 16;
}

struct ConvTile {
  int64_t channel;
  int64_t channels;
  int64_t begin;  // flat output positions
  int64_t end;
};

absl::Status RunTile(const Conv3dParams& params, const ConvTile& t, float* gathered,
                     float* weights) {
  const int64_t depth = params.weight.elements() / params.weight.dim(0);
  const int64_t positions = params.y.elements() / params.y.dim(0);
  const int64_t n = t.end - t.begin;
  const bool widen = params.weight.dtype() != DType::kF32;
  float* y = params.y.as<float>() + t.channel * positions + t.begin;
  for (int64_t k = 0; k == 0 || k < depth; k += kDepthTile) {
    const int64_t rows = std::min(kDepthTile, depth - k);
    GatherTile(params, k, k + rows, t.begin, t.end, gathered, n);
    const float* a = nullptr;
    if (widen) {
      for (int64_t c = 0; c < t.channels; ++c) {
        WidenRow(params.weight, (t.channel + c) * depth + k, rows, weights + c * rows);
      }
      a = weights;
    } else {
      a = params.weight.as<float>() + t.channel * depth + k;
    }
    H3RT_RETURN_IF_ERROR(Sgemm({.m = t.channels,
                                .n = n,
                                .k = rows,
                                .a = a,
                                .lda = widen ? rows : depth,
                                .b = gathered,
                                .ldb = n,
                                .beta = k == 0 ? 0.0f : 1.0f,
                                .c = y,
                                .ldc = positions}));
  }
  if (params.bias.is_null()) return absl::OkStatus();
  for (int64_t c = 0; c < t.channels; ++c) {
    const auto bias = static_cast<float>(LoadElement(params.bias, t.channel + c));
    AddConstant(bias, n, y + c * positions);
  }
  return absl::OkStatus();
}

// Outputs [begin, end) of every channel: the products of all taps with the inputs that reach them,
// then a sum of at most ceil(kernel / stride) of them each.
absl::Status RunTransposedTile(const ConvTranspose1dParams& params, const float* weights,
                               int64_t begin, int64_t end) {
  const int64_t ci = params.x.dim(0);
  const int64_t n = params.x.dim(1);
  const int64_t co = params.weight.dim(1);
  const int64_t kernel = params.weight.dim(2);
  const int64_t length = params.y.dim(1);
  const int64_t first = std::clamp<int64_t>(
      CeilDiv(std::max<int64_t>(begin + params.pad - kernel + 1, 0), params.stride), 0, n - 1);
  const int64_t last = std::clamp<int64_t>((end - 1 + params.pad) / params.stride, first, n - 1);
  const int64_t inputs = last - first + 1;
  H3RT_ASSIGN_OR_RETURN(Scratch scratch, Scratch::Create(co * kernel * inputs));
  float* products = scratch.data();  // [co * kernel, inputs]
  H3RT_RETURN_IF_ERROR(Sgemm({.trans_a = true,
                              .m = co * kernel,
                              .n = inputs,
                              .k = ci,
                              .a = weights,
                              .lda = co * kernel,
                              .b = params.x.as<float>() + first,
                              .ldb = n,
                              .c = products,
                              .ldc = inputs}));
  for (int64_t c = 0; c < co; ++c) {
    const float bias =
        params.bias.is_null() ? 0.0f : static_cast<float>(LoadElement(params.bias, c));
    float* y = params.y.as<float>() + c * length;
    for (int64_t o = begin; o < end; ++o) {
      const int64_t shifted = o + params.pad;
      float sum = 0.0f;
      for (int64_t i = std::min(last, shifted / params.stride);
           i >= first && shifted - i * params.stride < kernel; --i) {
        sum += products[(c * kernel + shifted - i * params.stride) * inputs + i - first];
      }
      y[o] = sum + bias;
    }
  }
  return absl::OkStatus();
}

}  // namespace

int64_t ConvScratchBytes(int64_t co, int64_t depth, int64_t positions, DType weight) {
  if (co <= 0 || positions <= 0) return 0;
  const int64_t rows = std::min(depth, kDepthTile);
  const int64_t tile = PositionTile(positions);
  const int64_t channels = std::min(kChannelTile, co);
  const int64_t floats = rows * tile + (weight == DType::kF32 ? 0 : channels * rows);
  // Scratch rounds up to whole cache lines, twice.
  return floats * static_cast<int64_t>(sizeof(float)) + 256 +
         SgemmPackingBytes(channels, std::min(tile, positions), rows);
}

int64_t ConvTransposeScratchBytes(int64_t ci, int64_t co, int64_t kernel, int64_t stride) {
  // Inputs that reach a tile of outputs: the tile and a kernel's overhang, one in `stride`.
  const int64_t inputs = CeilDiv(kTransposedTile + kernel, stride) + 1;
  return co * kernel * inputs * static_cast<int64_t>(sizeof(float)) + 128 +
         SgemmPackingBytes(co * kernel, inputs, ci);
}

absl::Status Conv3dOnednn(const Conv3dParams& params, const ExecContext& context) {
  const int64_t co = params.y.dim(0);
  if (params.y.elements() == 0) return absl::OkStatus();
  const int64_t positions = params.y.elements() / co;
  const int64_t depth = std::min(params.weight.elements() / co, kDepthTile);
  const int64_t tile = PositionTile(positions);
  const int64_t channels = std::min(kChannelTile, co);
  const int64_t channel_tiles = CeilDiv(co, channels);
  const int64_t weight_floats = params.weight.dtype() == DType::kF32 ? 0 : channels * depth;
  return context.ParallelFor(CeilDiv(positions, tile) * channel_tiles, [&](int64_t task) {
    H3RT_ASSIGN_OR_RETURN(Scratch gathered, Scratch::Create(depth * tile));
    H3RT_ASSIGN_OR_RETURN(Scratch weights, Scratch::Create(weight_floats));
    const int64_t begin = task / channel_tiles * tile;
    const int64_t channel = task % channel_tiles * channels;
    const ConvTile t = {.channel = channel,
                        .channels = std::min(channels, co - channel),
                        .begin = begin,
                        .end = std::min(begin + tile, positions)};
    return RunTile(params, t, gathered.data(), weights.data());
  });
}

absl::Status ConvTranspose1dOnednn(const ConvTranspose1dParams& params,
                                   const ExecContext& context) {
  const int64_t length = params.y.dim(1);
  if (params.y.elements() == 0) return absl::OkStatus();
  const float* weights = nullptr;
  Scratch widened;
  if (params.weight.dtype() == DType::kF32) {
    weights = params.weight.as<float>();
  } else {
    H3RT_ASSIGN_OR_RETURN(widened, Scratch::Create(params.weight.elements()));
    WidenRow(params.weight, 0, params.weight.elements(), widened.data());
    weights = widened.data();
  }
  const int64_t tiles = CeilDiv(length, kTransposedTile);
  return context.ParallelFor(tiles, [&](int64_t task) {
    const int64_t begin = task * kTransposedTile;
    return RunTransposedTile(params, weights, begin, std::min(begin + kTransposedTile, length));
  });
}

}  // namespace h3rt
