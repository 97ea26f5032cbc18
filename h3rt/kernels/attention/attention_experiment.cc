#include "h3rt/kernels/attention/attention_experiment.h"

#include "h3rt/kernels/attention/exact/inputs.h"
#include "h3rt/kernels/attention/sage2_public/launch.h"

namespace h3rt {
namespace {

using Level = ExperimentWorkload::Level;
using Fill = ExperimentTensor::Fill;
using Role = ExperimentTensor::Role;
using Type = ExperimentTensor::Type;

// Attention of each of the 50 blocks of the released model.
constexpr int64_t kCallsAStep = 50;

// Dims: batch, q_len, k_len, q_heads, k_heads, head_dim. `granularity`: path B and its experiments
// take per_thread, as the library does on Hopper; the others per_warp.
ExactProblem ProblemOf(std::span<const int64_t> dims, ExactPath path) {
  const ExactInputSpec spec = {.batch = dims[0],
                               .q_len = dims[1],
                               .k_len = dims[2],
                               .q_heads = dims[3],
                               .k_heads = dims[4],
                               .head_dim = dims[5]};
  return DenseProblem(
      spec, path,
      path == ExactPath::kB ? ExactGranularity::kPerThread : ExactGranularity::kPerWarp);
}

std::vector<ExperimentTensor> Inputs(std::span<const int64_t> dims) {
  const std::vector<int64_t> q = {dims[0], dims[1], dims[3], dims[5]};
  const std::vector<int64_t> k = {dims[0], dims[2], dims[4], dims[5]};
  return {{"q", Type::kBf16, Role::kInput, q, Fill::kNormal, 1.0},
          {"k", Type::kBf16, Role::kInput, k, Fill::kNormal, 1.0},
          {"v", Type::kBf16, Role::kInput, k, Fill::kNormal, 1.0}};
}

// What preparation makes, the scratch too: no byte of it is left as it was.
void AddPrepared(const ExactProblem& problem, std::vector<ExperimentTensor>& tensors) {
  const ExactPreparedSizes s = PreparedSizes(problem);
  const auto add = [&](const char* name, Type type, int64_t elements) {
    tensors.push_back({name, type, Role::kOutput, {elements}});
  };
  add("q8", Type::kU8, s.q8);
  add("k8", Type::kU8, s.k8);
  add("v8", Type::kU8, s.v8);
  add("q_scale", Type::kF32, s.q_scale);
  add("k_scale", Type::kF32, s.k_scale);
  add("v_scale", Type::kF32, s.v_scale);
  add("k_mean", Type::kBf16, s.k_mean);
  add("partials", Type::kF32, s.partials);
  add("not_finite", Type::kI32, 2 * s.not_finite);
}

std::vector<ExperimentTensor> PreparationTensors(std::span<const int64_t> dims) {
  std::vector<ExperimentTensor> tensors = Inputs(dims);
  AddPrepared(ProblemOf(dims, ExactPath::kB), tensors);
  return tensors;
}

template <ExactPath kPath>
std::vector<ExperimentTensor> AttentionTensors(std::span<const int64_t> dims) {
  std::vector<ExperimentTensor> tensors = Inputs(dims);
  const std::vector<int64_t> rows = {dims[0], dims[3], dims[1]};
  AddPrepared(ProblemOf(dims, kPath), tensors);
  tensors.push_back({"o", Type::kBf16, Role::kOutput, {dims[0], dims[1], dims[3], dims[5]}});
  tensors.push_back({"lse", Type::kF32, Role::kOutput, rows});
  tensors.push_back({"lse_raw", Type::kF32, Role::kOutput, rows});
  return tensors;
}

#ifdef H3RT_WITH_CUDA
void PutInputs(const ArmCall& call, ExactProblem& p) {
  p.q.data = call.tensors[0];
  p.k.data = call.tensors[1];
  p.v.data = call.tensors[2];
}

ExactPrepared PreparedOf(const ArmCall& call) {
  const auto at = [&](size_t i) { return call.tensors[3 + i]; };
  return {.q8 = reinterpret_cast<int8_t*>(at(0)),
          .k8 = reinterpret_cast<int8_t*>(at(1)),
          .v8 = reinterpret_cast<uint8_t*>(at(2)),
          .q_scale = reinterpret_cast<float*>(at(3)),
          .k_scale = reinterpret_cast<float*>(at(4)),
          .v_scale = reinterpret_cast<float*>(at(5)),
          .k_mean = reinterpret_cast<uint16_t*>(at(6)),
          .partials = reinterpret_cast<float*>(at(7)),
          .not_finite = reinterpret_cast<uint64_t*>(at(8))};
}

int RunPreparation(const ArmCall& call) {
  ExactProblem p = ProblemOf(call.dims, ExactPath::kB);
  PutInputs(call, p);
  return LaunchExactPrepare(p, PreparedOf(call), call.stream);
}

template <ExactPath kPath>
int RunAttention(const ArmCall& call) {
  ExactProblem p = ProblemOf(call.dims, kPath);
  PutInputs(call, p);
  p.o.data = call.tensors[12];
  p.lse = reinterpret_cast<float*>(call.tensors[13]);
  p.lse_raw = reinterpret_cast<float*>(call.tensors[14]);
  const ExactPrepared prepared = PreparedOf(call);
  const int error = LaunchExactPrepare(p, prepared, call.stream);
  return error != 0 ? error : LaunchSage2PublicPrepared(p, prepared, nullptr, call.stream);
}
#else
constexpr ArmFunction RunPreparation = nullptr;
template <ExactPath kPath>
constexpr ArmFunction RunAttention = nullptr;
#endif

// Every input read once; codes, scales and mean written.
double PreparationBytes(std::span<const int64_t> dims) {
  const double q = static_cast<double>(dims[0] * dims[1] * dims[3] * dims[5]);
  const double k = static_cast<double>(dims[0] * dims[2] * dims[4] * dims[5]);
  return 3 * q + 6 * k;
}
// Magnitude, maximum, scale and rounding of each element; the mean's addition and subtraction of K.
double PreparationOperations(std::span<const int64_t> dims) {
  const double q = static_cast<double>(dims[0] * dims[1] * dims[3] * dims[5]);
  const double k = static_cast<double>(dims[0] * dims[2] * dims[4] * dims[5]);
  return 4 * q + 10 * k;
}

// q, k, v read, o and two logarithms a row written.
double AttentionBytes(std::span<const int64_t> dims) {
  const double q = static_cast<double>(dims[0] * dims[1] * dims[3] * dims[5]);
  const double k = static_cast<double>(dims[0] * dims[2] * dims[4] * dims[5]);
  return 4 * q + 4 * k + 8 * static_cast<double>(dims[0] * dims[1] * dims[3]);
}
// Two products and two additions for each pair of rows and each channel.
double AttentionOperations(std::span<const int64_t> dims) {
  return 4.0 * static_cast<double>(dims[0] * dims[3]) * static_cast<double>(dims[1]) *
         static_cast<double>(dims[2]) * static_cast<double>(dims[5]);
}

Experiment Base() {
  Experiment e;
  e.dim_names = {"batch", "q_len", "k_len", "q_heads", "k_heads", "head_dim"};
  e.workloads = {{"toy-1x1x1", Level::kToy, {1, 1, 1, 1, 1, 128}, 11, kCallsAStep},
                 {"toy-128x192", Level::kToy, {1, 128, 192, 1, 1, 128}, 12, kCallsAStep},
                 {"aligned-512x512x4", Level::kAligned, {1, 512, 512, 4, 4, 128}, 21, kCallsAStep},
                 {"aligned-256x256-d64", Level::kAligned, {2, 256, 256, 2, 2, 64}, 22, kCallsAStep},
                 {"ragged-257x131x4x2", Level::kRagged, {1, 257, 131, 4, 2, 128}, 31, kCallsAStep},
                 {"ragged-2x97x333-d96", Level::kRagged, {2, 97, 333, 2, 1, 96}, 32, kCallsAStep},
                 {"canonical-37808x56",
                  Level::kCanonical,
                  {1, 37808, 37808, 56, 56, 128},
                  440420,
                  kCallsAStep}};
  e.uses_async = true;
  return e;
}

constexpr char kPrepareSource[] = "h3rt/kernels/attention/sage2_public/prepare.cu";

std::vector<const char*> PreparationKernels() {
  return {"h3rt::exact_quantise_kernel", "h3rt::exact_quantise_v_kernel",
          "h3rt::exact_reduce_kernel", "h3rt::exact_stats_kernel"};
}

constexpr char kAgain[] =
    "the same call under two names: equal bytes over other poison say that it repeats itself; what "
    "it must give is recorded (lab attention-golden)";

Experiment MakePreparation() {
  Experiment e = Base();
  e.id = "attention-exact-preparation";
  e.tensors = PreparationTensors;
  const std::vector<const char*> kernels = PreparationKernels();
  const std::vector<const char*> sources = {kPrepareSource};
  e.arms = {{"preparation", RunPreparation, kernels, sources},
            {"preparation-again", RunPreparation, kernels, sources}};
  e.checks = {{"preparation", ExperimentCheck::Mode::kBitwise, 0, kAgain}};
  e.least_bytes = PreparationBytes;
  e.least_operations = PreparationOperations;
  e.targets = {"sm_90a", "sm_120a", "sm_121a"};
  return e;
}

template <ExactPath kPath>
Experiment MakePath(const char* id) {
  Experiment e = Base();
  e.id = id;
  e.tensors = AttentionTensors<kPath>;
  const bool wgmma = kPath == ExactPath::kB;
  std::vector<const char*> kernels = PreparationKernels();
  kernels.push_back("h3rt::exact_lse_kernel");
  kernels.push_back(wgmma ? "h3rt::sage2_public_wgmma_kernel" : "h3rt::sage2_public_mma_kernel");
  const std::vector<const char*> sources = {"h3rt/kernels/attention/sage2_public/lse.cu",
                                            wgmma ? "h3rt/kernels/attention/sage2_public/wgmma.cu"
                                                  : "h3rt/kernels/attention/sage2_public/mma.cu",
                                            kPrepareSource,
                                            "h3rt/kernels/attention/sage2_public/sage2_public.cu"};
  const ArmFunction run = RunAttention<kPath>;
  e.arms = {{"public", run, kernels, sources}, {"public-again", run, kernels, sources}};
  e.checks = {{"public", ExperimentCheck::Mode::kBitwise, 0, kAgain}};
  e.least_bytes = AttentionBytes;
  e.least_operations = AttentionOperations;
  e.targets = wgmma ? std::vector<const char*>{"sm_90a"}
                    : std::vector<const char*>{"sm_90a", "sm_120a", "sm_121a"};
  return e;
}

}  // namespace

const Experiment kAttentionPreparationExperiment = MakePreparation();
const std::vector<Experiment> kSage2PublicExperiments = {
    MakePath<ExactPath::kA16>("vortex-exact-sage2-public-a16"),
    MakePath<ExactPath::kA32>("vortex-exact-sage2-public-a32"),
    MakePath<ExactPath::kA1>("vortex-exact-sage2-public-a1"),
    MakePath<ExactPath::kB>("vortex-exact-sage2-public-b")};

}  // namespace h3rt
