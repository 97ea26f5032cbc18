// Binds the tensors that a layout expects to those that a file holds. Private to io.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "h3rt/base/status.h"
#include "h3rt/io/checkpoint.h"
#include "h3rt/io/quantized.h"
#include "h3rt/io/safetensors.h"
#include "h3rt/io/tensor_list.h"

namespace h3rt {

// What checking a file against a list found. Nothing of it needs the data.
struct BindReport {
  std::vector<std::string> missing;
  std::vector<std::string> unknown;
  std::vector<absl::Status> wrong;               // shapes, dtypes, formats
  std::map<std::string, int64_t> quant_formats;  // format name -> layers
  bool ok() const { return missing.empty() && unknown.empty() && wrong.empty(); }
  // The first problem, worst first: what cannot be read, then keys that are missing or unknown.
  absl::Status ToStatus(const std::string& where) const;
};

class Binder {
 public:
  // `prefix` is in front of every key of the file. Both arguments outlive the binder.
  static absl::StatusOr<Binder> Create(const SafetensorsSet& set, const std::string& prefix);

  BindReport Check(const std::vector<SourceTensor>& list);
  // After a Check without findings: makes the views and what has to be computed. `dequantized` is
  // F32 or BF16. kDataLoss when values that h3rt computes itself are others in the file.
  absl::StatusOr<WeightStore> Materialize(DType dequantized) const;
  bool quantized() const { return quant_.any(); }

 private:
  struct Bound {
    SourceTensor tensor;
    bool quantized = false;
    QuantizedMatrix matrix;
  };

  Binder(const SafetensorsSet& set, std::string prefix, QuantizationIndex quant)
      : set_(&set), prefix_(std::move(prefix)), quant_(std::move(quant)) {}
  void CheckOne(const SourceTensor& tensor, BindReport& report);
  void CheckUnknown(BindReport& report) const;
  // Aligned, whole, in the file's own order of rows.
  absl::StatusOr<ConstTensorView> Load(const Bound& bound, DType dequantized,
                                       WeightStore& store) const;
  absl::StatusOr<Tensor> Fold(const Bound& bound) const;
  absl::Status CheckDropped(const SourceTensor& tensor) const;
  static void AddSplit(const SourceTensor& tensor, const ConstTensorView& view, WeightStore& store);

  const SafetensorsSet* set_;
  std::string prefix_;
  QuantizationIndex quant_;
  std::vector<Bound> bound_;
  std::set<std::string, std::less<>> used_;
};

}  // namespace h3rt
