// What h3rt_stamp writes into every build: build_stamp_data.cc defines these.
#pragma once

#include <cstddef>

namespace h3rt::lab {

struct StampedSource {
  const char* path;
  const char* sha256;
  const char* code_sha256;
  const char* includes;  // each ends in a newline
};
struct StampData {
  const char* commit;
  const char* dirty_digest;
  const char* harness_digest;
  const char* host_harness_digest;
  const char* toolkit;
  const char* host_compiler;
  const char* flags;
  const StampedSource* sources;
  size_t source_count;
};
extern const StampData kStampData;

}  // namespace h3rt::lab
