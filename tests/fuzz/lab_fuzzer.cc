#include <cstddef>
#include <cstdint>

#include "tests/fuzz/lab_entries.h"

// One program an entry: H3RT_FUZZ_ENTRY names it. The function's name is libFuzzer's.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  h3rt::H3RT_FUZZ_ENTRY({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
