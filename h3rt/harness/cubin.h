// Device code as nvcc leaves it: 64-bit ELF files, alone or inside a program.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "h3rt/base/status.h"

namespace h3rt::lab {

struct CubinKernel {
  std::string symbol;  // mangled
  std::string code_sha256;
  int64_t code_bytes = 0;
  int64_t constant_bytes = 0;  // bank 0: parameters and what the driver puts before them
  int64_t max_threads = 1024;  // of a block; that of the hardware without __launch_bounds__
};
struct Cubin {
  int64_t architecture = 0;  // 90, 121
  std::vector<CubinKernel> kernels;
};

// kDataLoss for bytes that are no whole cubin.
absl::StatusOr<Cubin> ParseCubin(std::string_view bytes, std::string_view where);

// Digests of machine code: mangled symbol -> SHA-256, and KernelName -> that of its only instance,
// or the SHA-256 of the sorted digests of all.
using KernelCode = std::map<std::string, std::string>;
KernelCode CodeOfKernels(const std::vector<CubinKernel>& kernels);
// Of the cubins inside a program or object that was linked without compressing them. Empty when it
// holds none for the target. "/proc/self/exe" is this program.
absl::StatusOr<KernelCode> KernelsOfProgram(const std::string& path, std::string_view target);

// "90" of "sm_90a"; 0 for what is no target.
int64_t ArchitectureOf(std::string_view target);
// "h3rt::device::fill" of "_ZN4h3rt6device4fillIiEEvPT_l": without template and other arguments.
std::string KernelName(const std::string& symbol);

}  // namespace h3rt::lab
