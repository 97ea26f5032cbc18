#include "h3rt/io/quantized.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "h3rt/num/bf16.h"
#include "h3rt/num/f16.h"
#include "h3rt/num/fp8_scaled.h"
#include "h3rt/num/int8_convrot.h"
#include "h3rt/num/nvfp4.h"

namespace h3rt {
namespace {

// Description files are a few dozen bytes; more is not one.
constexpr int64_t kMaxDescription = 65536;
// Rows that are dequantised at a time, so that a bfloat16 result needs no float32 copy of itself.
constexpr int64_t kRows = 64;

std::string DTypeNames(const std::vector<DType>& dtypes) {
  std::string out;
  for (const DType dtype : dtypes) {
    if (!out.empty()) out += " or ";
    out += NameOf(dtype);
  }
  return out;
}

std::string ShapeNames(const std::vector<Shape>& shapes) {
  std::string out;
  for (const Shape& shape : shapes) {
    if (!out.empty()) out += " or ";
    out += shape.ToString();
  }
  return out;
}

absl::Status BadDescription(const std::string& layer, const std::string& got,
                            const std::string& wanted, const std::string& where) {
  return DataLoss(
      {.what = "quantisation of \"" + layer + "\"", .got = got, .wanted = wanted, .where = where});
}

std::vector<Shape> ScalarShapes() { return {Shape{}, Shape{1}}; }

// Floats of a small tensor, aligned and widened.
absl::StatusOr<std::vector<float>> ReadFloats(const SafetensorsSet& set, const std::string& key) {
  H3RT_ASSIGN_OR_RETURN(const ConstTensorView view, set.Get(key));
  H3RT_ASSIGN_OR_RETURN(const Tensor copy, Tensor::Copy(view));
  std::vector<float> out(static_cast<size_t>(copy.elements()));
  for (size_t i = 0; i < out.size(); ++i) {
    switch (copy.dtype()) {
      case DType::kF32:
        out[i] = copy.as<float>()[i];
        break;
      case DType::kBF16:
        out[i] = Bf16ToFloat(copy.as<uint16_t>()[i]);
        break;
      case DType::kF16:
        out[i] = F16ToFloat(copy.as<uint16_t>()[i]);
        break;
      default:
        return Internal({.what = "scale dtype was not checked", .where = key});
    }
  }
  return out;
}

std::span<const uint8_t> Bytes(const ConstTensorView& view) {
  return {reinterpret_cast<const uint8_t*>(view.data()), static_cast<size_t>(view.bytes())};
}

// The codec's own errors are about values or sizes of a file, whatever code they carry there.
absl::Status AsDataLoss(const absl::Status& status, const std::string& key,
                        const std::string& where) {
  if (status.ok()) return status;
  return DataLoss(
      {.what = "quantised tensor \"" + key + "\"", .got = MessageOf(status), .where = where});
}

// Dequantises rows [begin, end) into `out`.
class RowReader {
 public:
  static absl::StatusOr<RowReader> Create(const SafetensorsSet& set,
                                          const QuantizedMatrix& matrix) {
    RowReader reader(matrix);
    H3RT_ASSIGN_OR_RETURN(reader.codes_, set.Get(matrix.codes));
    if (matrix.format == QuantFormat::kNvfp4) {
      H3RT_ASSIGN_OR_RETURN(reader.block_scales_, set.Get(matrix.scale));
      H3RT_ASSIGN_OR_RETURN(reader.scales_, ReadFloats(set, matrix.tensor_scale));
      if (!matrix.pre_quant_scale.empty()) {
        H3RT_ASSIGN_OR_RETURN(reader.pre_quant_, ReadFloats(set, matrix.pre_quant_scale));
      }
    } else {
      H3RT_ASSIGN_OR_RETURN(reader.scales_, ReadFloats(set, matrix.scale));
    }
    return reader;
  }

