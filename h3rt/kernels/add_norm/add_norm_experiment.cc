#include "h3rt/kernels/add_norm/add_norm_experiment.h"

#include "h3rt/kernels/add_norm/fused/launch.h"
#include "h3rt/kernels/add_norm/ref/float64_rows.h"
#include "h3rt/kernels/add_norm/ref/strict_rows.h"
#include "h3rt/kernels/add_norm/unfused/launch.h"

namespace h3rt {
namespace {

constexpr float kEps = 1e-5f;
// A step of the released model: each of the 100 norms that follow a residual addition. Norm 2 of 50
// blocks, norm 1 of the 49 blocks after the first, and the head's.
constexpr int64_t kCallsAStep = 100;

using Level = ExperimentWorkload::Level;
using Fill = ExperimentTensor::Fill;
using Role = ExperimentTensor::Role;
using Type = ExperimentTensor::Type;

// The edge workload is known by its width, which no other has: the values follow from the dims
// alone.
constexpr int64_t kEdgeHidden = 2696;

std::vector<ExperimentTensor> Tensors(std::span<const int64_t> dims) {
  const Fill fill = dims[1] == kEdgeHidden ? Fill::kEdge : Fill::kNormal;
  const std::vector<int64_t> shape = {dims[0], dims[1]};
  return {{"x", Type::kBf16, Role::kInput, shape, fill, 1.0},
          {"r", Type::kBf16, Role::kInput, shape, fill, 0.5},
          {"w", Type::kBf16, Role::kInput, {dims[1]}, Fill::kUniform, 2.0},
          {"h", Type::kBf16, Role::kOutput, shape},
          {"y", Type::kBf16, Role::kOutput, shape}};
}

// What every way of running it takes: the tensors in their order and the dims.
template <typename Function>
auto Call(const Function& function, const ArmCall& call) {
  const auto bits = [&](size_t i) { return reinterpret_cast<uint16_t*>(call.tensors[i]); };
  return function(bits(0), bits(1), bits(2), bits(3), bits(4), call.dims[0], call.dims[1]);
}

#ifdef H3RT_WITH_CUDA
template <auto kLaunch>
int Run(const ArmCall& call) {
  return Call(
      [&](const uint16_t* x, const uint16_t* r, const uint16_t* w, uint16_t* h, uint16_t* y,
          int64_t rows,
          int64_t hidden) { return kLaunch(x, r, w, h, y, rows, hidden, kEps, call.stream); },
      call);
}
constexpr ArmFunction kUnfused = Run<LaunchAddNormUnfused>;
constexpr ArmFunction kFused = Run<LaunchAddNormFused>;
constexpr ArmFunction kFusedResident = Run<LaunchAddNormFusedResident>;
#else
constexpr ArmFunction kUnfused = nullptr;
constexpr ArmFunction kFused = nullptr;
constexpr ArmFunction kFusedResident = nullptr;
#endif

void Reference(const ArmCall& call) {
  Call([](const uint16_t* x, const uint16_t* r, const uint16_t* w, uint16_t* h, uint16_t* y,
          int64_t rows, int64_t hidden) { AddNormStrictRows(x, r, w, rows, hidden, kEps, h, y); },
       call);
}

// x and r read, h and y written, the weights read once.
double LeastBytes(std::span<const int64_t> dims) {
  return 2.0 * static_cast<double>(4 * dims[0] * dims[1] + dims[1]);
}

// An element: the addition, square and sum, two products.
double LeastOperations(std::span<const int64_t> dims) {
  return 5.0 * static_cast<double>(dims[0] * dims[1]);
}

std::vector<ExperimentArm> Arms() {
  const char* fused = "h3rt/kernels/add_norm/fused/add_norm_fused.cu";
  return {{"unfused",
           kUnfused,
           {"h3rt::add_norm_unfused_add_kernel", "h3rt::add_norm_unfused_norm_kernel"},
           {"h3rt/kernels/add_norm/unfused/add_norm_unfused.cu"}},
          {"fused", kFused, {"h3rt::add_norm_fused_kernel"}, {fused}},
          {"fused_resident", kFusedResident, {"h3rt::add_norm_fused_kernel"}, {fused}}};
}

Experiment Make() {
  Experiment e;
  e.id = "elem-fused-residual-rmsnorm";
  e.dim_names = {"rows", "hidden"};
  e.workloads = {{"toy-3x64", Level::kToy, {3, 64}, 11, kCallsAStep},
                 {"toy-1x8", Level::kToy, {1, 8}, 12, kCallsAStep},
                 {"aligned-256x5376", Level::kAligned, {256, 5376}, 21, kCallsAStep},
                 {"aligned-64x16384", Level::kAligned, {64, 16384}, 22, kCallsAStep},
                 {"ragged-257x5376", Level::kRagged, {257, 5376}, 31, kCallsAStep},
                 {"ragged-131x5384", Level::kRagged, {131, 5384}, 32, kCallsAStep},
                 {"ragged-67x5377", Level::kRagged, {67, 5377}, 33, kCallsAStep},
                 {"ragged-33x1", Level::kRagged, {33, 1}, 34, kCallsAStep},
                 {"edge-129x2696", Level::kRagged, {129, kEdgeHidden}, 35, kCallsAStep},
                 {"canonical-37808x5376", Level::kCanonical, {37808, 5376}, 440420, kCallsAStep}};
  e.tensors = Tensors;
  e.arms = Arms();
  e.reference = Reference;
  e.checks = {
      {"unfused", ExperimentCheck::Mode::kBitwise, 0,
       "the same roundings in the same order, the same reduction tree"},
      {"reference", ExperimentCheck::Mode::kBitwise, 0,
       "the host repeats every rounding and the tree; its own distance to float64 is bounded "
       "by the op's tests"}};
  e.least_bytes = LeastBytes;
  e.least_operations = LeastOperations;
  e.targets = {"sm_90a", "sm_120a", "sm_121a"};
  e.uses_async = true;  // one barrier a row
  return e;
}

template <auto kRows>
int RunRows(const ArmCall& call) {
  Call([](const uint16_t* x, const uint16_t* r, const uint16_t* w, uint16_t* h, uint16_t* y,
          int64_t rows, int64_t hidden) { kRows(x, r, w, rows, hidden, kEps, h, y); },
       call);
  return 0;
}

// What the op's tests allow n results that are rounded to bfloat16 at the end, for n of 200 or
// more: one in 200 off by one unit, which is 2^-8 of an element on average. The smallest workload
// has 320 elements, of which two.
constexpr double kFlipBound = 0x1p-8 * 0.0790569415042095;  // the root of 2 / 320

Experiment MakeHost() {
  Experiment e = Make();
  e.id = "host-add-norm-strict";
  e.workloads = {{"toy-5x64", Level::kToy, {5, 64}, 11, kCallsAStep},
                 {"aligned-16x5376", Level::kAligned, {16, 5376}, 21, kCallsAStep},
                 {"ragged-7x5377", Level::kRagged, {7, 5377}, 31, kCallsAStep},
                 {"canonical-128x5376", Level::kCanonical, {128, 5376}, 440420, kCallsAStep}};
  e.arms = {
      {"ref", RunRows<AddNormFloat64Rows>, {}, {"h3rt/kernels/add_norm/ref/float64_rows.cc"}},
      {"strict", RunRows<AddNormStrictRows>, {}, {"h3rt/kernels/add_norm/ref/strict_rows.cc"}}};
  e.reference = nullptr;
  e.checks = {{"ref", ExperimentCheck::Mode::kTolerance, kFlipBound,
               "float32 errors move few elements over a rounding boundary, each by one unit"}};
  e.targets = {"host"};
  e.uses_async = false;
  return e;
}

}  // namespace

const Experiment kAddNormExperiment = Make();
const Experiment kAddNormHostExperiment = MakeHost();

}  // namespace h3rt
