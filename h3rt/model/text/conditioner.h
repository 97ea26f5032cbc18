// From a prompt to the rows that the transformer reads. The layout of the rows (labels, vision
// blocks, tags) is that of the released pipeline; spec h3 sections 3.5 and 5.3.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "h3rt/base/exec.h"
#include "h3rt/base/status.h"
#include "h3rt/io/model_config.h"
#include "h3rt/tensor/tensor.h"

namespace h3rt {

struct ConditionerInput {
  std::string prompt;
  // Vision blocks in front of the prompt, one a keyframe: rows of 32x32 pixel cells of the canvas.
  int64_t keyframes = 0;
  int64_t cells_high = 0;
  int64_t cells_wide = 0;
};

struct ConditionerOutput {
  Tensor embeds;              // [n, text_dim] F32
  std::vector<int32_t> tags;  // [n]: 1 text, 0 rows of a vision block
};

class Conditioner {
 public:
  virtual ~Conditioner() = default;
  virtual int64_t text_dim() const = 0;
  // The number of rows that Encode would give, and its errors, without making them.
  virtual absl::StatusOr<int64_t> CountRows(const ConditionerInput& input) const = 0;
  // kInvalidArgument for a prompt without a word or that is not UTF-8.
  virtual absl::StatusOr<ConditionerOutput> Encode(const ConditionerInput& input,
                                                   const ExecContext& context) const = 0;
};

// The conditioner that the configuration names; kUnimplemented names those that are built.
absl::StatusOr<std::unique_ptr<Conditioner>> MakeConditioner(const ConditionerConfig& config);

}  // namespace h3rt
