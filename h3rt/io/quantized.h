// Quantised matrices of ComfyUI files: spec h3 sections 10.1 to 10.3. Private to io.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "h3rt/base/json.h"
#include "h3rt/base/status.h"
#include "h3rt/io/safetensors.h"
#include "h3rt/tensor/tensor.h"

namespace h3rt {

enum class QuantFormat { kFp8, kNvfp4, kInt8 };

struct QuantizedMatrix {
  QuantFormat format = QuantFormat::kFp8;
  std::string format_name;  // as the file spells it
  int64_t rows = 0;         // of the layer, without padding
  int64_t cols = 0;
  int64_t group = 1;  // of convrot
  std::string codes;  // full keys in the file
  std::string scale;
  std::string tensor_scale;     // nvfp4
  std::string pre_quant_scale;  // nvfp4, may be empty
};

// Finds the description of each quantised layer of a file: a `X.comfy_quant` tensor, an entry of
// the metadata's _quantization_metadata, or the legacy `scaled_fp8` marker.
class QuantizationIndex {
 public:
  // Reads the metadata of every file of the set. kDataLoss when it is not what the format says.
  static absl::StatusOr<QuantizationIndex> Create(const SafetensorsSet& set, std::string prefix);

  // True when the layer (its key without ".weight", with the prefix) is described as quantised.
  bool Describes(const std::string& layer) const;
  // The matrix with its companions checked: dtypes, shapes, presence. Keys that belong to the layer
  // are added to `used`, also on failure. kUnimplemented names a format that is not read, with the
  // key; kDataLoss names what does not fit.
  absl::StatusOr<QuantizedMatrix> Resolve(const std::string& layer, int64_t rows, int64_t cols,
                                          std::set<std::string, std::less<>>& used) const;
  // Layers of _quantization_metadata that nothing asked for.
  std::vector<std::string> Unused(const std::set<std::string, std::less<>>& used) const;
  // Key of the legacy marker, empty when there is none.
  const std::string& legacy_marker() const { return legacy_; }
  bool any() const { return any_; }

 private:
  absl::StatusOr<Json> Description(const std::string& layer) const;
  absl::Status ResolveFp8(const std::string& layer, QuantizedMatrix& matrix) const;
  absl::Status ResolveNvfp4(const std::string& layer, QuantizedMatrix& matrix) const;
  absl::Status ResolveInt8(const std::string& layer, const Json& description,
                           QuantizedMatrix& matrix) const;
  // kDataLoss unless `key` exists with one of the dtypes and shapes.
  absl::Status Expect(const std::string& key, const std::vector<DType>& dtypes,
                      const std::vector<Shape>& shapes) const;

  const SafetensorsSet* set_ = nullptr;
  std::string prefix_;
  std::map<std::string, Json> metadata_layers_;  // by layer, with the prefix
  std::string legacy_;
  bool any_ = false;
};

// The matrix as float32 or bfloat16 (rounded once from the float32 value), [rows, cols].
// kDataLoss with file and key when codes or scales are not finite.
absl::StatusOr<Tensor> Dequantize(const SafetensorsSet& set, const QuantizedMatrix& matrix,
                                  DType dtype);

}  // namespace h3rt
