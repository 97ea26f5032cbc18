// The transformer: forwards in both precisions, the pruned variant, other layouts, the trajectory.
#include <map>
#include <vector>

#include "h3rt/io/checkpoint.h"
#include "h3rt/model/dit/dit.h"
#include "h3rt/model/packing/packing.h"
#include "h3rt/model/schedule/schedule.h"
#include "h3rt/parity/parity_internal.h"
#include "h3rt/runtime/sampler.h"
#include "h3rt/tensor/tensor.h"

namespace h3rt::parity {
namespace {

// [1, n, c] -> [n, c].
ConstTensorView Rows(const Tensor& tensor) {
  const Shape& s = tensor.shape();
  return tensor.view().Reshape({tensor.elements() / s[s.rank() - 1], s[s.rank() - 1]});
}

std::vector<int64_t> Int64s(const Tensor& tensor) {
  return {tensor.as<int64_t>(), tensor.as<int64_t>() + tensor.elements()};
}

std::vector<int32_t> Int32s(const Tensor& tensor) {
  std::vector<int32_t> out;
  for (const int64_t v : Int64s(tensor)) out.push_back(static_cast<int32_t>(v));
  return out;
}

// The recorded inputs of the forwards, kept while the sequence borrows them.
struct ForwardInputs {
  Tensor video, audio, text, timestep, positions;
  std::vector<int64_t> text_indices, audio_indices, video_indices;
  std::vector<int32_t> tags, row_timestep;
  DitSequence sequence() const {
    return {.rows = static_cast<int64_t>(tags.size()),
            .position_ids = {positions.as<double>(), static_cast<size_t>(positions.elements())},
            .token_tags = tags,
            .text_indices = text_indices,
            .audio_indices = audio_indices,
            .video_indices = video_indices};
  }
};

absl::StatusOr<ForwardInputs> ReadInputs(const SafetensorsFile& file) {
  ForwardInputs in;
  H3RT_ASSIGN_OR_RETURN(in.video, ReadTensor(file, "in.video", DType::kF32, 3));
  H3RT_ASSIGN_OR_RETURN(in.audio, ReadTensor(file, "in.audio", DType::kF32, 3));
  H3RT_ASSIGN_OR_RETURN(in.text, ReadTensor(file, "in.text", DType::kF32, 3));
  H3RT_ASSIGN_OR_RETURN(in.timestep, ReadTensor(file, "in.timestep", DType::kF32, 1));
  H3RT_ASSIGN_OR_RETURN(in.positions, ReadTensor(file, "in.position_ids", DType::kF64, 2));
  H3RT_ASSIGN_OR_RETURN(const Tensor text, ReadTensor(file, "in.text_indices", DType::kI64, 1));
  H3RT_ASSIGN_OR_RETURN(const Tensor audio, ReadTensor(file, "in.audio_indices", DType::kI64, 1));
  H3RT_ASSIGN_OR_RETURN(const Tensor video, ReadTensor(file, "in.video_indices", DType::kI64, 1));
  H3RT_ASSIGN_OR_RETURN(const Tensor tags, ReadTensor(file, "in.token_tags", DType::kI64, 1));
  H3RT_ASSIGN_OR_RETURN(const Tensor steps,
                        ReadTensor(file, "in.timestep_indices", DType::kI64, 1));
  in.text_indices = Int64s(text);
  in.audio_indices = Int64s(audio);
  in.video_indices = Int64s(video);
  in.tags = Int32s(tags);
  in.row_timestep = Int32s(steps);
  return in;
}

using Recorded = std::map<std::string, Tensor, std::less<>>;

// One evaluation with every tapped tensor kept, and the two outputs as "video" and "audio".
absl::StatusOr<Recorded> RunForward(const Dit& dit, const ForwardInputs& in, Precision precision,
                                    const ExecContext& context) {
  Recorded out;
  absl::Status tap_status;
  const DitTap tap = [&](std::string_view name, const ConstTensorView& value) {
    absl::StatusOr<Tensor> copy = Tensor::Copy(value);
    if (copy.ok()) {
      out.insert_or_assign(std::string(name), std::move(copy).value());
    } else {
      tap_status = copy.status();
    }
  };
  const std::vector<float> timesteps(in.timestep.as<float>(),
                                     in.timestep.as<float>() + in.timestep.elements());
  H3RT_ASSIGN_OR_RETURN(const AdaLnTable adaln, dit.MakeAdaLn(timesteps, precision, context, tap));
  std::vector<int32_t> table_index;
  for (const float t : timesteps) {
    H3RT_ASSIGN_OR_RETURN(const int32_t index, adaln.Find(t));
    table_index.push_back(index);
  }
  std::vector<int32_t> row_timestep;
  for (const int32_t i : in.row_timestep) {
    if (i < 0 || i >= static_cast<int32_t>(table_index.size())) {
      return DataLoss({.what = "in.timestep_indices out of range", .got = std::to_string(i)});
    }
    row_timestep.push_back(table_index[static_cast<size_t>(i)]);
  }
  H3RT_ASSIGN_OR_RETURN(DitRequest request,
                        dit.Prepare(in.sequence(), Rows(in.text), precision, context, tap));
  H3RT_ASSIGN_OR_RETURN(Tensor video, Tensor::Create(DType::kF32, Rows(in.video).shape()));
  H3RT_ASSIGN_OR_RETURN(Tensor audio, Tensor::Create(DType::kF32, Rows(in.audio).shape()));
  H3RT_RETURN_IF_ERROR(dit.Forward(request, adaln, row_timestep, Rows(in.video), Rows(in.audio),
                                   video.view(), audio.view(), context, tap));
  H3RT_RETURN_IF_ERROR(tap_status);
  out.insert_or_assign("video", std::move(video));
  out.insert_or_assign("audio", std::move(audio));
  return out;
}

// Every recorded tensor of `file` that is not an input, against the run's.
void CompareAll(Recorder& recorder, const std::string& prefix, const SafetensorsFile& file,
                const Recorded& run, double bound) {
  for (const auto& [name, value] : run) {
    // Branch outputs are recorded of the first block alone.
    const bool branch =
        name.find(".attn") != std::string::npos || name.find(".ff") != std::string::npos;
    if (!branch && !file.Has(name)) recorder.Missing(prefix + name);
  }
  for (const auto& [name, entry] : file.entries()) {
    if (name.rfind("in.", 0) == 0) continue;
    const auto it = run.find(name);
    const absl::StatusOr<ConstTensorView> want = file.Get(name);
    if (it == run.end() || !want.ok()) {
      recorder.Add({.folder = {},
                    .name = prefix + name,
                    .shape = entry.shape.ToString(),
                    .metric = ParityMetric::kRelativeL2,
                    .bound = bound,
                    .note = it == run.end() ? "the program has no tensor of this name"
                                            : MessageOf(want.status())});
      continue;
    }
    recorder.Compare(prefix + name, it->second.view(), *want, ParityMetric::kRelativeL2, bound);
  }
}

// The curve variant: the full model's weights with the AdaLN projections replaced.
absl::Status RunPruned(Recorder& recorder, const SafetensorsFile& file,
                       const TransformerCheckpoint& full, const ForwardInputs& in,
                       const ExecContext& context) {
  H3RT_ASSIGN_OR_RETURN(const ConstTensorView table, file.Get("adaln_t_table"));
  if (table.rank() != 2) {
    return DataLoss({.what = "adaln_t_table",
                     .got = table.shape().ToString(),
                     .wanted = "[points, rank]",
                     .where = file.path()});
  }
  TransformerCheckpoint pruned;
  pruned.config = full.config;
  pruned.config.adaln_rank = table.dim(1);
  std::map<std::string, ConstTensorView> replaced = {{"adaln_t_table", table}};
  for (const auto& [name, entry] : file.entries()) {
    if (name.rfind("out.", 0) == 0 || name == "adaln_t_table") continue;
    std::string canonical = name;
    if (name.rfind("final_layer.adaln_proj.", 0) == 0) {
      canonical = "norm_out." + name.substr(std::string("final_layer.adaln_proj.").size());
    } else if (name.rfind("blocks.", 0) == 0) {
      canonical = "transformer_" + name;
    }
    H3RT_ASSIGN_OR_RETURN(replaced[canonical], file.Get(name));
  }
  for (const auto& [name, view] : full.weights.entries()) {
    if (name.rfind("time_embedder.", 0) == 0 || replaced.count(name) > 0) continue;
    pruned.weights.AddView(name, view);
  }
  for (const auto& [name, view] : replaced) pruned.weights.AddView(name, view);
  H3RT_ASSIGN_OR_RETURN(const Dit dit, Dit::Create(pruned.config, pruned.weights));
  H3RT_ASSIGN_OR_RETURN(const Recorded run, RunForward(dit, in, Precision::kFp32, context));
  for (const char* name : {"video", "audio"}) {
    H3RT_ASSIGN_OR_RETURN(const ConstTensorView want, file.Get(std::string("out.") + name));
    recorder.Compare(std::string("pruned_f32.") + name, run.find(name)->second.view(), want,
                     ParityMetric::kRelativeL2, kTransformerF32);
  }
  return absl::OkStatus();
}

// The original naming in one file: the same weights byte for byte, and the same outputs.
absl::Status RunSingleFile(Recorder& recorder, const TransformerCheckpoint& folder,
                           const ForwardInputs& in, const Recorded& folder_run,
                           const ExecContext& context) {
  H3RT_ASSIGN_OR_RETURN(const TransformerCheckpoint single,
                        OpenTransformer(recorder.PathOf("single_file.safetensors")));
  for (const auto& [name, view] : folder.weights.entries()) {
    const auto it = single.weights.entries().find(name);
    recorder.Compare("single_file." + name,
                     it == single.weights.entries().end() ? ConstTensorView() : it->second, view,
                     ParityMetric::kBits, 0);
  }
  // Sizes that shapes do not show (RoPE) come from the folder's config.
  H3RT_ASSIGN_OR_RETURN(const Dit dit, Dit::Create(folder.config, single.weights));
  H3RT_ASSIGN_OR_RETURN(const Recorded run, RunForward(dit, in, Precision::kFp32, context));
  for (const char* name : {"video", "audio"}) {
    recorder.Compare(std::string("single_file.output.") + name, run.find(name)->second.view(),
                     folder_run.find(name)->second.view(), ParityMetric::kBits, 0);
  }
  return absl::OkStatus();
}

// The row plan of a step bit for bit, and the state after it.
absl::Status CompareStep(Recorder& recorder, const SafetensorsFile& file, int64_t step,
                         const RowTimesteps& rows, SamplerState& state) {
  const std::string key = "step" + std::to_string(step) + ".";
  const std::vector<int64_t> index(rows.index.begin(), rows.index.end());
  const auto compare = [&](const char* name, const ConstTensorView& got, ParityMetric metric,
                           double bound) -> absl::Status {
    H3RT_ASSIGN_OR_RETURN(const ConstTensorView want, file.Get(key + name));
    recorder.Compare("trajectory." + key + name, got, want, metric, bound);
    return absl::OkStatus();
  };
  const auto timesteps = static_cast<int64_t>(rows.timesteps.size());
  H3RT_RETURN_IF_ERROR(compare("timestep", ConstTensorView::Of(rows.timesteps.data(), {timesteps}),
                               ParityMetric::kBits, 0));
  H3RT_RETURN_IF_ERROR(compare("timestep_indices",
                               ConstTensorView(reinterpret_cast<const std::byte*>(index.data()),
                                               DType::kI64, {static_cast<int64_t>(index.size())}),
                               ParityMetric::kBits, 0));
  H3RT_RETURN_IF_ERROR(
      compare("video", state.video_rows(), ParityMetric::kRelativeL2, kTrajectory));
  return compare("audio", state.audio_rows(), ParityMetric::kRelativeL2, kTrajectory);
}

}  // namespace

absl::Status RunTransformer(Recorder& recorder, const ExecContext& context) {
  H3RT_ASSIGN_OR_RETURN(const std::optional<SafetensorsFile> f32,
                        recorder.Open("transformer_forward_f32.safetensors"));
  H3RT_ASSIGN_OR_RETURN(const std::optional<SafetensorsFile> bf16,
                        recorder.Open("transformer_forward_bf16.safetensors"));
  H3RT_ASSIGN_OR_RETURN(const std::optional<SafetensorsFile> pruned,
                        recorder.Open("pruned_f32.safetensors"));
  const bool single = recorder.Exists("single_file.safetensors");
  if (!recorder.Exists("transformer") || !f32) return absl::OkStatus();
  H3RT_ASSIGN_OR_RETURN(const TransformerCheckpoint checkpoint,
                        OpenTransformer(recorder.PathOf("transformer")));
  H3RT_ASSIGN_OR_RETURN(const Dit dit, Dit::Create(checkpoint.config, checkpoint.weights));
  H3RT_ASSIGN_OR_RETURN(const ForwardInputs in, ReadInputs(*f32));
  H3RT_ASSIGN_OR_RETURN(const Recorded run, RunForward(dit, in, Precision::kFp32, context));
  CompareAll(recorder, "transformer_f32.", *f32, run, kTransformerF32);
  if (bf16) {
    H3RT_ASSIGN_OR_RETURN(const Recorded run16, RunForward(dit, in, Precision::kBf16, context));
    const size_t before = recorder.rows();
    CompareAll(recorder, "transformer_bf16.", *bf16, run16, kTransformerBf16);
    recorder.RequireRows("transformer_forward_bf16.safetensors", before);
  }
  if (pruned) H3RT_RETURN_IF_ERROR(RunPruned(recorder, *pruned, checkpoint, in, context));
  if (single) H3RT_RETURN_IF_ERROR(RunSingleFile(recorder, checkpoint, in, run, context));
  return absl::OkStatus();
}

absl::Status RunTrajectory(Recorder& recorder, const ExecContext& context) {
  H3RT_ASSIGN_OR_RETURN(const std::optional<SafetensorsFile> file,
                        recorder.Open("trajectory_f32.safetensors"));
  if (!file || !recorder.Exists("transformer") ||
      !recorder.Exists("transformer_forward_f32.safetensors")) {
    return absl::OkStatus();
  }
  // The sequence (positions, tags, index lists) is that of the recorded forward.
  H3RT_ASSIGN_OR_RETURN(
      const SafetensorsFile forward,
      SafetensorsFile::Open(recorder.PathOf("transformer_forward_f32.safetensors")));
  H3RT_ASSIGN_OR_RETURN(const ForwardInputs in, ReadInputs(forward));
  H3RT_ASSIGN_OR_RETURN(const TransformerCheckpoint checkpoint,
                        OpenTransformer(recorder.PathOf("transformer")));
  H3RT_ASSIGN_OR_RETURN(const Dit dit, Dit::Create(checkpoint.config, checkpoint.weights));
  H3RT_ASSIGN_OR_RETURN(Tensor video, ReadTensor(*file, "init.video", DType::kF32, 2));
  H3RT_ASSIGN_OR_RETURN(Tensor audio, ReadTensor(*file, "init.audio", DType::kF32, 2));
  H3RT_ASSIGN_OR_RETURN(const Tensor text, ReadTensor(*file, "text", DType::kF32, 3));
  int64_t forwards = 0;
  while (file->Has("step" + std::to_string(forwards) + ".video")) ++forwards;
  H3RT_ASSIGN_OR_RETURN(const double video_shift, SchedulerShift(recorder, "scheduler", 12.0));
  H3RT_ASSIGN_OR_RETURN(const double audio_shift, SchedulerShift(recorder, "audio_scheduler", 3.0));
  H3RT_ASSIGN_OR_RETURN(const Schedule video_schedule, MakeSchedule(forwards, video_shift));
  H3RT_ASSIGN_OR_RETURN(const Schedule audio_schedule, MakeSchedule(forwards, audio_shift));

  PackedLayout layout;
  layout.position_ids = {in.positions.as<double>(),
                         in.positions.as<double>() + in.positions.elements()};
  layout.rows = static_cast<int64_t>(in.tags.size());
  layout.text_indices = in.text_indices;
  layout.audio_indices = in.audio_indices;
  layout.video_indices = in.video_indices;
  layout.token_tags = in.tags;
  H3RT_ASSIGN_OR_RETURN(SamplerState state,
                        SamplerState::FromRows(std::move(video), std::move(audio)));
  absl::Status step_status;
  const auto after_step = [&](int64_t step, const RowTimesteps& rows) {
    if (step_status.ok()) step_status = CompareStep(recorder, *file, step, rows, state);
  };
  H3RT_RETURN_IF_ERROR(RunSampler({.dit = &dit,
                                   .layout = &layout,
                                   .text = Rows(text),
                                   .video_schedule = &video_schedule,
                                   .audio_schedule = &audio_schedule,
                                   .precision = Precision::kFp32,
                                   .adaln_done = {},
                                   .after_step = after_step},
                                  state, context, {}));
  return step_status;
}

}  // namespace h3rt::parity
