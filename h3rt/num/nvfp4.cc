#include "h3rt/num/nvfp4.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>

#include "h3rt/num/e2m1.h"
#include "h3rt/num/e4m3.h"

namespace h3rt {
namespace {

constexpr int64_t kTileRows = 128;
constexpr int64_t kTileCols = 4;
constexpr int64_t kTileBytes = kTileRows * kTileCols;

// Larger extents cannot be files; products below stay far from overflow.
constexpr int64_t kMaxExtent = int64_t{1} << 30;

int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

size_t Index(int64_t i) { return static_cast<size_t>(i); }

absl::Status WrongSize(std::string what, size_t got, int64_t wanted) {
  return InvalidArgument(
      {.what = std::move(what), .got = std::to_string(got), .wanted = std::to_string(wanted)});
}

absl::Status CheckExtents(int64_t rows, int64_t cols) {
  const auto good = [](int64_t extent) { return extent > 0 && extent <= kMaxExtent; };
  if (good(rows) && good(cols)) return absl::OkStatus();
  return InvalidArgument({.what = "extents of an NVFP4 matrix",
                          .got = std::to_string(rows) + " x " + std::to_string(cols),
                          .wanted = "1 to 2^30 each"});
}

absl::Status CheckColumns(int64_t cols) {
  if (cols % kNvfp4Block == 0) return absl::OkStatus();
  return InvalidArgument(
      {.what = "columns of an NVFP4 matrix",
       .got = std::to_string(cols),
       .wanted = "a multiple of 16, padded with zeros to " + std::to_string(RoundUp(cols, 16))});
}

float AbsMax(std::span<const float> values) {
  float amax = 0.0f;
  for (const float value : values) amax = std::max(amax, std::fabs(value));
  return amax;
}

void PutCode(Nvfp4Tensor& tensor, int64_t row, int64_t col, uint8_t code) {
  const bool high = (col % 2 == 0) == (tensor.order == NibbleOrder::kHighFirst);
  uint8_t& byte = tensor.packed[Index(row * (tensor.cols / 2) + col / 2)];
  byte = static_cast<uint8_t>(byte | (high ? code << 4 : code));
}

void QuantizeBlock(std::span<const float> block, int64_t row, int64_t b, Nvfp4Tensor& tensor) {
  const float amax = AbsMax(block);
  if (amax == 0.0f) return;  // scale 0 and codes 0; 0 / tensor_scale may be 0 / 0
  const uint8_t scale_bits =
      FloatToE4m3Saturating(std::min(amax / kE2m1Max / tensor.tensor_scale, kE4m3Max));
  tensor.block_scales[Index(Nvfp4ScaleIndex(row, b, tensor.cols / kNvfp4Block))] = scale_bits;
  const float scale = E4m3ToFloat(scale_bits) * tensor.tensor_scale;
  if (scale == 0.0f) return;
  for (int64_t i = 0; i < kNvfp4Block; ++i) {
    PutCode(tensor, row, b * kNvfp4Block + i, FloatToE2m1(block[Index(i)] / scale));
  }
}

}  // namespace

void SwapNibbles(std::span<uint8_t> packed) {
  for (uint8_t& byte : packed) byte = static_cast<uint8_t>(byte << 4 | byte >> 4);
}

int64_t Nvfp4StoredExtent(int64_t extent) { return RoundUp(extent, kNvfp4Block); }

int64_t Nvfp4ScaleRows(int64_t rows) { return RoundUp(rows, kTileRows); }

int64_t Nvfp4ScaleCols(int64_t blocks) { return RoundUp(blocks, kTileCols); }

int64_t Nvfp4ScaleIndex(int64_t row, int64_t block, int64_t blocks) {
  const int64_t tiles = Nvfp4ScaleCols(blocks) / kTileCols;
  const int64_t tile = row / kTileRows * tiles + block / kTileCols;
  return tile * kTileBytes + 16 * (row % 32) + 4 * (row % kTileRows / 32) + block % kTileCols;
}

Nvfp4ScalePlace Nvfp4ScalePlaceOf(int64_t index, int64_t blocks) {
  const int64_t tiles = Nvfp4ScaleCols(blocks) / kTileCols;
  const int64_t tile = index / kTileBytes;
  const int64_t inside = index % kTileBytes;
  return {.row = tile / tiles * kTileRows + inside % 16 / 4 * 32 + inside / 16,
          .block = tile % tiles * kTileCols + inside % 4};
}

absl::StatusOr<std::vector<uint8_t>> SwizzleNvfp4Scales(std::span<const uint8_t> row_major,
                                                        int64_t rows, int64_t blocks) {
  H3RT_RETURN_IF_ERROR(CheckExtents(rows, blocks));
  if (row_major.size() != Index(rows * blocks)) {
    return WrongSize("bytes of row-major block scales", row_major.size(), rows * blocks);
  }
  std::vector<uint8_t> out(Index(Nvfp4ScaleRows(rows) * Nvfp4ScaleCols(blocks)));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t b = 0; b < blocks; ++b) {
      out[Index(Nvfp4ScaleIndex(row, b, blocks))] = row_major[Index(row * blocks + b)];
    }
  }
  return out;
}

