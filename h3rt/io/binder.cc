#include "h3rt/io/binder.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>
#include <string_view>
#include <utility>

#include "h3rt/base/check.h"
#include "h3rt/num/bf16.h"
#include "h3rt/num/f16.h"

namespace h3rt {
namespace {

constexpr size_t kListed = 5;

std::string Listing(const std::vector<std::string>& keys) {
  std::string out = std::to_string(keys.size()) + " (";
  for (size_t i = 0; i < keys.size() && i < kListed; ++i) {
    if (i > 0) out += ", ";
    out += keys[i].substr(0, 200);
  }
  if (keys.size() > kListed) out += ", ...";
  return out + ")";
}

bool Accepts(DTypes allowed, std::optional<DType> dtype) {
  if (!dtype) return false;
  if (*dtype == DType::kF32) return true;
  return allowed == DTypes::kAnyFloat && (*dtype == DType::kBF16 || *dtype == DType::kF16);
}

std::string_view NameOf(DTypes allowed) {
  return allowed == DTypes::kF32 ? "F32" : "F32, BF16 or F16";
}

std::string WithoutSuffix(const std::string& text, std::string_view suffix) {
  H3RT_CHECK(text.ends_with(suffix));
  return text.substr(0, text.size() - suffix.size());
}

// What stands after the last dot: "weight" or "bias".
std::string LastPart(const std::string& key) { return key.substr(key.rfind('.') + 1); }

double ElementOf(const Tensor& tensor, int64_t i) {
  if (tensor.dtype() == DType::kF32) return static_cast<double>(tensor.as<float>()[i]);
  const uint16_t bits = tensor.as<uint16_t>()[i];
  return static_cast<double>(tensor.dtype() == DType::kBF16 ? Bf16ToFloat(bits) : F16ToFloat(bits));
}

// How far a stored value may lie from the exact one: two units in the last place of F32, for a
// power and a reciprocal that were each rounded; one unit of a type to which that was narrowed.
double Tolerance(DType dtype, double exact) {
  if (exact == 0.0) return 0.0;
  const int exponent = std::ilogb(exact);
  if (dtype == DType::kF32) return std::ldexp(2.0, exponent - 23);
  if (dtype == DType::kBF16) return std::ldexp(1.0, exponent - 7);
  return std::ldexp(1.0, std::max(exponent, -14) - 10);
}

}  // namespace

absl::Status BindReport::ToStatus(const std::string& where) const {
  if (!wrong.empty()) {
    if (wrong.size() == 1) return wrong[0];
    return absl::Status(wrong[0].code(),
                        MessageOf(wrong[0]) + " and " + std::to_string(wrong.size() - 1) + " more");
  }
  if (ok()) return absl::OkStatus();
  std::string what = "checkpoint keys";
  std::string got;
  if (!missing.empty()) got = "missing " + Listing(missing);
  if (!unknown.empty()) got += (got.empty() ? "unknown " : ", unknown ") + Listing(unknown);
  return DataLoss({.what = std::move(what),
                   .got = std::move(got),
                   .wanted = "every key of the layout and no other",
                   .where = where});
}

absl::StatusOr<Binder> Binder::Create(const SafetensorsSet& set, const std::string& prefix) {
  H3RT_ASSIGN_OR_RETURN(QuantizationIndex quant, QuantizationIndex::Create(set, prefix));
  return Binder(set, prefix, std::move(quant));
}

BindReport Binder::Check(const std::vector<SourceTensor>& list) {
  BindReport report;
  bound_.clear();
  used_.clear();
  for (const SourceTensor& tensor : list) CheckOne(tensor, report);
  CheckUnknown(report);
  return report;
}

void Binder::CheckOne(const SourceTensor& tensor, BindReport& report) {
  const std::string key = prefix_ + tensor.key;
  const SafetensorsEntry* entry = set_->Find(key);
  if (entry == nullptr) {
    if (!tensor.optional) report.missing.push_back(tensor.key);
    return;
  }
  used_.insert(key);
  if (tensor.quantizable && tensor.key.ends_with(".weight")) {
    const std::string layer = WithoutSuffix(key, ".weight");
    if (quant_.Describes(layer)) {
      absl::StatusOr<QuantizedMatrix> matrix =
          quant_.Resolve(layer, tensor.shape[0], tensor.shape[1], used_);
      if (!matrix.ok()) {
        report.wrong.push_back(matrix.status());
        return;
      }
      ++report.quant_formats[matrix->format_name];
      bound_.push_back({tensor, true, *std::move(matrix)});
      return;
    }
  }
  const bool shape_ok = tensor.any_shape || entry->shape == tensor.shape;
  if (!shape_ok || !Accepts(tensor.dtypes, entry->dtype)) {
    report.wrong.push_back(
        DataLoss({.what = "key \"" + key + "\"",
                  .got = entry->dtype_name + " " + entry->shape.ToString(),
                  .wanted = std::string(NameOf(tensor.dtypes)) + " " + tensor.shape.ToString(),
                  .where = set_->PathOf(key)}));
    return;
  }
  if (tensor.split == Split::kWeightNorm) {
    const std::string gain = WithoutSuffix(key, "_v") + "_g";
    const SafetensorsEntry* found = set_->Find(gain);
    std::vector<int64_t> dims(static_cast<size_t>(tensor.shape.rank()), 1);
    dims[0] = tensor.shape[0];
    const Shape wanted = Shape::FromDims(dims).value();
    if (found == nullptr) {
      report.missing.push_back(gain.substr(prefix_.size()));
      return;
    }
    used_.insert(gain);
    if (found->dtype != DType::kF32 || found->shape != wanted) {
      report.wrong.push_back(DataLoss({.what = "key \"" + gain + "\"",
                                       .got = found->dtype_name + " " + found->shape.ToString(),
                                       .wanted = "F32 " + wanted.ToString(),
                                       .where = set_->PathOf(gain)}));
      return;
    }
  }
  bound_.push_back({tensor, false, {}});
}

void Binder::CheckUnknown(BindReport& report) const {
  for (const auto& [key, item] : set_->items()) {
    if (used_.find(key) == used_.end() && key != quant_.legacy_marker()) {
      report.unknown.push_back(key);
    }
  }
  for (std::string& layer : quant_.Unused(used_)) report.unknown.push_back(std::move(layer));
}

absl::StatusOr<ConstTensorView> Binder::Load(const Bound& bound, DType dequantized,
                                             WeightStore& store) const {
  if (bound.quantized) {
    H3RT_ASSIGN_OR_RETURN(Tensor tensor, Dequantize(*set_, bound.matrix, dequantized));
    return store.AddBacking(std::move(tensor));
  }
  H3RT_ASSIGN_OR_RETURN(const ConstTensorView view, set_->Get(prefix_ + bound.tensor.key));
  if (IsAligned(view)) return view;
  // The format does not promise alignment; typed reads need it.
  H3RT_ASSIGN_OR_RETURN(Tensor copy, Tensor::Copy(view));
  return store.AddBacking(std::move(copy));
}

absl::StatusOr<Tensor> Binder::Fold(const Bound& bound) const {
  const std::string key = prefix_ + bound.tensor.key;
  H3RT_ASSIGN_OR_RETURN(const ConstTensorView v_view, set_->Get(key));
  H3RT_ASSIGN_OR_RETURN(const ConstTensorView g_view, set_->Get(WithoutSuffix(key, "_v") + "_g"));
  H3RT_ASSIGN_OR_RETURN(Tensor out, Tensor::Copy(v_view));
  H3RT_ASSIGN_OR_RETURN(const Tensor gain, Tensor::Copy(g_view));
  const int64_t rows = out.shape()[0];
  const int64_t inner = rows > 0 ? out.elements() / rows : 0;
  for (int64_t row = 0; row < rows; ++row) {
    float* const w = out.as<float>() + row * inner;
    double sum = 0.0;
    for (int64_t i = 0; i < inner; ++i)
      sum += static_cast<double>(w[i]) * static_cast<double>(w[i]);
    const double norm = std::sqrt(sum);
    if (!(norm > 0.0) || !std::isfinite(norm)) {
      return DataLoss({.what = "key \"" + key + "\" row " + std::to_string(row),
                       .got = "norm " + std::to_string(norm),
                       .wanted = "a finite norm above 0 to divide by",
                       .where = set_->PathOf(key)});
    }
    const double g = static_cast<double>(gain.as<float>()[row]);
    for (int64_t i = 0; i < inner; ++i) {
      w[i] = static_cast<float>(g * static_cast<double>(w[i]) / norm);
    }
  }
  return out;
}

absl::Status Binder::CheckDropped(const SourceTensor& tensor) const {
  if (tensor.wanted.empty()) return absl::OkStatus();
  const std::string key = prefix_ + tensor.key;
  H3RT_ASSIGN_OR_RETURN(const ConstTensorView view, set_->Get(key));
  H3RT_ASSIGN_OR_RETURN(const Tensor values, Tensor::Copy(view));
  for (int64_t i = 0; i < values.elements(); ++i) {
    const double wanted = tensor.wanted[tensor.wanted.size() == 1 ? 0 : static_cast<size_t>(i)];
    const double got = ElementOf(values, i);
    if (std::fabs(got - wanted) <= Tolerance(values.dtype(), wanted)) continue;
    std::ostringstream numbers[2];
    numbers[0] << std::setprecision(9) << got;
    numbers[1] << std::setprecision(9) << wanted;
    return DataLoss({.what = "key \"" + key + "\" element " + std::to_string(i),
                     .got = numbers[0].str(),
                     .wanted = numbers[1].str() + ", which is computed and not read",
                     .where = set_->PathOf(key)});
  }
  return absl::OkStatus();
}

void Binder::AddSplit(const SourceTensor& tensor, const ConstTensorView& view, WeightStore& store) {
  const std::string part = "." + LastPart(tensor.key);
  const int64_t rows = view.dim(0);
  constexpr const char* kQkv[] = {"to_q", "to_k", "to_v"};
  switch (tensor.split) {
    case Split::kThirds:
      for (int64_t i = 0; i < 3; ++i) {
        store.AddView(tensor.target + kQkv[i] + part,
                      view.Slice(0, i * (rows / 3), (i + 1) * (rows / 3)));
      }
      return;
    case Split::kInterleaved: {
      std::vector<int64_t> dims = {tensor.heads, 3, rows / 3 / tensor.heads};
      for (int d = 1; d < view.rank(); ++d) dims.push_back(view.dim(d));
      const ConstTensorView heads = view.Reshape(Shape::FromDims(dims).value());
      for (int64_t i = 0; i < 3; ++i) {
        store.AddView(tensor.target + kQkv[i] + part, heads.Select(1, i));
      }
      return;
    }
    case Split::kGateFirst:
    case Split::kValueFirst: {
      const bool gate_first = tensor.split == Split::kGateFirst;
      store.AddView(tensor.target + (gate_first ? "gate" : "value") + part,
                    view.Slice(0, 0, rows / 2));
      store.AddView(tensor.target + (gate_first ? "value" : "gate") + part,
                    view.Slice(0, rows / 2, rows));
      return;
    }
    case Split::kNone:
      store.AddView(tensor.target, view);
      return;
    case Split::kWeightNorm:
    case Split::kDrop:
      H3RT_CHECK(false);
  }
}

absl::StatusOr<WeightStore> Binder::Materialize(DType dequantized) const {
  WeightStore store;
  for (const SafetensorsFile& file : set_->files()) store.KeepAlive(file.file());
  for (const Bound& bound : bound_) {
    if (bound.tensor.split == Split::kDrop) {
      H3RT_RETURN_IF_ERROR(CheckDropped(bound.tensor));
      continue;
    }
    if (bound.tensor.split == Split::kWeightNorm) {
      H3RT_ASSIGN_OR_RETURN(Tensor folded, Fold(bound));
      H3RT_RETURN_IF_ERROR(store.AddOwned(bound.tensor.target, std::move(folded)));
      continue;
    }
    H3RT_ASSIGN_OR_RETURN(const ConstTensorView view, Load(bound, dequantized, store));
    AddSplit(bound.tensor, view, store);
  }
  return store;
}

}  // namespace h3rt
