#include <cuda.h>
#include <cuda_runtime.h>

#include <cstring>

#include "h3rt/kernels/attention/sage2_public/launch.h"
#include "h3rt/kernels/attention/sage2_public/wgmma_kernel.cuh"

namespace h3rt {
namespace {

// A dense [planes, rows, columns] array of bytes, read in boxes of one plane, `box_rows` rows and
// `box_columns` bytes, swizzled over the box's row.
struct BoxedArray {
  void* data;
  int64_t planes;
  int64_t rows;
  int64_t columns;
  uint32_t box_rows;
  uint32_t box_columns;
};

using EncodeFunction = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*,
                                    const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,
                                    const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                                    CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

// The driver's function, found at run time: nothing links the driver.
int FindEncode(EncodeFunction* encode) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found,
                                                             12000, cudaEnableDefault, &result);
  if (error != cudaSuccess) return error;
  if (result != cudaDriverEntryPointSuccess || found == nullptr) return cudaErrorNotSupported;
  *encode = reinterpret_cast<EncodeFunction>(found);
  return cudaSuccess;
}

int Encode(EncodeFunction encode, const BoxedArray& array, TensorMapBytes& map) {
  static_assert(sizeof(CUtensorMap) == sizeof(TensorMapBytes));
  // The copy engine takes 32-bit coordinates.
  if (array.planes > INT32_MAX || array.rows > INT32_MAX || array.columns > INT32_MAX) {
    return cudaErrorInvalidValue;
  }
  const cuuint64_t extents[3] = {static_cast<cuuint64_t>(array.columns),
                                 static_cast<cuuint64_t>(array.rows),
                                 static_cast<cuuint64_t>(array.planes)};
  const cuuint64_t pitches[2] = {extents[0], extents[0] * extents[1]};
  const cuuint32_t box[3] = {array.box_columns, array.box_rows, 1};
  const cuuint32_t steps[3] = {1, 1, 1};
  alignas(64) CUtensorMap made;
  const CUresult result =
      encode(&made, CU_TENSOR_MAP_DATA_TYPE_UINT8, 3, array.data, extents, pitches, box, steps,
             CU_TENSOR_MAP_INTERLEAVE_NONE,
             array.box_columns == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) return cudaErrorInvalidValue;
  std::memcpy(&map, &made, sizeof map);
  return cudaSuccess;
}

int MakeMaps(const ExactProblem& problem, const Sage2Arguments& args, Sage2TensorMaps& maps) {
  EncodeFunction encode = nullptr;
  int error = FindEncode(&encode);
  if (error != cudaSuccess) return error;
  const int64_t dim = problem.padded_dim();
  const auto columns = static_cast<uint32_t>(dim);
  const int64_t q_planes = problem.batch * problem.q_heads;
  const int64_t k_planes = problem.batch * problem.k_heads;
  error = Encode(encode, {args.prepared.q8, q_planes, args.q_rows, dim, 64, columns}, maps.q);
  if (error != cudaSuccess) return error;
  error = Encode(encode, {args.prepared.k8, k_planes, args.k_rows, dim, 128, columns}, maps.k);
  if (error != cudaSuccess) return error;
  return Encode(encode, {args.prepared.v8, k_planes, dim, args.k_rows, columns, 128}, maps.v);
}

template <int kDim, bool kCapture>
int Launch(const Sage2Arguments& args, const Sage2TensorMaps& maps, int64_t heads,
           CUstream_st* stream) {
  const int64_t grid = args.tiles * heads;
  if (grid > INT32_MAX) return cudaErrorInvalidValue;
  // With the barriers and the alignment; more needs the attribute of the kernel.
  constexpr int kShared = wgmma_index::Tiles<kDim>::kBytes;
  static_assert(kShared + wgmma_index::kTileAlignment <= 48 << 10);
  sage2_public_wgmma_kernel<kDim, kCapture>
      <<<static_cast<unsigned>(grid), 128, kShared, stream>>>(args, maps);
  return cudaGetLastError();
}

}  // namespace

int LaunchSage2PublicWgmma(const ExactProblem& problem, const ExactPrepared& prepared,
                           const ExactCheckpoints* capture, CUstream_st* stream) {
  if (problem.path != ExactPath::kB || !Sage2Takes(problem)) return cudaErrorInvalidValue;
  int device = 0;
  int major = 0;
  int minor = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  }
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  }
  if (error != cudaSuccess) return error;
  if (major != 9 || minor != 0) return cudaErrorInvalidDeviceFunction;
  const Sage2Arguments args = ArgumentsOf(problem, prepared, capture);
  Sage2TensorMaps maps;
  const int made = MakeMaps(problem, args, maps);
  if (made != cudaSuccess) return made;
  const int64_t heads = problem.batch * problem.q_heads;
  if (problem.padded_dim() == 128) {
    return capture != nullptr ? Launch<128, true>(args, maps, heads, stream)
                              : Launch<128, false>(args, maps, heads, stream);
  }
  return capture != nullptr ? Launch<64, true>(args, maps, heads, stream)
                            : Launch<64, false>(args, maps, heads, stream);
}

}  // namespace h3rt
