// The MiniMax-H3 diffusion transformer: one packed bidirectional sequence, 2 refiner blocks over
// the text, N blocks with tabulated AdaLN, two heads. Source: spec h3 section 2, C4, C8.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "h3rt/base/exec.h"
#include "h3rt/base/status.h"
#include "h3rt/io/model_config.h"
#include "h3rt/io/weight_store.h"
#include "h3rt/tensor/tensor.h"

namespace h3rt {
namespace dit {
struct Affine;
struct Workspace;
}  // namespace dit

// kFp32: every operation in float32. kBf16: the released mixed precision; activations are rounded
// to bfloat16 at the points of C4 (values stay in float32 buffers). Weights are those of the model
// saved in bfloat16: where the checkpoint stores more, matrices, biases and norms are rounded. The
// FP32 islands (the two input projections, the two heads, the time embedding, and the AdaLN of a
// pruned model) stay as they are stored.
enum class Precision { kFp32, kBf16 };

// What a forward needs to know of the sequence; spans are borrowed for the request's life.
struct DitSequence {
  int64_t rows = 0;
  std::span<const double> position_ids;  // [rows, 3]
  std::span<const int32_t> token_tags;   // [rows], 0 video, 1 text, 2 audio
  std::span<const int64_t> text_indices;
  std::span<const int64_t> audio_indices;
  std::span<const int64_t> video_indices;  // condition rows first
};

// Called with intermediate tensors: "token_refiner" [n, hidden], "temb" [m, time_embed],
// "block_I.attn" and "block_I.ff" (branch outputs before gate and residual) and "block_I"
// [rows, hidden], "norm_out" [rows, hidden].
using DitTap = std::function<void(std::string_view name, const ConstTensorView& value)>;

// AdaLN values of a list of distinct timesteps for every block and the final norm.
class AdaLnTable {
 public:
  std::span<const float> timesteps() const { return timesteps_; }
  // Index of an exact timestep value; kInternal when it was not tabulated.
  absl::StatusOr<int32_t> Find(float timestep) const;
  Precision precision() const { return precision_; }
  uint64_t bytes() const;
  // Values of block i [m * 3, 6 * hidden] (row 3 * timestep + tag; shift, scale, gate of attention,
  // then of the FFN) and of the final norm [m, 2 * hidden] (shift, scale).
  int64_t blocks() const { return static_cast<int64_t>(blocks_.size()); }
  ConstTensorView block(int64_t i) const;
  ConstTensorView final_norm() const;

 private:
  friend class Dit;
  std::vector<float> timesteps_;
  Precision precision_ = Precision::kFp32;
  uint64_t model_ = 0;          // the Dit that made it
  std::vector<Tensor> blocks_;  // each [m, 18 * hidden] F32
  Tensor final_;                // [m, 2 * hidden]
};

// Per-request state: refined text, rotary tables and the workspace of the forward.
class DitRequest {
 public:
  uint64_t bytes() const;

 private:
  friend class Dit;
  DitSequence sequence_;
  Precision precision_ = Precision::kFp32;
  uint64_t model_ = 0;           // the Dit that prepared it
  Tensor text_;                  // [n, hidden], after refiner and final norm
  Tensor cos_, sin_;             // [rows, 3 * rope_freq_dim]
  Tensor x_, n_;                 // [rows, hidden]
  Tensor q_, k_, v_, o_;         // [rows, inner]
  Tensor gate_, value_;          // FFN chunk; gate_ holds rounded text rows before that
  Tensor block_row_, head_row_;  // [rows] I32
};

class Dit {
 public:
  // Reads every weight through `weights`, which stays alive and in place while the Dit is used.
  static absl::StatusOr<Dit> Create(const DitConfig& config, const WeightStore& weights);
  Dit(Dit&&) noexcept;
  Dit& operator=(Dit&&) noexcept;
  ~Dit();

  const DitConfig& config() const;

