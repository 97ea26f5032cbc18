// What dit.cc and adaln.cc share. Private to the dit folder.
#pragma once

#include <cstdint>

#include "h3rt/model/dit/dit.h"
#include "h3rt/model/dit/weights.h"

namespace h3rt {

struct Dit::Impl {
  // Of this model alone in the life of the program: what it made is refused by any other. Never 0.
  uint64_t identity = 0;
  DitConfig config;
  dit::Weights weights;
};

}  // namespace h3rt
