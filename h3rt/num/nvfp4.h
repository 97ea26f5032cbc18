// NVFP4 matrices: e2m1 codes, one e4m3 scale per block of 16 along K, one float32 scale per tensor.
// W[n, k] = code * (block_scale * tensor_scale), the product of the scales first, all in float32.
// Source: specification 10.2 with C5 and C6.
//
// Stored form: `packed` is [rows, cols / 2] bytes with two codes each; rows and cols are the stored
// extents, multiples of 16, zero-padded where the layer's own are not. Block scales lie in the
// swizzled 128x4 tiles of cuBLAS, [roundup(rows, 128), roundup(cols / 16, 4)] bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "h3rt/base/status.h"

namespace h3rt {

inline constexpr int64_t kNvfp4Block = 16;

// Which half of a byte holds element 2j. ComfyUI files: high. CUTLASS, torch and LightX2V: low.
enum class NibbleOrder : uint8_t { kHighFirst, kLowFirst };

// Exchanges the two codes of every byte, which turns one order into the other.
void SwapNibbles(std::span<uint8_t> packed);

// The extent rounded up to what is stored: a multiple of 16.
int64_t Nvfp4StoredExtent(int64_t extent);

// Extents of the swizzled scale matrix.
int64_t Nvfp4ScaleRows(int64_t rows);    // roundup(rows, 128)
int64_t Nvfp4ScaleCols(int64_t blocks);  // roundup(blocks, 4)

// Where the scale of (row, block) lies in the swizzled bytes of a matrix with `blocks` blocks a
// row.
int64_t Nvfp4ScaleIndex(int64_t row, int64_t block, int64_t blocks);

struct Nvfp4ScalePlace {
  int64_t row = 0;
  int64_t block = 0;
  friend bool operator==(const Nvfp4ScalePlace&, const Nvfp4ScalePlace&) = default;
};

// The inverse of Nvfp4ScaleIndex; padding bytes give rows or blocks outside the matrix.
Nvfp4ScalePlace Nvfp4ScalePlaceOf(int64_t index, int64_t blocks);

// Row-major [rows, blocks] to the swizzled layout (padding bytes are 0) and back.
// kInvalidArgument when a span has the wrong size.
absl::StatusOr<std::vector<uint8_t>> SwizzleNvfp4Scales(std::span<const uint8_t> row_major,
                                                        int64_t rows, int64_t blocks);
absl::StatusOr<std::vector<uint8_t>> UnswizzleNvfp4Scales(std::span<const uint8_t> swizzled,
                                                          int64_t rows, int64_t blocks);

// A quantised matrix that somebody else owns, in the stored form above.
struct Nvfp4View {
  int64_t rows = 0;  // stored extents, multiples of 16
  int64_t cols = 0;
  std::span<const uint8_t> packed;
  std::span<const uint8_t> block_scales;  // e4m3, swizzled
  float tensor_scale = 0.0f;
  NibbleOrder order = NibbleOrder::kHighFirst;
  // Per column, or empty: the factor of the activation (AWQ). The stored weight was divided by it,
  // so the weight of a layer without that factor is the stored one times it.
  std::span<const float> pre_quant_scale;
};

// kInvalidArgument when an extent is not a multiple of 16 or not positive, a span has the wrong
// size, or a scale is not finite.
absl::Status ValidateNvfp4(const Nvfp4View& matrix);

// Rows [row_begin, row_end) of the first `cols` columns as float32, row-major into `out` of exactly
// that size; cols may leave padding off. Validates first; a NaN block scale is kDataLoss.
absl::Status DequantizeNvfp4(const Nvfp4View& matrix, int64_t row_begin, int64_t row_end,
                             int64_t cols, std::span<float> out);

struct Nvfp4Tensor {
  int64_t rows = 0;  // stored extents
  int64_t cols = 0;
  std::vector<uint8_t> packed;
  std::vector<uint8_t> block_scales;
  float tensor_scale = 0.0f;
  NibbleOrder order = NibbleOrder::kHighFirst;

  Nvfp4View view() const {
    return {.rows = rows,
            .cols = cols,
            .packed = packed,
            .block_scales = block_scales,
            .tensor_scale = tensor_scale,
            .order = order,
            .pre_quant_scale = {}};
  }
};

// Quantises row-major float32 [rows, cols]. tensor_scale = amax / (448 * 6); block scale =
// e4m3(min(amax of the block / 6 / tensor_scale, 448)); code = e2m1(w / (block_scale *
// tensor_scale)). A block whose scale rounds to 0 gets all codes 0, as does a tensor of zeros. Rows
// are padded with zeros to a multiple of 16; cols must be a multiple of 16 already (a caller that
// pads columns must pad its activations too). kInvalidArgument for bad extents, sizes and for
// values that are not finite.
absl::StatusOr<Nvfp4Tensor> QuantizeNvfp4(std::span<const float> weights, int64_t rows,
                                          int64_t cols, NibbleOrder order);

}  // namespace h3rt