  // Time embedding and AdaLN of all distinct timesteps of a run, each in [0, 1] give or take 0.001;
  // anything else is kInvalidArgument. SiLU is evaluated in float32 before the cast to bfloat16.
  // A pruned model looks its curve up, clamped to [0, 1]; the curve value, the weights and the
  // product stay in float32 in both precisions (spec h3 section 2.4), and kBf16 rounds the biased
  // sum once, as it does the result of every linear layer.
  absl::StatusOr<AdaLnTable> MakeAdaLn(std::span<const float> timesteps, Precision precision,
                                       const ExecContext& context, const DitTap& tap = {}) const;

  // Runs condition_proj and the refiner once, builds the rotary tables, allocates the workspace.
  // `text` [n, text_dim] F32. kInvalidArgument for widths, indices or tags out of range, or values
  // that are not finite.
  absl::StatusOr<DitRequest> Prepare(const DitSequence& sequence, const ConstTensorView& text,
                                     Precision precision, const ExecContext& context,
                                     const DitTap& tap = {}) const;

  // One evaluation. `video` [n_v, video_row] and `audio` [n_a, audio_in_channels] F32 in the order
  // of the index lists; `row_timestep` [rows] indexes the table's timesteps. Outputs (F32) cover
  // the last rows of each list only: `video_out` [k_v, video_row] the last k_v video rows, likewise
  // audio. kInvalidArgument for shapes, values that are not finite, and a request or a table of
  // another Dit. Values that are not finite after that come from the weights: kDataLoss, naming the
  // block that made them first (T8). Checks cancellation between and inside blocks.
  absl::Status Forward(DitRequest& request, const AdaLnTable& adaln,
                       std::span<const int32_t> row_timestep, const ConstTensorView& video,
                       const ConstTensorView& audio, const TensorView& video_out,
                       const TensorView& audio_out, const ExecContext& context,
                       const DitTap& tap = {}) const;

  // For the memory plan. With `threads` 0 the bytes that the result of MakeAdaLn or Prepare holds,
  // to the byte. With the threads of the pool the most that is held while MakeAdaLn runs, or during
  // Prepare and Forward: the result, the inputs of the projections, and what the ops allocate in
  // each running task (an upper bound, see the ops' ...ScratchBytes). A tap costs [rows, hidden]
  // more.
  static uint64_t AdaLnBytes(const DitConfig& config, int64_t timesteps, int threads);
  static uint64_t RequestBytes(const DitConfig& config, int64_t rows, int64_t text_rows,
                               int threads);

 private:
  struct Impl;
  explicit Dit(std::unique_ptr<Impl> impl);

  // Steps of Prepare and Forward; see dit.cc.
  static absl::Status Allocate(const DitConfig& config, int64_t rows, int64_t text_rows,
                               DitRequest& request);
  static dit::Workspace WorkspaceOf(const DitConfig& config, DitRequest& request);
  absl::Status EmbedText(const ConstTensorView& text, DitRequest& request, const TensorView& y,
                         const ExecContext& context) const;
  absl::Status RefineText(const ConstTensorView& text, DitRequest& request,
                          const ExecContext& context, const DitTap& tap) const;
  absl::Status EmbedRows(const ConstTensorView& video, const ConstTensorView& audio,
                         DitRequest& request, const ExecContext& context) const;
  absl::Status NormOut(const AdaLnTable& adaln, std::span<const int32_t> row, bool round,
                       const TensorView& y, const ExecContext& context) const;
  absl::Status Head(const AdaLnTable& adaln, std::span<const int32_t> row_timestep,
                    std::span<const int64_t> index, const dit::Affine& affine, const char* name,
                    DitRequest& request, const TensorView& out, const ExecContext& context) const;
  absl::Status CheckForward(const DitRequest& request, const AdaLnTable& adaln,
                            std::span<const int32_t> row_timestep, const ConstTensorView& video,
                            const ConstTensorView& audio, const TensorView& video_out,
                            const TensorView& audio_out, const ExecContext& context) const;

  std::unique_ptr<Impl> impl_;
};

}  // namespace h3rt
