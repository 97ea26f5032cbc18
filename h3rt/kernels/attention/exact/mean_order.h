// The order in which the float32 sum of K over the keys is formed, for host and device alike.
//
// A chunk is kMeanChunk keys. Lane r of kMeanLanes adds keys r, r + kMeanLanes, r + 2 kMeanLanes
// ... of the chunk in ascending order, from zero; the lanes are added in ascending order, from lane
// 0; the chunks are added in ascending order, from chunk 0. The mean is that sum times 1/len
// (rounded to float32), rounded once to the type of K. All roundings are to nearest, subnormals
// flushed.
#pragma once

#include <cstdint>

namespace h3rt::exact {

inline constexpr int kMeanLanes = 16;

}  // namespace h3rt::exact
