// The published schedule of SageAttention 2 on CUDA, bit for bit. No CUDA header is needed to call
// it. Everything is asynchronous on `stream`; pointers of the problem are device memory. Functions
// return the CUDA runtime's error, 0 for success, 1 (invalid value) for a problem that
// CheckExactProblem refuses or a null workspace, 98 (invalid device function) for a path that the
// device or the build has no code for, 17 (invalid device pointer) for memory that a kernel on the
// current device cannot reach, another device's included (LaunchSage2Public alone looks).
#pragma once

#include <cstdint>

#include "h3rt/kernels/attention/exact/checkpoints.h"
#include "h3rt/kernels/attention/exact/problem.h"

struct CUstream_st;

namespace h3rt {

// K mean (unless given), then q8, k8, v8, their scales and not_finite. Inputs are read where they
// lie, whatever their strides and alignment; 16-byte loads where bases and strides allow, with the
// same bits. Every byte of the buffers is written, the padding too.
int LaunchExactPrepare(const ExactProblem& problem, const ExactPrepared& prepared,
                       CUstream_st* stream);

// o and lse_raw (or lse, where that alone is wanted) from prepared buffers. `capture`: null, or
// where to write checkpoints; the same arithmetic in a kernel of its own.
int LaunchSage2PublicMma(const ExactProblem& problem, const ExactPrepared& prepared,
                         const ExactCheckpoints* capture, CUstream_st* stream);  // A16, A32, A1
int LaunchSage2PublicWgmma(const ExactProblem& problem, const ExactPrepared& prepared,
                           const ExactCheckpoints* capture, CUstream_st* stream);  // B, sm_90a

// lse = lse_raw + q . k_mean * sm_scale: the dot product rounded to the type of q, the product and
// the sum to float32. lse_raw may be lse itself. Nothing to do without lse; a copy without
// smoothing.
int LaunchExactLse(const ExactProblem& problem, const ExactPrepared& prepared, CUstream_st* stream);

// k_len = 0: o zeros, lse and lse_raw -inf.
int LaunchExactEmpty(const ExactProblem& problem, CUstream_st* stream);

// All of it in order: preparation, attention of the problem's path, lse. The workspace holds
// WorkspaceBytes(problem), on 256 bytes.
int LaunchSage2Public(const ExactProblem& problem, void* workspace, CUstream_st* stream);
// The same from buffers prepared before.
int LaunchSage2PublicPrepared(const ExactProblem& problem, const ExactPrepared& prepared,
                              const ExactCheckpoints* capture, CUstream_st* stream);

}  // namespace h3rt
