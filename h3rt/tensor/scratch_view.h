// Views of buffers that are used again and again under different shapes.
#pragma once

#include "h3rt/base/check.h"
#include "h3rt/tensor/tensor.h"

namespace h3rt {

// The first elements of an F32 scratch tensor as a contiguous view of another shape.
inline TensorView ScratchView(Tensor& scratch, const Shape& shape) {
  H3RT_CHECK(shape.elements() <= scratch.elements());
  return TensorView::Of(scratch.as<float>(), shape);
}

}  // namespace h3rt
