// The exact table of GPU architectures: what this binary holds for each, what a device of it would
// dispatch, and what is missing, by name. Pure: knows nothing of the machine it runs on.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "h3rt/cuda/compute_capability.h"

namespace h3rt {

// The exact attention of a device: the path and granularity that the public quantised attention
// library itself dispatches there.
enum class ExactAttention {
  kNone,           // the library refuses the device
  kPathA16Warp,    // mma.sync, FP16 accumulator of two steps, one scale a warp
  kPathA16Thread,  // the same, one scale a thread
  kPathBThread,    // wgmma, FP32 accumulator, one scale a thread
};

// "path A16 per_warp" and so on; "none".
const char* NameOf(ExactAttention attention);

// What a build holds for GPUs.
struct DeviceBuild {
  // Real architectures as nvcc names them, without the sm_ prefix: "90a", "120a", "121a".
  std::vector<std::string> targets = {};
  // Exact attention paths that have a kernel in this build.
  std::vector<ExactAttention> attention = {};
};

// This binary's: targets from the build configuration, none for the CPU build. No device attention
// is built yet, so `attention` is empty.
DeviceBuild ThisDeviceBuild();

struct ArchitectureRow {
  ComputeCapability capability = {};
  // Products that have it, for people; empty when the table does not know the capability.
  std::string products = {};
  // False: the table has no entry for this capability, and nothing below is known.
  bool known = false;
  // The target that a device of this capability needs: "90a". Code for one `a` target runs on
  // exactly one capability, so there is no near match.
  std::string target = {};
  bool built = false;
  ExactAttention attention = ExactAttention::kNone;
  // True when the target is built and the attention path has a kernel.
  bool runs_exact_attention = false;
  // What keeps a device of this row from running, each by name; empty when nothing is missing.
  std::vector<std::string> missing = {};
};

// The row of one capability, known or not.
ArchitectureRow ArchitectureRowOf(const ComputeCapability& capability, const DeviceBuild& build);

// All known rows, in order: 8.9, 9.0, 10.0, 12.0, 12.1.
std::vector<ArchitectureRow> ArchitectureTable(const DeviceBuild& build);

}  // namespace h3rt
