#include "tests/golden/fixture.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <numbers>
#include <utility>

#include "h3rt/base/check.h"

namespace h3rt::golden {

using ref64::Array;
using ref64::Weights;

namespace {

// Unaligned reads: the format promises no alignment.
template <typename T>
T Load(const std::byte* data, int64_t i) {
  T value;
  std::memcpy(&value, data + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

double Widen(const ConstTensorView& view, int64_t i) {
  switch (view.dtype()) {
    case DType::kF64:
      return Load<double>(view.data(), i);
    case DType::kF32:
      return static_cast<double>(Load<float>(view.data(), i));
    case DType::kBF16: {
      const uint32_t bits = static_cast<uint32_t>(Load<uint16_t>(view.data(), i)) << 16;
      float value = 0.0f;
      std::memcpy(&value, &bits, sizeof value);
      return static_cast<double>(value);
    }
    default:
      H3RT_CHECK(false && "a fixture of this dtype is not expected");
  }
}

SafetensorsFile OpenOrDie(const std::string& path) {
  absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path);
  if (!file.ok()) std::fprintf(stderr, "%s\n", MessageOf(file.status()).c_str());
  H3RT_CHECK(file.ok());
  return std::move(file).value();
}

Array ReadArray(const SafetensorsFile& file, const std::string& name) {
  absl::StatusOr<ConstTensorView> view = file.Get(name);
  if (!view.ok()) std::fprintf(stderr, "%s\n", MessageOf(view.status()).c_str());
  H3RT_CHECK(view.ok());
  const auto dims = view->shape().dims();
  Array x(std::vector<int64_t>(dims.begin(), dims.end()));
  for (int64_t i = 0; i < x.elements(); ++i) x.p()[i] = Widen(*view, i);
  return x;
}

bool Replace(std::string& text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at == std::string::npos) return false;
  text.replace(at, from.size(), to);
  return true;
}

// g v / |v|, the norm over everything but the first dimension.
Array FoldWeightNorm(const Array& g, const Array& v) {
  Array w = v;
  const int64_t rows = v.dim(0);
  const int64_t width = v.elements() / rows;
  for (int64_t r = 0; r < rows; ++r) {
    double squares = 0.0;
    for (int64_t i = 0; i < width; ++i) squares += v.p()[r * width + i] * v.p()[r * width + i];
    for (int64_t i = 0; i < width; ++i) w.p()[r * width + i] *= g.p()[r] / std::sqrt(squares);
  }
  return w;
}

}  // namespace

std::string DataPath(const std::string& model, const std::string& file) {
  return std::string(H3RT_TEST_DATA) + "/h3/" + model + "/" + file;
}

Fixture::Fixture(const std::string& model, const std::string& file)
    : file_(OpenOrDie(DataPath(model, file))) {}

Array Fixture::Get(const std::string& name) const { return ReadArray(file_, name); }

std::vector<int64_t> Fixture::Ints(const std::string& name) const {
  const absl::StatusOr<ConstTensorView> view = file_.Get(name);
  H3RT_CHECK(view.ok() && view->dtype() == DType::kI64);
  std::vector<int64_t> values;
  for (int64_t i = 0; i < view->elements(); ++i) values.push_back(Load<int64_t>(view->data(), i));
  return values;
}

Weights LoadDiffusers(const std::string& model, const std::string& part) {
  const SafetensorsFile file =
      OpenOrDie(DataPath(model, part + "/diffusion_pytorch_model.safetensors"));
  Weights weights;
  for (const auto& [key, entry] : file.entries()) {
    std::string name = key;
    if (key.ends_with(".weight_g")) continue;
    Array x = ReadArray(file, key);
    if (Replace(name, "ff.net.0.proj", "ff.value")) {
      // The file holds [value; gate].
      const int64_t half = x.dim(0) / 2;
      weights.Set(name, ref64::Slice(x, 0, 0, half));
      Replace(name, "ff.value", "ff.gate");
      weights.Set(name, ref64::Slice(x, 0, half, 2 * half));
      continue;
    }
    if (Replace(name, ".weight_v", ".weight")) {
      std::string g = key;
      Replace(g, ".weight_v", ".weight_g");
      x = FoldWeightNorm(ReadArray(file, g), x);
    }
    weights.Set(name, std::move(x));
  }
  return weights;
}

Weights LoadPruned(const std::string& model) {
  Weights weights = LoadDiffusers(model, "transformer");
  const SafetensorsFile file = OpenOrDie(DataPath(model, "pruned_f32.safetensors"));
  for (const auto& [key, entry] : file.entries()) {
    if (key.starts_with("out.")) continue;
    std::string name = key;
    Replace(name, "final_layer.adaln_proj.linear", "norm_out.linear");
    if (name.starts_with("blocks.")) name = "transformer_" + name;
    weights.Set(name, ReadArray(file, key));
  }
  return weights;
}

double RelativeL2(const Array& got, const Array& want) {
  if (got.elements() != want.elements() || got.elements() == 0) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  double error = 0.0;
  double size = 0.0;
  for (int64_t i = 0; i < got.elements(); ++i) {
    const double off = got.p()[i] - want.p()[i];
    error += off * off;
    size += want.p()[i] * want.p()[i];
  }
  return std::sqrt(error / size);
}

double Report(const std::string& name, const Array& got, const Array& want) {
  const double error = RelativeL2(got, want);
  std::printf("  %-44s rel L2 %.3e  (%lld values)\n", name.c_str(), error,
              static_cast<long long>(got.elements()));
  return error;
}

Tensor ToTensor(const Array& x, const Shape& shape) {
  H3RT_CHECK(shape.elements() == x.elements());
  Tensor tensor = Tensor::Create(DType::kF32, shape).value();
  for (int64_t i = 0; i < x.elements(); ++i) tensor.as<float>()[i] = static_cast<float>(x.p()[i]);
  return tensor;
}

Tensor ToTensor(const Array& x) { return ToTensor(x, Shape::FromDims(x.shape).value()); }

Array ToArray(const ConstTensorView& view) {
  H3RT_CHECK(view.contiguous());
  const auto dims = view.shape().dims();
  Array x(std::vector<int64_t>(dims.begin(), dims.end()));
  for (int64_t i = 0; i < x.elements(); ++i) x.p()[i] = Widen(view, i);
  return x;
}

Array RandomNormal(uint64_t seed, std::vector<int64_t> shape) {
  Array x(std::move(shape));
  uint64_t state = seed;
  const auto uniform = [&state] {
    // splitmix64; (0, 1] so that the logarithm is finite.
    state += 0x9E3779B97F4A7C15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return (static_cast<double>(z >> 11) + 1.0) * 0x1p-53;
  };
  for (double& value : x.data) {
    const double radius = std::sqrt(-2.0 * std::log(uniform()));
    const double normal = radius * std::cos(2.0 * std::numbers::pi * uniform());
    value = static_cast<double>(static_cast<float>(normal));
  }
  return x;
}

}  // namespace h3rt::golden
