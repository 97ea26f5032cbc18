// The weights of one network, widened to double, under their canonical names.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "tests/golden/ref64/array.h"

namespace h3rt {
class WeightStore;
}

namespace h3rt::ref64 {

class Weights {
 public:
  Weights() = default;
  // Copies every entry of the store: F32, F16, BF16 and F64 are widened exactly, an interleaved
  // [heads, head_dim, ...] view becomes [heads * head_dim, ...].
  static Weights From(const WeightStore& store);

  bool Has(std::string_view name) const { return entries_.find(name) != entries_.end(); }
  // A missing name is a fault of the test: it is printed and the program stops.
  const Array& Get(std::string_view name) const;
  void Set(std::string name, Array value) { entries_[std::move(name)] = std::move(value); }

 private:
  std::map<std::string, Array, std::less<>> entries_;
};

}  // namespace h3rt::ref64
