// Which tensors a file of each network and layout holds, and where they go. One list drives
// loading, inspection and the writing of random checkpoints. Private to io.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "h3rt/io/checkpoint.h"
#include "h3rt/io/model_config.h"
#include "h3rt/tensor/shape.h"

namespace h3rt {

// How one tensor of the file becomes canonical weights.
enum class Split {
  kNone,         // as it is
  kThirds,       // rows [q; k; v] -> to_q, to_k, to_v
  kInterleaved,  // rows head by head: q, k, v of head 0, then head 1 ...
  kGateFirst,    // rows [gate; value]
  kValueFirst,   // rows [value; gate]
  kWeightNorm,   // `key` is X.weight_v, X.weight_g beside it: folded into X.weight
  kDrop,         // known, not needed
};

// What the values are, which decides how random ones are drawn.
enum class Role {
  kMatrix,
  kBias,
  kNorm,   // multiplies, around 1
  kScale,  // residual scales of the video decoder
  kToken,  // register tokens
  kTable,  // AdaLN curve
  kFrequencies,
  kGain,      // weight_g
  kAlpha,     // snake, linear
  kLogAlpha,  // SnakeBeta, logarithmic
  kFilter,    // Kaiser-sinc low pass, 12 taps
  kZero,      // a buffer of zeros
};

enum class DTypes {
  kAnyFloat,  // F32, BF16 or F16
  kF32,
};

struct SourceTensor {
  std::string key;     // in the file, without a prefix of the whole file
  std::string target;  // canonical name; for splits up to the part that names the piece
  Shape shape;
  Split split = Split::kNone;
  Role role = Role::kMatrix;
  DTypes dtypes = DTypes::kAnyFloat;
  int64_t heads = 0;  // of kInterleaved
  bool optional = false;
  bool quantizable = false;  // a matrix that may come in a quantised format
  bool island = false;       // stays F32 in a mixed-precision transformer
  bool any_shape = false;    // of kDrop
  // Of kDrop: the values that h3rt computes itself, one an element, or one for all elements. A file
  // that holds others is of another model. Empty: whatever they are.
  std::vector<double> wanted = {};
};

using HasKey = std::function<bool(std::string_view key)>;

std::vector<SourceTensor> TransformerTensors(const DitConfig& config, CheckpointLayout layout);
std::vector<SourceTensor> VideoVaeTensors(const VideoVaeConfig& config, CheckpointLayout layout);
// Convolutions come as weight_g and weight_v, or folded as weight: `has_key` decides one by one.
std::vector<SourceTensor> AudioVaeTensors(const AudioVaeConfig& config, const HasKey& has_key);

// Grid points of the AdaLN curve of pruned models.
inline constexpr int64_t kAdaLnGrid = 1025;

}  // namespace h3rt
