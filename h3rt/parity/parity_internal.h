// What the parts of the parity run share.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "h3rt/base/exec.h"
#include "h3rt/base/status.h"
#include "h3rt/io/safetensors.h"
#include "h3rt/parity/parity.h"
#include "h3rt/tensor/tensor.h"
#include "h3rt/tensor/view.h"

namespace h3rt::parity {

// Bounds of the issue that the project is held to; spec h3 section 15 and 16.
inline constexpr double kTransformerF32 = 2e-6;
inline constexpr double kTransformerBf16 = 3e-3;
inline constexpr double kTrajectory = 1e-6;
inline constexpr double kVideoVae = 3e-6;
inline constexpr double kAudioVae = 2e-5;
inline constexpr double kConvRot = 1e-6;
inline constexpr double kEndToEndLatents = 2e-6;
inline constexpr double kEndToEndFrames = 5e-6;  // absolute
inline constexpr double kEndToEndSamples = 2e-5;

// An aligned copy of a tensor whose dtype is known; `rank` -1: any. kDataLoss, naming the file, for
// another dtype or rank, so that nothing below has to ask again.
absl::StatusOr<Tensor> ReadTensor(const SafetensorsFile& file, std::string_view name, DType dtype,
                                  int rank = -1);

// Collects rows of one folder.
class Recorder {
 public:
  Recorder(std::string folder, std::string path, ParityReport& report,
           const std::function<void(const ParityRow&)>& on_row)
      : folder_(std::move(folder)), path_(std::move(path)), report_(report), on_row_(on_row) {}

  // Compares `got` with `want` (F32, BF16 or F16 values widened to float; other dtypes only with
  // kBits). Leading extents of 1 are ignored when shapes are compared.
  void Compare(const std::string& name, const ConstTensorView& got, const ConstTensorView& want,
               ParityMetric metric, double bound);
  // A row whose comparison was made elsewhere.
  void Add(ParityRow row);

  size_t rows() const { return report_.rows.size(); }
  // A failing row when `file` is there and no row has come since there were `before`: an emptied
  // file must not pass.
  void RequireRows(std::string_view file, size_t before);
  // Lists a tensor of the form that a file does not hold.
  void Missing(const std::string& name);

  const std::string& path() const { return path_; }
  std::string PathOf(std::string_view file) const { return path_ + "/" + std::string(file); }
  // True when the file or folder exists; otherwise it is listed as absent.
  bool Exists(std::string_view file);
  // Opens a file of the folder; nothing when it is absent, which is noted.
  absl::StatusOr<std::optional<SafetensorsFile>> Open(std::string_view file);

 private:
  std::string folder_;
  std::string path_;
  ParityReport& report_;
  const std::function<void(const ParityRow&)>& on_row_;
};

// The shift of a scheduler folder's configuration, or the released one when there is none.
absl::StatusOr<double> SchedulerShift(const Recorder& recorder, const char* folder,
                                      double released);

absl::Status RunRng(Recorder& recorder);
absl::Status RunFormats(Recorder& recorder);
absl::Status RunLayout(Recorder& recorder);
absl::Status RunSchedule(Recorder& recorder);
absl::Status RunTransformer(Recorder& recorder, const ExecContext& context);
absl::Status RunTrajectory(Recorder& recorder, const ExecContext& context);
absl::Status RunVideoVae(Recorder& recorder, const ExecContext& context);
absl::Status RunAudioVae(Recorder& recorder, const ExecContext& context);
absl::Status RunEndToEnd(Recorder& recorder, const ExecContext& context);

}  // namespace h3rt::parity
