// The device side of the laboratory, behind plain functions: kernels that make inputs, digest
// outputs and measure the copy rate, and the few calls of the runtime that h3rt/cuda does not wrap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "h3rt/harness/generator.h"

struct CUstream_st;

namespace h3rt::lab {

// All return the CUDA runtime's error, 0 for success, and work on `stream`, asynchronously, unless
// they say otherwise. Sizes are bytes unless named otherwise.

// The same bytes as GenerateInput makes on the host.
int LaunchGenerate(const InputStream& input, std::byte* to, int64_t elements, CUstream_st* stream);

// Adds to result[0] the digest of `bytes` and to result[1] the number of elements all of whose
// bytes are `poison`. `from` lies on 8 bytes; a last word that is not whole counts as filled up
// with zeros.
int LaunchDigest(const std::byte* from, int64_t bytes, int element_bytes, uint8_t poison,
                 uint64_t* result, CUstream_st* stream);

int FillOnDevice(std::byte* to, uint8_t byte, int64_t bytes, CUstream_st* stream);
// A plain copy kernel with 16-byte accesses; whole 16 bytes only.
int LaunchCopy(const std::byte* from, std::byte* to, int64_t bytes, CUstream_st* stream);
int CopyOnDevice(const std::byte* from, std::byte* to, int64_t bytes, CUstream_st* stream);
// Keeps one multiprocessor busy for about so long, so that what is queued behind starts at once.
int LaunchSpin(int64_t nanoseconds, CUstream_st* stream);
// Waits for every stream of the device.
int WaitForDevice();

struct DeviceFacts {
  char name[256];
  char uuid[16];
  char pci_bus_id[32];
  int major, minor;
  int processors;
  int64_t l2_bytes;
  int64_t free_bytes, total_bytes;
  int ecc;                              // 1 on, 0 off
  int driver_version, runtime_version;  // 13000 is 13.0
};
int AskDeviceFacts(DeviceFacts* facts);

// Records what `enqueue` puts on a stream without running it, and calls `found` with the mangled
// name of each kernel in it. `stream` is not the default one.
using Enqueue = int (*)(void* context, CUstream_st* stream);
using FoundKernel = void (*)(void* context, const char* mangled);
int NamesOfKernels(Enqueue enqueue, FoundKernel found, void* context, CUstream_st* stream);

// A kernel with one planted fault each, for the control of the sanitizers. Waits for it.
int RunPlantedOutOfBounds();        // memcheck
int RunPlantedSharedRace();         // racecheck
int RunPlantedUninitialisedRead();  // initcheck
int RunPlantedDivergentBarrier();   // synccheck

}  // namespace h3rt::lab