absl::StatusOr<std::vector<uint8_t>> UnswizzleNvfp4Scales(std::span<const uint8_t> swizzled,
                                                          int64_t rows, int64_t blocks) {
  H3RT_RETURN_IF_ERROR(CheckExtents(rows, blocks));
  const int64_t wanted = Nvfp4ScaleRows(rows) * Nvfp4ScaleCols(blocks);
  if (swizzled.size() != Index(wanted)) {
    return WrongSize("bytes of swizzled block scales", swizzled.size(), wanted);
  }
  std::vector<uint8_t> out(Index(rows * blocks));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t b = 0; b < blocks; ++b) {
      out[Index(row * blocks + b)] = swizzled[Index(Nvfp4ScaleIndex(row, b, blocks))];
    }
  }
  return out;
}

absl::Status ValidateNvfp4(const Nvfp4View& matrix) {
  H3RT_RETURN_IF_ERROR(CheckExtents(matrix.rows, matrix.cols));
  H3RT_RETURN_IF_ERROR(CheckColumns(matrix.cols));
  if (matrix.rows % kNvfp4Block != 0) {
    return InvalidArgument({.what = "stored rows of an NVFP4 matrix",
                            .got = std::to_string(matrix.rows),
                            .wanted = "a multiple of 16"});
  }
  if (matrix.packed.size() != Index(matrix.rows * (matrix.cols / 2))) {
    return WrongSize("bytes of NVFP4 codes", matrix.packed.size(), matrix.rows * (matrix.cols / 2));
  }
  const int64_t scales = Nvfp4ScaleRows(matrix.rows) * Nvfp4ScaleCols(matrix.cols / kNvfp4Block);
  if (matrix.block_scales.size() != Index(scales)) {
    return WrongSize("bytes of NVFP4 block scales", matrix.block_scales.size(), scales);
  }
  if (!std::isfinite(matrix.tensor_scale)) {
    return InvalidArgument({.what = "NVFP4 tensor scale",
                            .got = std::to_string(matrix.tensor_scale),
                            .wanted = "a finite number"});
  }
  if (matrix.pre_quant_scale.empty()) return absl::OkStatus();
  // The factors belong to the layer's own columns, so padding may be left off there too.
  if (Nvfp4StoredExtent(static_cast<int64_t>(matrix.pre_quant_scale.size())) != matrix.cols) {
    return WrongSize("elements of pre_quant_scale", matrix.pre_quant_scale.size(), matrix.cols);
  }
  for (const float factor : matrix.pre_quant_scale) {
    if (!std::isfinite(factor)) {
      return InvalidArgument(
          {.what = "pre_quant_scale", .got = std::to_string(factor), .wanted = "finite numbers"});
    }
  }
  return absl::OkStatus();
}