  absl::Status Read(int64_t begin, int64_t end, std::span<float> out) const {
    const int64_t rows = end - begin;
    const auto first = static_cast<size_t>(begin * matrix_->cols);
    const auto count = static_cast<size_t>(rows * matrix_->cols);
    std::span<const float> scales = scales_;
    if (scales.size() > 1) {
      scales = scales.subspan(static_cast<size_t>(begin), static_cast<size_t>(rows));
    }
    switch (matrix_->format) {
      case QuantFormat::kFp8:
        return DequantizeFp8Scaled(codes_.dtype() == DType::kE4M3 ? Fp8Kind::kE4m3 : Fp8Kind::kE5m2,
                                   Bytes(codes_).subspan(first, count), rows, matrix_->cols, scales,
                                   out);
      case QuantFormat::kInt8:
        return DequantizeConvRot(
            std::span(reinterpret_cast<const int8_t*>(codes_.data()) + first, count), rows,
            matrix_->cols, matrix_->group, scales, out);
      case QuantFormat::kNvfp4:
        break;
    }
    const Nvfp4View view{.rows = codes_.dim(0),
                         .cols = 2 * codes_.dim(1),
                         .packed = Bytes(codes_),
                         .block_scales = Bytes(block_scales_),
                         .tensor_scale = scales_[0],
                         .order = NibbleOrder::kHighFirst,
                         .pre_quant_scale = pre_quant_};
    return DequantizeNvfp4(view, begin, end, matrix_->cols, out);
  }

 private:
  explicit RowReader(const QuantizedMatrix& matrix) : matrix_(&matrix) {}

