// What dit.cc and adaln.cc share. Private to the dit folder.
#pragma once

#include "h3rt/model/dit/dit.h"
#include "h3rt/model/dit/weights.h"

namespace h3rt {

struct Dit::Impl {
  DitConfig config;
  dit::Weights weights;
};

}  // namespace h3rt
