// Reading the public fixtures, and comparing arrays with them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "h3rt/base/json.h"
#include "h3rt/base/status.h"
#include "h3rt/io/safetensors.h"
#include "h3rt/tensor/tensor.h"
#include "tests/golden/ref64/array.h"
#include "tests/golden/ref64/weights.h"

namespace h3rt::golden {

// tests/data/h3/MODEL/FILE.
std::string DataPath(const std::string& model, const std::string& file);

// A fixture file. A missing file or tensor stops the test program with a message.
class Fixture {
 public:
  Fixture(const std::string& model, const std::string& file);
  bool Has(const std::string& name) const { return file_.Has(name); }
  ref64::Array Get(const std::string& name) const;  // F32 or F64, widened
  std::vector<int64_t> Ints(const std::string& name) const;

 private:
  SafetensorsFile file_;
};

// The weights of a diffusers folder, renamed, split and folded here and not by the library's
// loader: canonical names of h3rt/io/weight_store.h, weight norm folded in double.
ref64::Weights LoadDiffusers(const std::string& model, const std::string& part);

// The same weights with what pruned_f32.safetensors replaces.
ref64::Weights LoadPruned(const std::string& model);

template <typename Config>
Config LoadConfig(const std::string& model, const std::string& part) {
  const std::string path = DataPath(model, part + "/config.json");
  return Config::FromJson(ReadJsonFile(path).value(), path).value();
}

// |got - want| / |want|, or NaN when the sizes differ or nothing was compared.
double RelativeL2(const ref64::Array& got, const ref64::Array& want);

// RelativeL2, printed as one row; `name` says what was compared.
double Report(const std::string& name, const ref64::Array& got, const ref64::Array& want);

// To float32 and back.
Tensor ToTensor(const ref64::Array& x);
Tensor ToTensor(const ref64::Array& x, const Shape& shape);
ref64::Array ToArray(const ConstTensorView& view);

// Normal deviates rounded to float32, from a generator of our own: the same on every machine.
ref64::Array RandomNormal(uint64_t seed, std::vector<int64_t> shape);

}  // namespace h3rt::golden
