// Random values of tensors: a function of seed, name and element index. Private to io.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "h3rt/io/tensor_list.h"

namespace h3rt {

// How the values of one tensor are drawn: mean + deviation * (about normal), or a fixed content.
struct ValueRule {
  float mean = 0.0f;
  float deviation = 0.0f;
  bool filter = false;  // the 12 taps of the anti-aliasing filter
};

// The rule of one tensor of a diffusers-layout file; `gain` is for X.weight_g of a kWeightNorm one.
ValueRule RuleOf(const SourceTensor& tensor, bool gain);

// Values [begin, begin + out.size()) of the tensor `name`.
void FillRandom(uint64_t seed, std::string_view name, const ValueRule& rule, int64_t begin,
                std::span<float> out);

// Kaiser-windowed sinc, 12 taps, cutoff 0.25, half width 0.3, sum 1. Source: spec h3 section 7.
void FillLowPass(std::span<float> taps);

}  // namespace h3rt
