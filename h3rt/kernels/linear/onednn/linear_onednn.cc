#include "h3rt/kernels/linear/onednn/linear_onednn.h"

#include <algorithm>
#include <vector>

#include "h3rt/cpu/convert.h"
#include "h3rt/cpu/multiversion.h"
#include "h3rt/cpu/scratch.h"
#include "h3rt/cpu/sgemm.h"

namespace h3rt {
namespace {

// Columns of the weight that are widened at a time. Every weight goes through the same packed tile,
// F32 too: so its layout and type cannot change a byte of the result, and rows of a power of two
// do not fall on one cache set.
constexpr int64_t kDepthTile = 1024;
constexpr int64_t kTileRow = kDepthTile + 16;

int64_t RoundUp(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// A function of the problem alone.
struct Tiles {
  int64_t m;
  int64_t n;
};

Tiles ChooseTiles(int64_t m, int64_t n) {
  Tiles tiles = {};
  // Equal tiles of at most 1024 rows; widening a weight then costs about a hundredth of its use.
  const int64_t row_tiles = std::max<int64_t>((m + 1023) / 1024, 1);
  tiles.m = std::max<int64_t>(RoundUp((m + row_tiles - 1) / row_tiles, 16), 16);
  // A few rows make the product a matter of reading the weight: keep its tile in the second cache.
  const int64_t most = m <= 32 ? 64 : 512;
  tiles.n = std::clamp<int64_t>(RoundUp(n / 16, 64), 64, most);
  return tiles;
}

H3RT_MULTIVERSION void AddBias(const float* bias, int64_t n, float* y) {
  for (int64_t j = 0; j < n; ++j) y[j] += bias[j];
}

// Rows [begin, begin + rows) and columns [k_begin, k_begin + depth) of the weight, as floats.
void WidenTile(const ConstTensorView& w, bool round_bf16, int64_t begin, int64_t rows,
               int64_t k_begin, int64_t depth, float* tile) {
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t j = begin + i;
    const int64_t offset =
        w.rank() == 2 ? j * w.stride(0) : j / w.dim(1) * w.stride(0) + j % w.dim(1) * w.stride(1);
    WidenRow(w, offset + k_begin, depth, tile + i * kTileRow);
    if (round_bf16 && w.dtype() != DType::kBF16) RoundRowToBf16(tile + i * kTileRow, depth);
  }
}

std::vector<float> WidenBias(const ConstTensorView& bias, bool round_bf16) {
  std::vector<float> values(static_cast<size_t>(bias.is_null() ? 0 : bias.elements()));
  if (values.empty()) return values;
  for (int64_t j = 0; j < bias.elements(); ++j) {
    const int64_t offset =
        bias.rank() == 1 ? j * bias.stride(0)
                         : j / bias.dim(1) * bias.stride(0) + j % bias.dim(1) * bias.stride(1);
    WidenRow(bias, offset, 1, &values[static_cast<size_t>(j)]);
  }
  if (round_bf16) RoundRowToBf16(values.data(), bias.elements());
  return values;
}

struct Tile {
  int64_t row;
  int64_t rows;
  int64_t column;
  int64_t columns;
};

absl::Status RunTile(const LinearParams& params, const Tile& t, const float* bias) {
  const int64_t k = params.x.dim(1);
  const int64_t ldx = params.x.dim(0) > 1 ? params.x.stride(0) : k;
  const int64_t ldy = params.y.dim(0) > 1 ? params.y.stride(0) : params.y.dim(1);
  H3RT_ASSIGN_OR_RETURN(Scratch scratch, Scratch::Create(t.columns * kTileRow));
  float* y = params.y.as<float>() + t.row * ldy + t.column;
  for (int64_t k_begin = 0; k_begin == 0 || k_begin < k; k_begin += kDepthTile) {
    const int64_t depth = std::min(kDepthTile, k - k_begin);
    if (depth > 0) {
      WidenTile(params.weight, params.round_weight_bf16, t.column, t.columns, k_begin, depth,
                scratch.data());
    }
    H3RT_RETURN_IF_ERROR(Sgemm({.trans_b = true,
                                .m = t.rows,
                                .n = t.columns,
                                .k = depth,
                                .a = params.x.as<float>() + t.row * ldx + k_begin,
                                .lda = ldx,
                                .b = scratch.data(),
                                .ldb = kTileRow,
                                .beta = k_begin == 0 ? 0.0f : 1.0f,
                                .c = y,
                                .ldc = ldy}));
  }
  for (int64_t i = 0; i < t.rows; ++i) {
    if (bias != nullptr) AddBias(bias + t.column, t.columns, y + i * ldy);
    if (params.round_bf16) RoundRowToBf16(y + i * ldy, t.columns);
  }
  return absl::OkStatus();
}

}  // namespace

int64_t LinearScratchBytes(int64_t m, int64_t n, int64_t k) {
  if (m <= 0 || n <= 0) return 0;
  const Tiles tiles = ChooseTiles(m, n);
  const int64_t columns = std::min(tiles.n, n);
  // Scratch rounds up to whole cache lines.
  const auto floats = static_cast<int64_t>(sizeof(float)) * (columns * kTileRow + n) + 128;
  return floats + SgemmPackingBytes(std::min(tiles.m, m), columns, std::min(kDepthTile, k));
}

absl::Status LinearOnednn(const LinearParams& params, const ExecContext& context) {
  const int64_t m = params.x.dim(0);
  const int64_t n = params.y.dim(1);
  if (m == 0 || n == 0) return absl::OkStatus();
  const std::vector<float> bias = WidenBias(params.bias, params.round_weight_bf16);
  const Tiles tiles = ChooseTiles(m, n);
  const int64_t row_tiles = (m + tiles.m - 1) / tiles.m;
  const int64_t column_tiles = (n + tiles.n - 1) / tiles.n;
  return context.ParallelFor(row_tiles * column_tiles, [&](int64_t task) {
    const int64_t row = task % row_tiles * tiles.m;
    const int64_t column = task / row_tiles * tiles.n;
    const Tile tile = {.row = row,
                       .rows = std::min(tiles.m, m - row),
                       .column = column,
                       .columns = std::min(tiles.n, n - column)};
    return RunTile(params, tile, bias.empty() ? nullptr : bias.data());
  });
}

}  // namespace h3rt