absl::Status DequantizeNvfp4(const Nvfp4View& matrix, int64_t row_begin, int64_t row_end,
                             int64_t cols, std::span<float> out) {
  H3RT_RETURN_IF_ERROR(ValidateNvfp4(matrix));
  const std::span<const float> factors = matrix.pre_quant_scale;
  const int64_t most = factors.empty() ? matrix.cols : static_cast<int64_t>(factors.size());
  if (row_begin < 0 || row_begin > row_end || row_end > matrix.rows || cols <= 0 || cols > most) {
    return InvalidArgument(
        {.what = "part of an NVFP4 matrix",
         .got = "rows " + std::to_string(row_begin) + " to " + std::to_string(row_end) +
                ", columns " + std::to_string(cols),
         .wanted = "within " + std::to_string(matrix.rows) + " x " + std::to_string(most)});
  }
  if (out.size() != Index((row_end - row_begin) * cols)) {
    return WrongSize("elements of the output", out.size(), (row_end - row_begin) * cols);
  }
  const int64_t blocks = matrix.cols / kNvfp4Block;
  const unsigned even_shift = matrix.order == NibbleOrder::kHighFirst ? 4 : 0;
  for (int64_t row = row_begin; row < row_end; ++row) {
    const uint8_t* codes = &matrix.packed[Index(row * (matrix.cols / 2))];
    float* to = out.data() + (row - row_begin) * cols;
    for (int64_t b = 0; b * kNvfp4Block < cols; ++b) {
      const float block_scale =
          E4m3ToFloat(matrix.block_scales[Index(Nvfp4ScaleIndex(row, b, blocks))]);
      if (std::isnan(block_scale)) {
        return DataLoss({.what = "NVFP4 block scale",
                         .got = "NaN",
                         .where = "row " + std::to_string(row) + ", block " + std::to_string(b)});
      }
      const float scale = block_scale * matrix.tensor_scale;
      const int64_t end = std::min((b + 1) * kNvfp4Block, cols);
      for (int64_t k = b * kNvfp4Block; k < end; ++k) {
        const unsigned shift = k % 2 == 0 ? even_shift : 4 - even_shift;
        to[k] = kE2m1Values[(codes[k / 2] >> shift) & 15u] * scale;
      }
    }
    if (factors.empty()) continue;
    for (int64_t k = 0; k < cols; ++k) to[k] *= factors[Index(k)];
  }
  return absl::OkStatus();
}

absl::StatusOr<Nvfp4Tensor> QuantizeNvfp4(std::span<const float> weights, int64_t rows,
                                          int64_t cols, NibbleOrder order) {
  H3RT_RETURN_IF_ERROR(CheckExtents(rows, cols));
  H3RT_RETURN_IF_ERROR(CheckColumns(cols));
  if (weights.size() != Index(rows * cols)) {
    return WrongSize("elements to quantise", weights.size(), rows * cols);
  }
  const auto bad = std::find_if(weights.begin(), weights.end(),
                                [](float value) { return !std::isfinite(value); });
  if (bad != weights.end()) {
    return InvalidArgument({.what = "element to quantise",
                            .got = std::to_string(*bad),
                            .wanted = "a finite number",
                            .where = "index " + std::to_string(bad - weights.begin())});
  }
  Nvfp4Tensor tensor;
  tensor.rows = Nvfp4StoredExtent(rows);
  tensor.cols = cols;
  tensor.order = order;
  const int64_t blocks = cols / kNvfp4Block;
  tensor.packed.resize(Index(tensor.rows * (cols / 2)));
  tensor.block_scales.resize(Index(Nvfp4ScaleRows(tensor.rows) * Nvfp4ScaleCols(blocks)));
  tensor.tensor_scale = AbsMax(weights) / (kE4m3Max * kE2m1Max);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t b = 0; b < blocks; ++b) {
      QuantizeBlock(weights.subspan(Index(row * cols + b * kNvfp4Block), Index(kNvfp4Block)), row,
                    b, tensor);
    }
  }
  return tensor;
}

}  // namespace h3rt
