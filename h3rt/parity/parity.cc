#include "h3rt/parity/parity.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "h3rt/num/bf16.h"
#include "h3rt/num/compare.h"
#include "h3rt/num/f16.h"
#include "h3rt/parity/parity_internal.h"
#include "h3rt/tensor/tensor.h"

namespace h3rt {
namespace parity {
namespace {

// Contiguous float values of an F32, BF16 or F16 view.
absl::StatusOr<std::vector<float>> ToFloats(const ConstTensorView& view) {
  H3RT_ASSIGN_OR_RETURN(const Tensor copy, Tensor::Copy(view));
  std::vector<float> out(static_cast<size_t>(copy.elements()));
  switch (copy.dtype()) {
    case DType::kF32:
      std::memcpy(out.data(), copy.as<float>(), out.size() * sizeof(float));
      return out;
    case DType::kBF16:
      WidenBf16(copy.as<uint16_t>(), out.data(), copy.elements());
      return out;
    case DType::kF16:
      WidenF16(copy.as<uint16_t>(), out.data(), copy.elements());
      return out;
    default:
      return InvalidArgument({.what = "dtype of a tensor to compare by value",
                              .got = std::string(NameOf(copy.dtype())),
                              .wanted = "F32, BF16 or F16"});
  }
}

// Fixtures carry a leading batch extent of 1 that the program's tensors do not have.
std::vector<int64_t> WithoutLeadingOnes(const Shape& shape) {
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  while (!dims.empty() && dims.front() == 1) dims.erase(dims.begin());
  return dims;
}

absl::Status FillBits(const ConstTensorView& got, const ConstTensorView& want, ParityRow& row) {
  if (got.dtype() != want.dtype()) {
    row.note = fmt::format("dtype {} instead of {}", NameOf(got.dtype()), NameOf(want.dtype()));
    return absl::OkStatus();
  }
  H3RT_ASSIGN_OR_RETURN(const Tensor a, Tensor::Copy(got));
  H3RT_ASSIGN_OR_RETURN(const Tensor b, Tensor::Copy(want));
  const int64_t size = SizeOf(a.dtype());
  int64_t unequal = 0;
  for (int64_t i = 0; i < a.elements(); ++i) {
    const auto at = static_cast<size_t>(i * size);
    if (std::memcmp(a.view().data() + at, b.view().data() + at, static_cast<size_t>(size)) == 0) {
      continue;
    }
    if (unequal++ == 0) row.worst_index = i;
  }
  row.value = static_cast<double>(unequal);
  row.ok = unequal == 0;
  return absl::OkStatus();
}

absl::Status FillValues(const ConstTensorView& got, const ConstTensorView& want, ParityRow& row) {
  H3RT_ASSIGN_OR_RETURN(const std::vector<float> a, ToFloats(got));
  H3RT_ASSIGN_OR_RETURN(const std::vector<float> b, ToFloats(want));
  const CompareResult result = CompareFloats(a, b);
  row.value = row.metric == ParityMetric::kMaxAbs ? result.max_abs : result.relative_l2;
  row.worst_index = result.worst_index;
  row.ok = row.metric == ParityMetric::kMaxAbs ? WithinAbs(result, row.bound)
                                               : Within(result, row.bound);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Tensor> ReadTensor(const SafetensorsFile& file, std::string_view name, DType dtype,
                                  int rank) {
  H3RT_ASSIGN_OR_RETURN(const ConstTensorView view, file.Get(name));
  if (view.dtype() != dtype || (rank >= 0 && view.rank() != rank)) {
    return DataLoss({.what = "tensor " + std::string(name),
                     .got = std::string(NameOf(view.dtype())) + " " + view.shape().ToString(),
                     .wanted = std::string(NameOf(dtype)) +
                               (rank >= 0 ? " of rank " + std::to_string(rank) : std::string()),
                     .where = file.path()});
  }
  return Tensor::Copy(view);
}

void Recorder::Add(ParityRow row) {
  row.folder = folder_;
  if (on_row_) on_row_(row);
  report_.rows.push_back(std::move(row));
}

void Recorder::Compare(const std::string& name, const ConstTensorView& got,
                       const ConstTensorView& want, ParityMetric metric, double bound) {
  ParityRow row = {.folder = {},
                   .name = name,
                   .shape = want.shape().ToString(),
                   .metric = metric,
                   .bound = bound,
                   .note = {}};
  if (WithoutLeadingOnes(got.shape()) != WithoutLeadingOnes(want.shape())) {
    row.note = "shape " + got.shape().ToString() + " instead of " + want.shape().ToString();
  } else if (want.elements() == 0) {
    row.note = "nothing to compare";
  } else {
    const absl::Status status =
        metric == ParityMetric::kBits ? FillBits(got, want, row) : FillValues(got, want, row);
    if (!status.ok()) row.note = MessageOf(status);
  }
  Add(std::move(row));
}

void Recorder::RequireRows(std::string_view file, size_t before) {
  struct stat info = {};
  if (rows() > before || ::stat(PathOf(file).c_str(), &info) != 0) return;
  Add({.folder = {},
       .name = std::string(file),
       .shape = "-",
       .note = "no tensor of this file was compared"});
}

void Recorder::Missing(const std::string& name) {
  report_.absent.push_back((folder_.empty() ? "" : folder_ + "/") + name);
}

bool Recorder::Exists(std::string_view file) {
  struct stat info = {};
  if (::stat(PathOf(file).c_str(), &info) == 0) return true;
  report_.absent.push_back((folder_.empty() ? "" : folder_ + "/") + std::string(file));
  return false;
}

absl::StatusOr<std::optional<SafetensorsFile>> Recorder::Open(std::string_view file) {
  if (!Exists(file)) return std::optional<SafetensorsFile>();
  H3RT_ASSIGN_OR_RETURN(SafetensorsFile opened, SafetensorsFile::Open(PathOf(file)));
  return std::optional<SafetensorsFile>(std::move(opened));
}

}  // namespace parity

namespace {

bool IsFolder(const std::string& path) {
  struct stat info = {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

std::vector<std::string> FoldersIn(const std::string& path) {
  std::vector<std::string> out;
  DIR* dir = ::opendir(path.c_str());
  if (dir == nullptr) return out;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string name = entry->d_name;
    if (name[0] != '.' && IsFolder(path + "/" + name)) out.push_back(name);
  }
  ::closedir(dir);
  std::sort(out.begin(), out.end());
  return out;
}

// A model folder has a network or recorded tensors of one; files alone tell it from the folder
// above.
bool IsModelFolder(const std::string& path) {
  for (const char* name : {"transformer", "vae", "audio_vae", "layout.safetensors",
                           "schedule.safetensors", "transformer_forward_f32.safetensors"}) {
    struct stat info = {};
    if (::stat((path + "/" + name).c_str(), &info) == 0) return true;
  }
  return false;
}

absl::Status RunModelFolder(parity::Recorder recorder, const ExecContext& context) {
  struct Part {
    const char* file;
    const char* network;  // the file is compared only where this folder is; null: always
    absl::Status (*run)(parity::Recorder&, const ExecContext&);
  };
  static constexpr Part kParts[] = {
      {"layout.safetensors", nullptr, [](auto& r, auto&) { return parity::RunLayout(r); }},
      {"schedule.safetensors", nullptr, [](auto& r, auto&) { return parity::RunSchedule(r); }},
      {"transformer_forward_f32.safetensors", "transformer", parity::RunTransformer},
      {"trajectory_f32.safetensors", "transformer", parity::RunTrajectory},
      {"vae.safetensors", "vae", parity::RunVideoVae},
      {"audio_vae.safetensors", "audio_vae", parity::RunAudioVae},
      {"end_to_end_f32.safetensors", nullptr, parity::RunEndToEnd},
  };
  for (const Part& part : kParts) {
    const size_t before = recorder.rows();
    H3RT_RETURN_IF_ERROR(part.run(recorder, context));
    if (part.network == nullptr || IsFolder(recorder.PathOf(part.network))) {
      recorder.RequireRows(part.file, before);
    }
  }
  return absl::OkStatus();
}

}  // namespace

const char* NameOf(ParityMetric metric) {
  switch (metric) {
    case ParityMetric::kBits:
      return "bits";
    case ParityMetric::kRelativeL2:
      return "rel_l2";
    case ParityMetric::kMaxAbs:
      return "max_abs";
  }
  return "?";
}

int64_t ParityReport::failures() const {
  return std::count_if(rows.begin(), rows.end(), [](const ParityRow& row) { return !row.ok; });
}

Json ParityReport::ToJson() const {
  Json json = {{"compared", rows.size()},
               {"failed", failures()},
               {"ok", !rows.empty() && failures() == 0},
               {"absent", absent},
               {"rows", Json::array()}};
  for (const ParityRow& row : rows) {
    Json item = {{"folder", row.folder},           {"name", row.name},   {"shape", row.shape},
                 {"metric", NameOf(row.metric)},   {"value", row.value}, {"bound", row.bound},
                 {"worst_index", row.worst_index}, {"ok", row.ok}};
    if (!row.note.empty()) item["note"] = row.note;
    json["rows"].push_back(std::move(item));
  }
  return json;
}

std::string FormatRow(const ParityRow& row) {
  const std::string name = (row.folder.empty() ? "" : row.folder + "/") + row.name;
  std::string text =
      fmt::format("{:<4} {:<52} {:<20} {:>7} {:>10.3g} {:>8.1g} {:>9}", row.ok ? "ok" : "FAIL",
                  name, row.shape, NameOf(row.metric), row.value, row.bound, row.worst_index);
  if (!row.note.empty()) text += "  " + row.note;
  return text;
}

absl::StatusOr<ParityReport> RunParity(const std::string& dir, const ExecContext& context,
                                       const std::function<void(const ParityRow&)>& on_row) {
  if (!IsFolder(dir)) return NotFound({.what = "no such folder", .where = dir});
  ParityReport report;
  if (IsModelFolder(dir)) {
    H3RT_RETURN_IF_ERROR(RunModelFolder(parity::Recorder("", dir, report, on_row), context));
    return report;
  }
  parity::Recorder top("", dir, report, on_row);
  H3RT_RETURN_IF_ERROR(parity::RunRng(top));
  top.RequireRows("rng.safetensors", 0);
  const size_t before = top.rows();
  H3RT_RETURN_IF_ERROR(parity::RunFormats(top));
  top.RequireRows("formats.safetensors", before);
  for (const std::string& name : FoldersIn(dir)) {
    if (!IsModelFolder(dir + "/" + name)) continue;
    H3RT_RETURN_IF_ERROR(
        RunModelFolder(parity::Recorder(name, dir + "/" + name, report, on_row), context));
  }
  return report;
}

}  // namespace h3rt
