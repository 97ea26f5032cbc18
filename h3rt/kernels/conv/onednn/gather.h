// The gathered input of a convolution tile: one row per (input channel, kernel position), one
// column per output position.
#pragma once

#include <cstdint>

#include "h3rt/kernels/conv/conv.h"

namespace h3rt {

// Fills to[r - row_begin][s - begin] (rows `ld` apart) for gather rows [row_begin, row_end) and
// flat output positions s in [begin, end) of one channel; zero where the kernel reaches into the
// padding. Row r is the r-th element of one output channel's weights.
void GatherTile(const Conv3dParams& params, int64_t row_begin, int64_t row_end, int64_t begin,
                int64_t end, float* to, int64_t ld);

}  // namespace h3rt
