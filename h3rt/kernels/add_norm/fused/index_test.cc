// The kernels' index arithmetic and reduction, emulated thread by thread on the host.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "h3rt/device/tile/row_plan.h"
#include "h3rt/kernels/add_norm/add_norm_cases.h"
#include "h3rt/kernels/add_norm/add_norm_experiment.h"
#include "h3rt/kernels/add_norm/launch_shape.h"
#include "h3rt/kernels/add_norm/ref/strict_rows.h"
#include "h3rt/num/bf16.h"

namespace h3rt {
namespace {

using device::RowPlan;
using Lanes = std::array<float, RowPlan::kWarp>;

// As the kernel computes it: `first` of group k of a thread.
int FirstOf(int k, int threads, int thread) { return (k * threads + thread) * RowPlan::kGroup; }

// Every lane adds what its partner held before the step.
Lanes Butterfly(Lanes lanes) {
  for (size_t offset = RowPlan::kWarp / 2; offset > 0; offset /= 2) {
    const Lanes before = lanes;
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
      lanes[lane] = before[lane] + before[lane ^ offset];
    }
  }
  return lanes;
}

// The inverse that each thread of the block arrives at.
std::vector<float> EmulatedInverses(const std::vector<uint16_t>& h, float eps) {
  const auto hidden = static_cast<int>(h.size());
  const int threads = RowPlan::ThreadsFor(hidden);
  std::vector<float> sums(static_cast<size_t>(threads));
  for (int thread = 0; thread < threads; ++thread) {
    float sum = 0.0f;
    for (int k = 0; k < RowPlan::kGroupsPerThread; ++k) {
      for (int i = 0; i < RowPlan::kGroup; ++i) {
        const int at = FirstOf(k, threads, thread) + i;
        const float value = at < hidden ? Bf16ToFloat(h[static_cast<size_t>(at)]) : 0.0f;
        sum = std::fma(value, value, sum);
      }
    }
    sums[static_cast<size_t>(thread)] = sum;
  }
  Lanes partials = {};
  for (int warp = 0; warp < threads / RowPlan::kWarp; ++warp) {
    Lanes lanes;
    std::copy_n(sums.begin() + warp * RowPlan::kWarp, RowPlan::kWarp, lanes.begin());
    partials[static_cast<size_t>(warp)] = Butterfly(lanes)[0];
  }
  const Lanes total = Butterfly(partials);
  std::vector<float> inverses;
  for (int thread = 0; thread < threads; ++thread) {
    const float sum = total[static_cast<size_t>(thread % RowPlan::kWarp)];
    inverses.push_back(1.0f / std::sqrt(sum / static_cast<float>(hidden) + eps));
  }
  return inverses;
}

TEST(AddNormIndex, EveryElementIsTakenOnceAndBlocksFit) {
  for (int64_t hidden = 1; hidden <= RowPlan::kMaxHidden; hidden += hidden < 1100 ? 1 : 97) {
    const int threads = RowPlan::ThreadsFor(hidden);
    ASSERT_LE(threads, RowPlan::kMaxThreads) << hidden;
    ASSERT_EQ(threads % RowPlan::kWarp, 0);
    std::vector<int> taken(static_cast<size_t>(hidden));
    for (int thread = 0; thread < threads; ++thread) {
      for (int k = 0; k < RowPlan::kGroupsPerThread; ++k) {
        for (int64_t at = FirstOf(k, threads, thread);
             at < std::min<int64_t>(FirstOf(k, threads, thread) + RowPlan::kGroup, hidden); ++at) {
          ++taken[static_cast<size_t>(at)];
        }
      }
    }
    for (const int count : taken) ASSERT_EQ(count, 1) << hidden;
  }
  EXPECT_EQ(RowPlan::ThreadsFor(5376), 224);
  EXPECT_EQ(RowPlan::ThreadsFor(RowPlan::kMaxHidden), RowPlan::kMaxThreads);
}

TEST(AddNormIndex, EmulatedThreadsGiveTheBitsOfTheStrictRows) {
  for (const AddNormCase& c : kAddNormCases) {
    const auto n = static_cast<size_t>(c.rows * c.hidden);
    std::vector<uint16_t> x(n);
    std::vector<uint16_t> w(static_cast<size_t>(c.hidden));
    for (size_t i = 0; i < n; ++i) {
      x[i] = FloatToBf16(std::sin(static_cast<float>(i)) * 3.0f);
    }
    for (size_t i = 0; i < w.size(); ++i) w[i] = FloatToBf16(1.0f + 0.01f * static_cast<float>(i));
    const std::vector<uint16_t> zeros(n);
    std::vector<uint16_t> h(n);
    std::vector<uint16_t> y(n);
    AddNormStrictRows(x.data(), zeros.data(), w.data(), c.rows, c.hidden, 1e-5f, h.data(),
                      y.data());
    ASSERT_EQ(h, x) << c.name;
    for (int64_t row = 0; row < c.rows; ++row) {
      const auto begin = h.begin() + row * c.hidden;
      const std::vector<float> inverses = EmulatedInverses({begin, begin + c.hidden}, 1e-5f);
      for (const float inverse : inverses) {
        ASSERT_EQ(std::bit_cast<uint32_t>(inverse), std::bit_cast<uint32_t>(inverses[0])) << c.name;
      }
      for (int64_t i = 0; i < c.hidden; ++i) {
        const auto at = static_cast<size_t>(row * c.hidden + i);
        const float scaled =
            Bf16ToFloat(h[at]) * inverses[0] * Bf16ToFloat(w[static_cast<size_t>(i)]);
        ASSERT_EQ(y[at], FloatToBf16(scaled)) << c.name << " row " << row << " element " << i;
      }
    }
  }
}

TEST(AddNormIndex, GridsAndWidthsFollowTheShape) {
  EXPECT_EQ(AddNormBlocks(1, 0), 1);
  EXPECT_EQ(AddNormBlocks(37808, 0), 37808);
  EXPECT_EQ(AddNormBlocks(37808, 924), 924);
  EXPECT_EQ(AddNormBlocks(int64_t{1} << 40, 0), 2147483647);
  EXPECT_TRUE(AddNormVector(0x7f00 | 0x10, 5376));
  EXPECT_FALSE(AddNormVector(0x7f02, 5376));
  EXPECT_FALSE(AddNormVector(0x7f00, 5377));
  EXPECT_TRUE(AddNormTakes(0, 1));
  EXPECT_FALSE(AddNormTakes(-1, 8));
  EXPECT_FALSE(AddNormTakes(1, 0));
  EXPECT_FALSE(AddNormTakes(1, RowPlan::kMaxHidden + 1));
}

TEST(AddNormExperiment, DeclaresWhatTheLaboratoryNeeds) {
  const Experiment& e = kAddNormExperiment;
  ASSERT_EQ(e.arms.size(), 3u);
  EXPECT_STREQ(e.arms[0].vid, "unfused");
  for (const ExperimentWorkload& w : e.workloads) {
    ASSERT_EQ(w.dims.size(), e.dim_names.size());
    EXPECT_TRUE(AddNormTakes(w.dims[0], w.dims[1])) << w.id;
    EXPECT_EQ(e.tensors(w.dims).size(), 5u);
  }
  const std::vector<int64_t> canonical = {37808, 5376};
  // Four tensors of 406.5 MB and the weights.
  EXPECT_EQ(static_cast<int64_t>(e.least_bytes(canonical)), 4 * 37808LL * 5376 * 2 + 2 * 5376);
  // Reference through the same doors as an arm.
  std::vector<std::vector<std::byte>> held;
  std::vector<std::byte*> pointers;
  for (int i = 0; i < 5; ++i) held.emplace_back(16, std::byte{0});
  for (auto& tensor : held) pointers.push_back(tensor.data());
  const std::vector<int64_t> dims = {1, 8};
  auto* x = reinterpret_cast<uint16_t*>(held[0].data());
  for (int i = 0; i < 8; ++i) x[i] = FloatToBf16(2.0f);
  e.reference({pointers, dims, nullptr});
  EXPECT_EQ(Bf16ToFloat(reinterpret_cast<uint16_t*>(held[3].data())[7]), 2.0f);
}

}  // namespace
}  // namespace h3rt