  const QuantizedMatrix* matrix_;
  ConstTensorView codes_;
  ConstTensorView block_scales_;
  std::vector<float> scales_;
  std::vector<float> pre_quant_;
};

}  // namespace

absl::StatusOr<QuantizationIndex> QuantizationIndex::Create(const SafetensorsSet& set,
                                                            std::string prefix) {
  QuantizationIndex index;
  index.set_ = &set;
  index.prefix_ = std::move(prefix);
  if (set.Has(index.prefix_ + "scaled_fp8")) {
    index.legacy_ = index.prefix_ + "scaled_fp8";
  } else if (set.Has("scaled_fp8")) {
    index.legacy_ = "scaled_fp8";
  }
  index.any_ = !index.legacy_.empty();
  for (const auto& [key, item] : set.items()) {
    if (key.ends_with(".comfy_quant")) index.any_ = true;
  }
  for (const SafetensorsFile& file : set.files()) {
    const auto it = file.metadata().find("_quantization_metadata");
    if (it == file.metadata().end()) continue;
    const std::string where = file.path() + " _quantization_metadata";
    H3RT_ASSIGN_OR_RETURN(const Json json, ParseJson(it->second, where));
    if (!json.is_object() || !json.contains("layers") || !json["layers"].is_object()) {
      return DataLoss({.what = "quantisation metadata",
                       .got = JsonSnippet(json),
                       .wanted = "an object with \"layers\"",
                       .where = where});
    }
    for (const auto& layer : json["layers"].items()) {
      std::string name = layer.key();
      if (!name.starts_with(index.prefix_)) name = index.prefix_ + name;
      index.metadata_layers_[name] = layer.value();
      index.any_ = true;
    }
  }
  return index;
}

bool QuantizationIndex::Describes(const std::string& layer) const {
  if (set_->Has(layer + ".comfy_quant")) return true;
  if (metadata_layers_.find(layer) != metadata_layers_.end()) return true;
  return !legacy_.empty() && set_->Has(layer + ".scale_weight");
}

std::vector<std::string> QuantizationIndex::Unused(
    const std::set<std::string, std::less<>>& used) const {
  std::vector<std::string> out;
  for (const auto& [layer, description] : metadata_layers_) {
    if (used.find(layer + ".weight") == used.end()) {
      out.push_back("_quantization_metadata " + layer);
    }
  }
  return out;
}

absl::StatusOr<Json> QuantizationIndex::Description(const std::string& layer) const {
  const std::string key = layer + ".comfy_quant";
  if (!set_->Has(key)) {
    const auto it = metadata_layers_.find(layer);
    if (it != metadata_layers_.end()) return it->second;
    const SafetensorsEntry* weight = set_->Find(layer + ".weight");
    const bool e5m2 = weight != nullptr && weight->dtype == DType::kE5M2;
    return Json{{"format", e5m2 ? "float8_e5m2" : "float8_e4m3fn"}};
  }
  const std::string& where = set_->PathOf(key);
  H3RT_ASSIGN_OR_RETURN(const ConstTensorView view, set_->Get(key));
  if (view.dtype() != DType::kU8 || view.rank() != 1 || view.elements() > kMaxDescription) {
    return BadDescription(key, std::string(NameOf(view.dtype())) + " " + view.shape().ToString(),
                          "U8 text of at most 65536 bytes", where);
  }
  const std::string_view text(reinterpret_cast<const char*>(view.data()),
                              static_cast<size_t>(view.bytes()));
  return ParseJson(text, where + " " + key);
}

absl::Status QuantizationIndex::Expect(const std::string& key, const std::vector<DType>& dtypes,
                                       const std::vector<Shape>& shapes) const {
  const SafetensorsEntry* entry = set_->Find(key);
  if (entry == nullptr) {
    return DataLoss({.what = "key \"" + key + "\"",
                     .got = "nothing",
                     .wanted = DTypeNames(dtypes) + " " + ShapeNames(shapes),
                     .where = set_->path()});
  }
  const bool dtype_ok =
      entry->dtype && std::find(dtypes.begin(), dtypes.end(), *entry->dtype) != dtypes.end();
  const bool shape_ok = std::find(shapes.begin(), shapes.end(), entry->shape) != shapes.end();
  if (dtype_ok && shape_ok) return absl::OkStatus();
  return DataLoss({.what = "key \"" + key + "\"",
                   .got = entry->dtype_name + " " + entry->shape.ToString(),
                   .wanted = DTypeNames(dtypes) + " " + ShapeNames(shapes),
                   .where = set_->PathOf(key)});
}

absl::Status QuantizationIndex::ResolveFp8(const std::string& layer,
                                           QuantizedMatrix& matrix) const {
  const DType dtype = matrix.format_name == "float8_e5m2" ? DType::kE5M2 : DType::kE4M3;
  H3RT_RETURN_IF_ERROR(Expect(matrix.codes, {dtype}, {Shape{matrix.rows, matrix.cols}}));
  matrix.scale = layer + ".weight_scale";
  if (!set_->Has(matrix.scale) && set_->Has(layer + ".scale_weight")) {
    matrix.scale = layer + ".scale_weight";
  }
  std::vector<Shape> shapes = ScalarShapes();
  shapes.push_back(Shape{matrix.rows});
  shapes.push_back(Shape{matrix.rows, 1});
  return Expect(matrix.scale, {DType::kF32}, shapes);
}

absl::Status QuantizationIndex::ResolveNvfp4(const std::string& layer,
                                             QuantizedMatrix& matrix) const {
  const int64_t rows = Nvfp4StoredExtent(matrix.rows);
  const int64_t cols = Nvfp4StoredExtent(matrix.cols);
  H3RT_RETURN_IF_ERROR(Expect(matrix.codes, {DType::kU8}, {Shape{rows, cols / 2}}));
  matrix.scale = layer + ".weight_scale";
  H3RT_RETURN_IF_ERROR(Expect(matrix.scale, {DType::kE4M3, DType::kU8},
                              {Shape{Nvfp4ScaleRows(rows), Nvfp4ScaleCols(cols / kNvfp4Block)}}));
  matrix.tensor_scale = layer + ".weight_scale_2";
  H3RT_RETURN_IF_ERROR(Expect(matrix.tensor_scale, {DType::kF32}, ScalarShapes()));
  const std::string pre_quant = layer + ".pre_quant_scale";
  if (set_->Has(pre_quant)) {
    H3RT_RETURN_IF_ERROR(
        Expect(pre_quant, {DType::kF32, DType::kBF16, DType::kF16}, {Shape{matrix.cols}}));
    matrix.pre_quant_scale = pre_quant;
  }
  return absl::OkStatus();
}

absl::Status QuantizationIndex::ResolveInt8(const std::string& layer, const Json& description,
                                            QuantizedMatrix& matrix) const {
  H3RT_RETURN_IF_ERROR(Expect(matrix.codes, {DType::kI8}, {Shape{matrix.rows, matrix.cols}}));
  matrix.scale = layer + ".weight_scale";
  std::vector<Shape> shapes = {Shape{matrix.rows, 1}, Shape{matrix.rows}, Shape{}, Shape{1}};
  H3RT_RETURN_IF_ERROR(Expect(matrix.scale, {DType::kF32}, shapes));
  const bool rotated = description.contains("convrot") && description["convrot"] == true;
  if (!rotated) return absl::OkStatus();
  matrix.group = 256;
  if (description.contains("convrot_groupsize")) {
    const Json& group = description["convrot_groupsize"];
    if (!group.is_number_unsigned() || group.get<uint64_t>() > kConvRotMaxGroup) {
      return BadDescription(layer, JsonSnippet(group), "a convrot_groupsize that is a power of 4",
                            set_->path());
    }
    matrix.group = group.get<int64_t>();
  }
  const absl::Status valid = ValidateConvRotGroup(matrix.cols, matrix.group);
  if (valid.ok()) return valid;
  return BadDescription(layer, MessageOf(valid), "a group that fits the columns", set_->path());
}

absl::StatusOr<QuantizedMatrix> QuantizationIndex::Resolve(
    const std::string& layer, int64_t rows, int64_t cols,
    std::set<std::string, std::less<>>& used) const {
  // Everything that any format keeps beside the weight, so that a layer that cannot be read is
  // reported once and not key by key.
  for (const char* suffix : {".weight", ".comfy_quant", ".weight_scale", ".weight_scale_2",
                             ".input_scale", ".pre_quant_scale", ".scale_weight", ".scale_input"}) {
    if (set_->Has(layer + suffix)) used.insert(layer + suffix);
  }
  QuantizedMatrix matrix;
  matrix.rows = rows;
  matrix.cols = cols;
  matrix.codes = layer + ".weight";
  H3RT_ASSIGN_OR_RETURN(const Json json, Description(layer));
  if (!json.is_object() || !json.contains("format") || !json["format"].is_string()) {
    return BadDescription(layer, JsonSnippet(json), "an object with a \"format\"", set_->path());
  }
  for (const auto& item : json.items()) {
    const std::string& key = item.key();
    if (key != "format" && key != "convrot" && key != "convrot_groupsize" &&
        key != "full_precision_matrix_mult") {
      return Unimplemented(
          {.what = "quantisation of \"" + layer + "\"",
           .got = "unknown option \"" + key.substr(0, 80) + "\" in " + JsonSnippet(json),
           .wanted = "format, convrot, convrot_groupsize or "
                     "full_precision_matrix_mult",
           .where = set_->path()});
    }
  }
  matrix.format_name = json["format"].get<std::string>();
  if (matrix.format_name == "float8_e4m3fn" || matrix.format_name == "float8_e5m2") {
    matrix.format = QuantFormat::kFp8;
    H3RT_RETURN_IF_ERROR(ResolveFp8(layer, matrix));
  } else if (matrix.format_name == "nvfp4") {
    matrix.format = QuantFormat::kNvfp4;
    H3RT_RETURN_IF_ERROR(ResolveNvfp4(layer, matrix));
  } else if (matrix.format_name == "int8_tensorwise") {
    matrix.format = QuantFormat::kInt8;
    H3RT_RETURN_IF_ERROR(ResolveInt8(layer, json, matrix));
  } else {
    for (const auto& [key, item] : set_->items()) {
      if (key.starts_with(layer + ".")) used.insert(key);
    }
    return Unimplemented({.what = "quantisation format \"" + matrix.format_name.substr(0, 80) +
                                  "\" of \"" + layer + "\"",
                          .wanted = "float8_e4m3fn, float8_e5m2, nvfp4 or int8_tensorwise",
                          .where = set_->path()});
  }
  return matrix;
}

absl::StatusOr<Tensor> Dequantize(const SafetensorsSet& set, const QuantizedMatrix& matrix,
                                  DType dtype) {
  const std::string& where = set.PathOf(matrix.codes);
  H3RT_ASSIGN_OR_RETURN(const RowReader reader, RowReader::Create(set, matrix));
  H3RT_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(dtype, Shape{matrix.rows, matrix.cols}));
  std::vector<float> buffer;
  for (int64_t row = 0; row < matrix.rows; row += kRows) {
    const int64_t end = std::min(row + kRows, matrix.rows);
    const int64_t count = (end - row) * matrix.cols;
    if (dtype == DType::kF32) {
      H3RT_RETURN_IF_ERROR(AsDataLoss(
          reader.Read(row, end, {out.as<float>() + row * matrix.cols, static_cast<size_t>(count)}),
          matrix.codes, where));
      continue;
    }
    buffer.resize(static_cast<size_t>(count));
    H3RT_RETURN_IF_ERROR(AsDataLoss(reader.Read(row, end, buffer), matrix.codes, where));
    NarrowToBf16(buffer.data(), out.as<uint16_t>() + row * matrix.cols, count);
  }
  return out;
}

}  // namespace h3rt
