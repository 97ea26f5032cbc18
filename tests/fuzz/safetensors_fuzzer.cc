#include <cstddef>
#include <cstdint>

#include "tests/fuzz/entries.h"

// The name is libFuzzer's.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  h3rt::FuzzSafetensors({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
