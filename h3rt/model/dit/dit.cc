#include "h3rt/model/dit/dit.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <utility>

#include "fmt/format.h"
#include "h3rt/kernels/attention/attention.h"
#include "h3rt/kernels/linear/linear.h"
#include "h3rt/kernels/modulate/modulate.h"
#include "h3rt/kernels/norm/norm.h"
#include "h3rt/model/dit/embed.h"
#include "h3rt/model/dit/impl.h"
#include "h3rt/model/dit/layer.h"
#include "h3rt/num/bf16.h"

namespace h3rt {
namespace {

constexpr int64_t kMaxRequestRows = int64_t{1} << 31;

absl::Status BadArgument(const char* what, std::string got, std::string wanted) {
  return InvalidArgument(
      {.what = what, .got = std::move(got), .wanted = std::move(wanted), .where = "transformer"});
}

// A contiguous F32 matrix [rows, width] without NaN or infinity.
absl::Status CheckMatrix(const char* name, const ConstTensorView& view, int64_t rows, int64_t width,
                         const ExecContext& context) {
  if (view.dtype() != DType::kF32 || view.shape() != Shape{rows, width} || !view.contiguous()) {
    return BadArgument(name, fmt::format("{} {}", NameOf(view.dtype()), view.shape().ToString()),
                       fmt::format("contiguous F32 [{}, {}]", rows, width));
  }
  H3RT_ASSIGN_OR_RETURN(const int64_t at, dit::FindNonFinite(view, context));
  if (at < 0) return absl::OkStatus();
  return BadArgument(
      name, fmt::format("{} in row {}, channel {}", view.as<float>()[at], at / width, at % width),
      "finite values");
}

// `seen` [rows] is scratch: every row has to be in exactly one of the three lists.
absl::Status CheckSequence(const DitSequence& s, std::span<int32_t> seen) {
  std::fill(seen.begin(), seen.end(), 0);
  for (const auto& [name, list] : {std::pair{"text indices", s.text_indices},
                                   {"audio indices", s.audio_indices},
                                   {"video indices", s.video_indices}}) {
    for (const int64_t row : list) {
      if (row < 0 || row >= s.rows) {
        return BadArgument(name, fmt::format("{}", row), fmt::format("0 to {}", s.rows - 1));
      }
      if (seen[static_cast<size_t>(row)]++ != 0) {
        return BadArgument(name, fmt::format("row {} a second time", row), "every row once");
      }
    }
  }
  for (const int32_t tag : s.token_tags) {
    if (tag < 0 || tag > 2) {
      return BadArgument("token tag", fmt::format("{}", tag), "0 video, 1 text, 2 audio");
    }
  }
  for (const double position : s.position_ids) {
    if (!std::isfinite(position)) {
      return BadArgument("position", fmt::format("{}", position), "finite values");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckLengths(const DitSequence& s) {
  if (s.rows < 1 || s.rows > kMaxRequestRows) {
    return BadArgument("rows of the sequence", fmt::format("{}", s.rows), "1 to 2^31");
  }
  const auto rows = static_cast<size_t>(s.rows);
  if (s.position_ids.size() != 3 * rows || s.token_tags.size() != rows) {
    return BadArgument("positions and tags",
                       fmt::format("{} and {}", s.position_ids.size(), s.token_tags.size()),
                       fmt::format("{} and {}", 3 * rows, rows));
  }
  const size_t listed = s.text_indices.size() + s.audio_indices.size() + s.video_indices.size();
  if (listed != rows) {
    return BadArgument("rows in the index lists", fmt::format("{}", listed),
                       fmt::format("{}, every row once", rows));
  }
  return absl::OkStatus();
}

// Calls row(i) for every i in [0, n), in tasks of a fixed number of rows between which cancellation
// is seen.
template <typename Row>
absl::Status ForRows(int64_t n, const ExecContext& context, const Row& row) {
  constexpr int64_t kRows = 64;
  return context.ParallelFor((n + kRows - 1) / kRows, [&](int64_t task) {
    for (int64_t i = task * kRows; i < std::min(n, (task + 1) * kRows); ++i) row(i);
    return absl::OkStatus();
  });
}

// Row `index[i]` of `to` = row i of `from`, or the other way round; both [., width] contiguous. The
// indices are distinct.
absl::Status ScatterRows(const ConstTensorView& from, std::span<const int64_t> index,
                         const TensorView& to, const ExecContext& context) {
  const int64_t width = from.dim(1);
  return ForRows(static_cast<int64_t>(index.size()), context, [&](int64_t i) {
    std::copy_n(from.as<float>() + i * width, width,
                to.as<float>() + index[static_cast<size_t>(i)] * width);
  });
}

absl::Status GatherRows(const ConstTensorView& from, std::span<const int64_t> index,
                        const TensorView& to, const ExecContext& context) {
  const int64_t width = from.dim(1);
  return ForRows(static_cast<int64_t>(index.size()), context, [&](int64_t i) {
    std::copy_n(from.as<float>() + index[static_cast<size_t>(i)] * width, width,
                to.as<float>() + i * width);
  });
}

int64_t FfnChunk(int64_t rows) { return std::min(rows, dit::kFfnRows); }

// Most bytes that one running task of any op of Prepare and Forward allocates.
int64_t TaskBytes(const DitConfig& c, int64_t rows, int64_t text_rows) {
  const int64_t chunk = FfnChunk(rows);
  return std::max(
      {LinearScratchBytes(rows, c.inner(), c.hidden), LinearScratchBytes(rows, c.hidden, c.inner()),
       LinearScratchBytes(chunk, c.ffn, c.hidden), LinearScratchBytes(chunk, c.hidden, c.ffn),
       LinearScratchBytes(text_rows, c.hidden, c.text_dim),
       LinearScratchBytes(rows, c.hidden, c.video_row()),
       LinearScratchBytes(rows, c.hidden, c.audio_in_channels),
       LinearScratchBytes(rows, c.video_row(), c.hidden),
       LinearScratchBytes(rows, c.audio_in_channels, c.hidden), AttentionScratchBytes(c.head_dim)});
}

// The FFN's gate buffer also takes the rounded text rows of Prepare, one row at the least.
int64_t GateElements(const DitConfig& c, int64_t rows) {
  return std::max(FfnChunk(rows) * c.ffn, c.text_dim);
}

dit::Modulation BlockModulation(const ConstTensorView& values, std::span<const int32_t> row) {
  const int64_t hidden = values.dim(1) / 6;
  const auto chunk = [&](int64_t i) { return values.Slice(1, i * hidden, (i + 1) * hidden); };
  return {.shift_attn = chunk(0),
          .scale_attn = chunk(1),
          .gate_attn = chunk(2),
          .shift_ff = chunk(3),
          .scale_ff = chunk(4),
          .gate_ff = chunk(5),
          .row = row};
}

absl::Status CheckCancelled(const ExecContext& context, const char* where) {
  if (context.cancel != nullptr && context.cancel->cancelled()) return Cancelled(where);
  return absl::OkStatus();
}

}  // namespace

// ---- Construction ------------------------------------------------------------------------------

absl::StatusOr<Dit> Dit::Create(const DitConfig& config, const WeightStore& weights) {
  H3RT_RETURN_IF_ERROR(config.Validate());
  static std::atomic<uint64_t> models{0};
  auto impl = std::make_unique<Impl>();
  impl->identity = ++models;
  impl->config = config;
  H3RT_ASSIGN_OR_RETURN(impl->weights, dit::FindWeights(config, weights));
  return Dit(std::move(impl));
}

Dit::Dit(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Dit::Dit(Dit&&) noexcept = default;
Dit& Dit::operator=(Dit&&) noexcept = default;
Dit::~Dit() = default;
const DitConfig& Dit::config() const { return impl_->config; }

// ---- Request -----------------------------------------------------------------------------------

uint64_t DitRequest::bytes() const {
  int64_t total = 0;
  for (const Tensor* tensor : {&text_, &cos_, &sin_, &x_, &n_, &q_, &k_, &v_, &o_, &gate_, &value_,
                               &block_row_, &head_row_}) {
    if (!tensor->empty()) total += tensor->bytes();
  }
  return static_cast<uint64_t>(total);
}

uint64_t Dit::RequestBytes(const DitConfig& c, int64_t rows, int64_t text_rows, int threads) {
  const int64_t floats = text_rows * c.hidden + 2 * rows * 3 * c.rope_freq_dim +
                         2 * rows * c.hidden + 4 * rows * c.inner() + GateElements(c, rows) +
                         FfnChunk(rows) * c.ffn;
  return static_cast<uint64_t>(floats) * sizeof(float) +
         2 * static_cast<uint64_t>(rows) * sizeof(int32_t) +
         static_cast<uint64_t>(threads * TaskBytes(c, rows, text_rows));
}

absl::Status Dit::Allocate(const DitConfig& c, int64_t rows, int64_t text_rows, DitRequest& r) {
  const auto f32 = [](Tensor& tensor, const Shape& shape) -> absl::Status {
    H3RT_ASSIGN_OR_RETURN(tensor, Tensor::Create(DType::kF32, shape));
    return absl::OkStatus();
  };
  H3RT_RETURN_IF_ERROR(f32(r.text_, {text_rows, c.hidden}));
  for (Tensor* tensor : {&r.cos_, &r.sin_}) {
    H3RT_RETURN_IF_ERROR(f32(*tensor, {rows, 3 * c.rope_freq_dim}));
  }
  for (Tensor* tensor : {&r.x_, &r.n_}) H3RT_RETURN_IF_ERROR(f32(*tensor, {rows, c.hidden}));
  for (Tensor* tensor : {&r.q_, &r.k_, &r.v_, &r.o_}) {
    H3RT_RETURN_IF_ERROR(f32(*tensor, {rows, c.inner()}));
  }
  H3RT_RETURN_IF_ERROR(f32(r.gate_, {GateElements(c, rows)}));
  H3RT_RETURN_IF_ERROR(f32(r.value_, {FfnChunk(rows), c.ffn}));
  for (Tensor* tensor : {&r.block_row_, &r.head_row_}) {
    H3RT_ASSIGN_OR_RETURN(*tensor, Tensor::Create(DType::kI32, {rows}));
  }
  return absl::OkStatus();
}

dit::Workspace Dit::WorkspaceOf(const DitConfig& c, DitRequest& r) {
  const auto rows = static_cast<size_t>(r.sequence_.rows);
  const Shape chunk = {FfnChunk(r.sequence_.rows), c.ffn};
  return {.x = r.x_.view(),
          .n = r.n_.view(),
          .q = r.q_.view(),
          .k = r.k_.view(),
          .v = r.v_.view(),
          .o = r.o_.view(),
          .gate = TensorView::Of(r.gate_.as<float>(), chunk),
          .value = r.value_.view(),
          .block_row = {r.block_row_.as<int32_t>(), rows},
          .head_row = {r.head_row_.as<int32_t>(), rows}};
}

// condition_proj, with the text rounded to bfloat16 first in the mixed precision (C4 a). Chunk by
// chunk through the FFN's gate buffer, because the caller's text stays as it is.
absl::Status Dit::EmbedText(const ConstTensorView& text, DitRequest& r, const TensorView& y,
                            const ExecContext& context) const {
  const DitConfig& c = impl_->config;
  const bool round = r.precision_ == Precision::kBf16;
  const dit::Affine& w = impl_->weights.context_embedder;
  const int64_t chunk = round ? r.gate_.elements() / c.text_dim : text.dim(0);
  for (int64_t begin = 0; begin < text.dim(0); begin += chunk) {
    const int64_t end = std::min(text.dim(0), begin + chunk);
    ConstTensorView x = text.Slice(0, begin, end);
    if (round) {
      auto* rounded = r.gate_.as<float>();
      H3RT_RETURN_IF_ERROR(ForRows(end - begin, context, [&](int64_t i) {
        std::copy_n(x.as<float>() + i * c.text_dim, c.text_dim, rounded + i * c.text_dim);
        RoundToBf16InPlace(rounded + i * c.text_dim, c.text_dim);
      }));
      x = ConstTensorView::Of(rounded, x.shape());
    }
    H3RT_RETURN_IF_ERROR(Linear({.x = x,
                                 .weight = w.weight,
                                 .bias = w.bias,
                                 .y = y.Slice(0, begin, end),
                                 .round_bf16 = round,
                                 .round_weight_bf16 = round},
                                context));
  }
  return absl::OkStatus();
}

absl::Status Dit::RefineText(const ConstTensorView& text, DitRequest& r, const ExecContext& context,
                             const DitTap& tap) const {
  const DitConfig& c = impl_->config;
  if (text.dim(0) == 0) return absl::OkStatus();
  const dit::Workspace w = WorkspaceOf(c, r).First(text.dim(0));
  H3RT_RETURN_IF_ERROR(EmbedText(text, r, w.x, context));
  dit::Layer layer;
  layer.config = &c;
  layer.round = r.precision_ == Precision::kBf16;
  for (size_t i = 0; i < impl_->weights.refiner.size(); ++i) {
    H3RT_RETURN_IF_ERROR(CheckCancelled(context, "token refiner"));
    layer.weights = &impl_->weights.refiner[i];
    layer.name = "refiner_" + std::to_string(i);
    H3RT_RETURN_IF_ERROR(dit::RunLayer(layer, w, context, {}));
  }
  H3RT_RETURN_IF_ERROR(RmsNorm({.x = w.x,
                                .weight = impl_->weights.refiner_norm,
                                .y = r.text_.view(),
                                .eps = c.final_norm_eps,
                                .round_bf16 = layer.round,
                                .round_weight_bf16 = layer.round},
                               context));
  if (tap) tap("token_refiner", r.text_.view());
  return dit::CheckFinite(r.text_.view(), "token refiner", context);
}

absl::StatusOr<DitRequest> Dit::Prepare(const DitSequence& sequence, const ConstTensorView& text,
                                        Precision precision, const ExecContext& context,
                                        const DitTap& tap) const {
  const DitConfig& c = impl_->config;
  H3RT_RETURN_IF_ERROR(CheckLengths(sequence));
  const auto text_rows = static_cast<int64_t>(sequence.text_indices.size());
  H3RT_RETURN_IF_ERROR(CheckMatrix("text embeddings", text, text_rows, c.text_dim, context));
  DitRequest request;
  request.sequence_ = sequence;
  request.precision_ = precision;
  request.model_ = impl_->identity;
  H3RT_RETURN_IF_ERROR(Allocate(c, sequence.rows, text_rows, request));
  H3RT_RETURN_IF_ERROR(CheckSequence(sequence, WorkspaceOf(c, request).block_row));
  H3RT_RETURN_IF_ERROR(
      dit::FillRotary(sequence.position_ids, c, request.cos_.view(), request.sin_.view(), context));
  H3RT_RETURN_IF_ERROR(RefineText(text, request, context, tap));
  return request;
}

// ---- Forward -----------------------------------------------------------------------------------

// Projections of the three modalities, scattered into the packed sequence; through `n`, which is
// free until the first block. The projections are FP32 islands; only their results are rounded.
absl::Status Dit::EmbedRows(const ConstTensorView& video, const ConstTensorView& audio,
                            DitRequest& r, const ExecContext& context) const {
  const dit::Weights& weights = impl_->weights;
  const DitSequence& s = r.sequence_;
  const dit::Workspace w = WorkspaceOf(impl_->config, r);
  const auto embed = [&](const ConstTensorView& x, const dit::Affine& affine,
                         std::span<const int64_t> index) -> absl::Status {
    if (index.empty()) return absl::OkStatus();
    const TensorView y = w.n.Slice(0, 0, x.dim(0));
    H3RT_RETURN_IF_ERROR(Linear({.x = x,
                                 .weight = affine.weight,
                                 .bias = affine.bias,
                                 .y = y,
                                 .round_bf16 = r.precision_ == Precision::kBf16},
                                context));
    return ScatterRows(y, index, w.x, context);
  };
  H3RT_RETURN_IF_ERROR(embed(video, weights.proj_in, s.video_indices));
  H3RT_RETURN_IF_ERROR(embed(audio, weights.audio_proj_in, s.audio_indices));
  H3RT_RETURN_IF_ERROR(ScatterRows(std::as_const(r.text_).view(), s.text_indices, w.x, context));
  return dit::CheckFinite(w.x, "embedding", context);
}

// Final norm and modulation of rows that are already in `y`, in place.
absl::Status Dit::NormOut(const AdaLnTable& adaln, std::span<const int32_t> row, bool round,
                          const TensorView& y, const ExecContext& context) const {
  const DitConfig& c = impl_->config;
  const ConstTensorView values = adaln.final_norm();
  H3RT_RETURN_IF_ERROR(RmsNorm({.x = y,
                                .weight = impl_->weights.final_norm,
                                .y = y,
                                .eps = c.final_norm_eps,
                                .round_bf16 = round,
                                .round_weight_bf16 = round},
                               context));
  return Modulate({.x = y,
                   .shift = values.Slice(1, 0, c.hidden),
                   .scale = values.Slice(1, c.hidden, 2 * c.hidden),
                   .row = row,
                   .y = y,
                   .round_bf16 = round},
                  context);
}

// One head on the last rows of its list: gather, norm, modulate, project in FP32.
absl::Status Dit::Head(const AdaLnTable& adaln, std::span<const int32_t> row_timestep,
                       std::span<const int64_t> index, const dit::Affine& affine, const char* name,
                       DitRequest& r, const TensorView& out, const ExecContext& context) const {
  if (out.dim(0) == 0) return absl::OkStatus();
  const std::span<const int64_t> target = index.last(static_cast<size_t>(out.dim(0)));
  const dit::Workspace w = WorkspaceOf(impl_->config, r).First(out.dim(0));
  H3RT_RETURN_IF_ERROR(GatherRows(std::as_const(r.x_).view(), target, w.n, context));
  for (size_t i = 0; i < target.size(); ++i) {
    w.head_row[i] = row_timestep[static_cast<size_t>(target[i])];
  }
  H3RT_RETURN_IF_ERROR(NormOut(adaln, w.head_row, r.precision_ == Precision::kBf16, w.n, context));
  H3RT_RETURN_IF_ERROR(
      Linear({.x = w.n, .weight = affine.weight, .bias = affine.bias, .y = out}, context));
  return dit::CheckFinite(out, name, context);
}

absl::Status Dit::CheckForward(const DitRequest& r, const AdaLnTable& adaln,
                               std::span<const int32_t> row_timestep, const ConstTensorView& video,
                               const ConstTensorView& audio, const TensorView& video_out,
                               const TensorView& audio_out, const ExecContext& context) const {
  const DitConfig& c = impl_->config;
  const DitSequence& s = r.sequence_;
  if (r.model_ != impl_->identity || adaln.model_ != impl_->identity) {
    return BadArgument(r.model_ != impl_->identity ? "request" : "AdaLN table",
                       "one of another model", "one that this model made");
  }
  const auto video_rows = static_cast<int64_t>(s.video_indices.size());
  const auto audio_rows = static_cast<int64_t>(s.audio_indices.size());
  H3RT_RETURN_IF_ERROR(CheckMatrix("video rows", video, video_rows, c.video_row(), context));
  H3RT_RETURN_IF_ERROR(CheckMatrix("audio rows", audio, audio_rows, c.audio_in_channels, context));
  const auto check_out = [](const char* name, const TensorView& out, int64_t rows, int64_t width) {
    const bool fits = out.dtype() == DType::kF32 && out.rank() == 2 && out.dim(0) <= rows &&
                      out.dim(1) == width && out.contiguous();
    if (fits) return absl::OkStatus();
    return BadArgument(name, fmt::format("{} {}", NameOf(out.dtype()), out.shape().ToString()),
                       fmt::format("contiguous F32 [0 to {}, {}]", rows, width));
  };
  H3RT_RETURN_IF_ERROR(check_out("video output", video_out, video_rows, c.video_row()));
  H3RT_RETURN_IF_ERROR(check_out("audio output", audio_out, audio_rows, c.audio_in_channels));
  if (adaln.precision() != r.precision_) {
    return BadArgument("AdaLN table", "one of another precision", "the precision of the request");
  }
  if (row_timestep.size() != static_cast<size_t>(s.rows)) {
    return BadArgument("timestep indices", fmt::format("{}", row_timestep.size()),
                       fmt::format("{}, one a row", s.rows));
  }
  const auto m = static_cast<int64_t>(adaln.timesteps().size());
  for (const int32_t t : row_timestep) {
    if (t < 0 || t >= m) {
      return BadArgument("timestep index", fmt::format("{}", t), fmt::format("0 to {}", m - 1));
    }
  }
  return absl::OkStatus();
}

absl::Status Dit::Forward(DitRequest& request, const AdaLnTable& adaln,
                          std::span<const int32_t> row_timestep, const ConstTensorView& video,
                          const ConstTensorView& audio, const TensorView& video_out,
                          const TensorView& audio_out, const ExecContext& context,
                          const DitTap& tap) const {
  H3RT_RETURN_IF_ERROR(
      CheckForward(request, adaln, row_timestep, video, audio, video_out, audio_out, context));
  const DitConfig& c = impl_->config;
  const DitSequence& s = request.sequence_;
  const bool round = request.precision_ == Precision::kBf16;
  H3RT_RETURN_IF_ERROR(EmbedRows(video, audio, request, context));
  const dit::Workspace w = WorkspaceOf(c, request);
  for (size_t i = 0; i < w.block_row.size(); ++i) {
    w.block_row[i] = 3 * row_timestep[i] + s.token_tags[i];
  }
  dit::Layer layer;
  layer.config = &c;
  layer.cos = std::as_const(request.cos_).view();
  layer.sin = std::as_const(request.sin_).view();
  layer.round = round;
  for (int64_t i = 0; i < c.layers; ++i) {
    layer.name = "block_" + std::to_string(i);
    H3RT_RETURN_IF_ERROR(CheckCancelled(context, layer.name.c_str()));
    layer.weights = &impl_->weights.blocks[static_cast<size_t>(i)];
    layer.modulation = BlockModulation(adaln.block(i), w.block_row);
    H3RT_RETURN_IF_ERROR(dit::RunLayer(layer, w, context, tap));
  }
  if (tap) {
    H3RT_ASSIGN_OR_RETURN(Tensor all, Tensor::Copy(w.x));
    H3RT_RETURN_IF_ERROR(NormOut(adaln, row_timestep, round, all.view(), context));
    tap("norm_out", all.view());
  }
  H3RT_RETURN_IF_ERROR(CheckCancelled(context, "heads"));
  H3RT_RETURN_IF_ERROR(Head(adaln, row_timestep, s.video_indices, impl_->weights.proj_out,
                            "video head", request, video_out, context));
  return Head(adaln, row_timestep, s.audio_indices, impl_->weights.audio_proj_out, "audio head",
              request, audio_out, context);
}

}  // namespace h3rt
