// The packed layout and the schedules.
#include <charconv>
#include <set>
#include <vector>

#include "h3rt/base/json.h"
#include "h3rt/io/model_config.h"
#include "h3rt/model/packing/packing.h"
#include "h3rt/model/schedule/schedule.h"
#include "h3rt/parity/parity_internal.h"
#include "h3rt/tensor/tensor.h"

namespace h3rt::parity {
namespace {

ConstTensorView Doubles(const std::vector<double>& v, int64_t first_row, int64_t rows) {
  return ConstTensorView(reinterpret_cast<const std::byte*>(v.data() + 3 * first_row), DType::kF64,
                         {rows, 3});
}

ConstTensorView Ints(const std::vector<int64_t>& v) {
  return ConstTensorView(reinterpret_cast<const std::byte*>(v.data()), DType::kI64,
                         {static_cast<int64_t>(v.size())});
}

// What the recorded tensors say of the request that made them.
absl::StatusOr<LayoutRequest> RequestOf(const SafetensorsFile& file, const std::string& task) {
  const std::string prefix = task + ".";
  H3RT_ASSIGN_OR_RETURN(const Tensor text,
                        ReadTensor(file, prefix + "text_indices", DType::kI64, 1));
  H3RT_ASSIGN_OR_RETURN(const Tensor audio,
                        ReadTensor(file, prefix + "audio_indices", DType::kI64, 1));
  H3RT_ASSIGN_OR_RETURN(const Tensor video,
                        ReadTensor(file, prefix + "video_indices", DType::kI64, 1));
  H3RT_ASSIGN_OR_RETURN(const Tensor conditions,
                        ReadTensor(file, prefix + "num_condition_video_rows", DType::kI64, 0));
  H3RT_ASSIGN_OR_RETURN(const Tensor positions,
                        ReadTensor(file, prefix + "position_ids", DType::kF64, 2));
  const int64_t condition_rows = *conditions.as<int64_t>();
  LayoutRequest request;
  request.text_rows = text.elements();
  request.audio_latents = audio.elements() / 2;
  request.first_frame = task == "fl2va_first" || task == "fl2va_both";
  request.last_frame = task == "fl2va_last" || task == "fl2va_both";
  // The number of frames follows from the audio, the canvas from the distinct coordinates.
  int64_t frames = 5;
  while (AudioLatents(frames) < request.audio_latents) frames += 17;
  request.latent_frames = LatentFrames(frames);
  std::set<double> heights;
  std::set<double> widths;
  if (positions.shape()[1] != 3 || condition_rows < 0) {
    return DataLoss({.what = "recorded layout of " + task,
                     .got = positions.shape().ToString() + " positions",
                     .wanted = "[rows, 3]",
                     .where = file.path()});
  }
  for (int64_t i = condition_rows; i < video.elements(); ++i) {
    const int64_t row = video.as<int64_t>()[i];
    if (row < 0 || row >= positions.shape()[0]) {
      return DataLoss({.what = "row index out of range", .where = file.path()});
    }
    heights.insert(positions.as<double>()[3 * row + 1]);
    widths.insert(positions.as<double>()[3 * row + 2]);
  }
  request.latent_height = 2 * static_cast<int64_t>(heights.size());
  request.latent_width = 2 * static_cast<int64_t>(widths.size());
  return request;
}

absl::Status RunTask(Recorder& recorder, const SafetensorsFile& file, const std::string& task) {
  H3RT_ASSIGN_OR_RETURN(const LayoutRequest request, RequestOf(file, task));
  H3RT_ASSIGN_OR_RETURN(const PackedLayout layout, BuildLayout(request));
  const std::vector<int64_t> tags(layout.token_tags.begin(), layout.token_tags.end());
  const std::vector<int64_t> conditions = {layout.condition_video_rows};
  const auto compare = [&](const char* what, const ConstTensorView& got) -> absl::Status {
    const std::string key = task + "." + what;
    H3RT_ASSIGN_OR_RETURN(const ConstTensorView want, file.Get(key));
    recorder.Compare("layout." + key, got, want, ParityMetric::kBits, 0);
    return absl::OkStatus();
  };
  H3RT_RETURN_IF_ERROR(compare("position_ids", Doubles(layout.position_ids, 0, layout.rows)));
  H3RT_RETURN_IF_ERROR(compare("token_tags", Ints(tags)));
  H3RT_RETURN_IF_ERROR(compare("text_indices", Ints(layout.text_indices)));
  H3RT_RETURN_IF_ERROR(compare("audio_indices", Ints(layout.audio_indices)));
  H3RT_RETURN_IF_ERROR(compare("video_indices", Ints(layout.video_indices)));
  return compare(
      "num_condition_video_rows",
      ConstTensorView(reinterpret_cast<const std::byte*>(conditions.data()), DType::kI64, Shape{}));
}

// 1344x768, 124 frames; the text fills the recorded number of rows.
absl::Status RunCanonical(Recorder& recorder, const SafetensorsFile& file) {
  H3RT_ASSIGN_OR_RETURN(const Tensor rows, ReadTensor(file, "canonical_rows", DType::kI64, 0));
  H3RT_ASSIGN_OR_RETURN(const Tensor head,
                        ReadTensor(file, "canonical_position_ids_head", DType::kF64, 2));
  H3RT_ASSIGN_OR_RETURN(const Tensor tail,
                        ReadTensor(file, "canonical_position_ids_tail", DType::kF64, 2));
  LayoutRequest request = {.latent_frames = LatentFrames(124),
                           .latent_height = 768 / 16,
                           .latent_width = 1344 / 16,
                           .audio_latents = AudioLatents(124)};
  request.text_rows =
      *rows.as<int64_t>() - request.latent_frames * 24 * 42 - 2 * request.audio_latents;
  H3RT_ASSIGN_OR_RETURN(const PackedLayout layout, BuildLayout(request));
  if (head.shape()[0] > layout.rows || tail.shape()[0] > layout.rows) {
    return DataLoss({.what = "more recorded rows than the layout has", .where = file.path()});
  }
  recorder.Compare("layout.canonical_head", Doubles(layout.position_ids, 0, head.shape()[0]),
                   head.view(), ParityMetric::kBits, 0);
  recorder.Compare("layout.canonical_tail",
                   Doubles(layout.position_ids, layout.rows - tail.shape()[0], tail.shape()[0]),
                   tail.view(), ParityMetric::kBits, 0);
  return absl::OkStatus();
}

// "video.21.sigmas" -> 21.
absl::StatusOr<int64_t> PointsOf(const std::string& name) {
  const size_t dot = name.find('.');
  int64_t points = 0;
  const auto [end, error] =
      std::from_chars(name.data() + dot + 1, name.data() + name.size(), points);
  if (error != std::errc() || *end != '.') {
    return DataLoss({.what = "tensor name", .got = name, .wanted = "video|audio.N.sigmas"});
  }
  return points;
}

}  // namespace

absl::StatusOr<double> SchedulerShift(const Recorder& recorder, const char* folder,
                                      double released) {
  const std::string path = recorder.PathOf(folder) + "/scheduler_config.json";
  const absl::StatusOr<Json> json = ReadJsonFile(path);
  if (absl::IsNotFound(json.status())) return released;
  if (!json.ok()) return json.status();
  H3RT_ASSIGN_OR_RETURN(const SchedulerConfig config, SchedulerConfig::FromJson(*json, path));
  return config.shift;
}

absl::Status RunLayout(Recorder& recorder) {
  H3RT_ASSIGN_OR_RETURN(const std::optional<SafetensorsFile> file,
                        recorder.Open("layout.safetensors"));
  if (!file) return absl::OkStatus();
  for (const char* task : {"t2va", "fl2va_first", "fl2va_last", "fl2va_both"}) {
    if (!file->Has(std::string(task) + ".position_ids")) {
      recorder.Missing(std::string("layout.") + task + ".position_ids");
      continue;
    }
    H3RT_RETURN_IF_ERROR(RunTask(recorder, *file, task));
  }
  return file->Has("canonical_rows") ? RunCanonical(recorder, *file) : absl::OkStatus();
}

absl::Status RunSchedule(Recorder& recorder) {
  H3RT_ASSIGN_OR_RETURN(const std::optional<SafetensorsFile> file,
                        recorder.Open("schedule.safetensors"));
  if (!file) return absl::OkStatus();
  H3RT_ASSIGN_OR_RETURN(const double video_shift, SchedulerShift(recorder, "scheduler", 12.0));
  H3RT_ASSIGN_OR_RETURN(const double audio_shift, SchedulerShift(recorder, "audio_scheduler", 3.0));
  for (const auto& [name, entry] : file->entries()) {
    const bool video = name.rfind("video.", 0) == 0;
    if (!video && name.rfind("audio.", 0) != 0) continue;
    H3RT_ASSIGN_OR_RETURN(const int64_t points, PointsOf(name));
    H3RT_ASSIGN_OR_RETURN(const Schedule schedule,
                          MakeSchedule(points - 1, video ? video_shift : audio_shift));
    H3RT_ASSIGN_OR_RETURN(const ConstTensorView want, file->Get(name));
    const bool sigmas = name.find(".sigmas") != std::string::npos;
    const std::string pair = name.substr(0, name.rfind('.')) + (sigmas ? ".timesteps" : ".sigmas");
    if (!file->Has(pair)) recorder.Missing("schedule." + pair);
    const std::vector<float>& got = sigmas ? schedule.sigmas : schedule.timesteps;
    recorder.Compare("schedule." + name,
                     ConstTensorView::Of(got.data(), {static_cast<int64_t>(got.size())}), want,
                     ParityMetric::kBits, 0);
  }
  return absl::OkStatus();
}

}  // namespace h3rt::parity
