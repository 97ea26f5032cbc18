// One transformer layer over a workspace, and the finiteness check. Private to the dit folder.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "h3rt/base/exec.h"
#include "h3rt/base/status.h"
#include "h3rt/io/model_config.h"
#include "h3rt/model/dit/dit.h"
#include "h3rt/model/dit/weights.h"
#include "h3rt/tensor/view.h"

namespace h3rt::dit {

// Rows of the FFN that are computed at once: no [rows, 2 ffn] buffer exists. Fixed, because the
// chunks must not depend on the number of threads. Four row tiles of a product: with the released
// widths its narrowest product then has 56 tasks, and the two buffers take 450 MiB.
inline constexpr int64_t kFfnRows = 4096;

// Views of the request's buffers. x is the residual stream, n the normed input of a branch and
// then the branch's output.
struct Workspace {
  TensorView x, n;               // [rows, hidden]
  TensorView q, k, v, o;         // [rows, inner]
  TensorView gate, value;        // [min(rows, kFfnRows), ffn]
  std::span<int32_t> block_row;  // [rows], 3 * timestep + tag
  std::span<int32_t> head_row;   // [rows], timestep of the gathered rows

  // The first `rows` rows of every buffer.
  Workspace First(int64_t rows) const;
};

// Six views [m * 3, hidden] of a block's AdaLN values; null views for refiner layers.
struct Modulation {
  ConstTensorView shift_attn, scale_attn, gate_attn;
  ConstTensorView shift_ff, scale_ff, gate_ff;
  std::span<const int32_t> row;
};

struct Layer {
  const DitConfig* config = nullptr;
  const LayerWeights* weights = nullptr;
  Modulation modulation;
  ConstTensorView cos, sin;  // [rows, 3 * rope_freq_dim]; null: no rotation
  bool round = false;        // the rounding points of C4
  std::string name;          // "block_0"; tap names follow from it
};

// x += gate * attention(mod(norm1(x))); x += gate * ffn(mod(norm2(x))), over all rows of `w`.
absl::Status RunLayer(const Layer& layer, const Workspace& w, const ExecContext& context,
                      const DitTap& tap);

// kDataLoss naming `where` and the first element of x [rows, c] that is NaN or infinite (T8).
absl::Status CheckFinite(const ConstTensorView& x, std::string_view where,
                         const ExecContext& context);
// The index of the first element that is NaN or infinite in a contiguous F32 view, or -1.
absl::StatusOr<int64_t> FindNonFinite(const ConstTensorView& x, const ExecContext& context);

}  // namespace h3rt::dit
