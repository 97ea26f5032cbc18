// The oracle of exact attention against what the public library wrote on an H200, and against
// float64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "h3rt/io/safetensors.h"
#include "h3rt/kernels/attention/exact/golden_file.h"
#include "h3rt/kernels/attention/oracle/attention_testing.h"

namespace h3rt {
namespace {

class Fixture {
 public:
  explicit Fixture(const std::string& name)
      : file_(SafetensorsFile::Open(H3RT_TEST_DATA "/sage2/" + name + ".safetensors").value()),
        index_(ReadGoldenIndex(H3RT_TEST_DATA "/sage2/index.json").value()),
        golden(*index_.Find(name)),
        k_mean(Read<uint16_t>("k_mean")) {}
  template <typename T>
  std::vector<T> Read(const std::string& key) const {
    const ConstTensorView view = file_.Get(key).value();
    std::vector<T> out(static_cast<size_t>(view.elements()));
    std::memcpy(out.data(), view.data(), out.size() * sizeof(T));
    return out;
  }

 private:
  SafetensorsFile file_;
  GoldenIndex index_;

 public:
  const GoldenCase& golden;
  std::vector<uint16_t> k_mean;
};
constexpr std::array<const char*, 3> kFixtures = {"aligned_q128_kv192", "one_row", "d64_200"};

// MUFU.EX2 and MUFU.LG2 are within 2^-22 of the value (relatively; LG2 below 2 absolutely), as the
// PTX manual states; ours are the correctly rounded ones. Twice that covers both.
constexpr double kMufu = 0x1p-21;

// What the tensor cores may be off in one step of 32 keys. `largest`: the largest of the step's
// products and the accumulator before and after; `mass`: |accumulator| + sum of |products|.
//   B    products and accumulator are aligned to the largest and cut to 13 fraction bits: each of
//        33 addends loses less than 2^-13 of the largest.
//   A32, A1 on Hopper: two HMMA of 16 products, each 17 addends cut at no less than 22 bits, then
//        one float32 addition.
//   A16  on Hopper: two HMMA and an addition, rounded to float16 each: 3 halves of an ulp, and one
//        of ours; an ulp is below 2^-10 of the mass. Below 2^-14 float16 has the fixed step 2^-24.
double StepError(ExactPath path, double largest, double mass) {
  switch (path) {
    case ExactPath::kB:
      return 33 * 0x1p-13 * largest;
    case ExactPath::kA16:
      return 4 * (0x1p-11 * mass + 0x1p-25);
    case ExactPath::kA32:
    case ExactPath::kA1:
      break;
  }
  return (2 * 17 + 1) * 0x1p-22 * largest;
}

// How far one output before its last rounding may be from the library's.
class OutputBound {
 public:
  OutputBound(const Call& call, int64_t head, int64_t row) : call_(call), head_(head), row_(row) {}

  double Of(int64_t channel) const {
    const ExactProblem& problem = call_.problem;
    const exact::Geometry g = call_.geometry();
    const int64_t at = head_ * problem.q_len + row_;
    const int64_t dim = problem.padded_dim();
    const int64_t epochs = call_.epochs();
    const int64_t steps = g.cta_k / kStepKeys;
    double error = 0;
    double before = 0;  // RO of the epoch before
    for (int64_t j = 0; j < epochs; ++j) {
      const double a = call_.at.a[at * epochs + j];
      error = a * error + kMufu * a * std::fabs(before);  // of a itself
      double accumulator = problem.path == ExactPath::kA1 ? a * before : 0;
      for (int64_t f = 0; f < steps; ++f) {
        const double after = call_.at.u[((at * epochs + j) * steps + f) * dim + channel];
        double largest = std::max(std::fabs(accumulator), std::fabs(after));
        double mass = std::fabs(accumulator);
        for (int64_t i = 0; i < kStepKeys; ++i) {
          const int64_t key = j * g.cta_k + f * kStepKeys + i;
          if (key >= problem.k_len) break;
          const double v = std::fabs(Value(key, channel));
          const double product = v * E4m3ToFloat(call_.at.p8[at * problem.k_len + key]);
          largest = std::max(largest, product);
          mass += product;
          error += v * CodeError(call_.at.p[at * problem.k_len + key]);
        }
        error += StepError(problem.path, largest, mass);
        accumulator = after;
      }
      before = call_.at.ro[(at * epochs + j) * dim + channel];
      error += 0x1p-23 * std::fabs(before);  // rounding of the fused multiply-add, on both sides
    }
    const double to_output =
        std::fabs(call_.at.r[at] * call_.prepared.v_scale[KvHead() * dim + channel]);
    // d, its reciprocal and the two products: the sum of p is off by no more than each p, and each
    // of the additions rounds differently by half an ulp at most.
    const double additions = static_cast<double>(epochs * g.cta_k / 16 * 4 + 5);
    const double relative = 2 * kMufu + (additions + 4) * 0x1p-24;
    return to_output * (error + relative * std::fabs(before));
  }

 private:
  int64_t KvHead() const { return head_ / (call_.problem.q_heads / call_.problem.k_heads); }
  double Value(int64_t key, int64_t channel) const {
    const int64_t padded = exact::RoundUp(call_.problem.k_len, exact::kRowPad);
    const int64_t place = key / 16 * 16 + exact::VPosition(static_cast<int>(key % 16));
    const int64_t dim = call_.problem.padded_dim();
    return E4m3ToFloat(call_.prepared.v8[(KvHead() * dim + channel) * padded + place]);
  }
  // By how much the code of p may differ where MUFU.EX2 gives the value one error away.
  static double CodeError(float p) {
    const double low = E4m3ToFloat(strict::ToE4m3(static_cast<float>(p * (1 - kMufu))));
    const double high = E4m3ToFloat(strict::ToE4m3(static_cast<float>(p * (1 + kMufu))));
    return high - low;
  }

  const Call& call_;
  int64_t head_;
  int64_t row_;
};

double UlpOf(ExactType type, double value) {
  const int fraction = type == ExactType::kBf16 ? 7 : 10;
  const int least = type == ExactType::kBf16 ? -126 : -14;
  const int exponent = value == 0 ? least : std::max(least, std::ilogb(value));
  return std::ldexp(1.0, exponent - fraction);
}

void ExpectOutputNear(const Call& call, const std::vector<uint16_t>& library) {
  const ExactProblem& p = call.problem;
  ASSERT_EQ(library.size(), call.o.size());
  double bounds = 0;
  double outputs = 0;
  int64_t outside = 0;
  for (int64_t head = 0; head < p.q_heads; ++head) {
    for (int64_t row = 0; row < p.q_len; ++row) {
      const OutputBound bound(call, head, row);
      for (int64_t c = 0; c < p.head_dim; ++c) {
        const int64_t i = (row * p.q_heads + head) * p.head_dim + c;
        const double ours = call.OutputAt(i);
        const double theirs = WidenExact(p.type, library[static_cast<size_t>(i)]);
        const double allowed = bound.Of(c);
        bounds += allowed * allowed;
        outputs += theirs * theirs;
        // Both are rounded once: half an ulp each, of the larger.
        const double ulp = std::max(UlpOf(p.type, ours), UlpOf(p.type, theirs));
        if (!(std::fabs(ours - theirs) <= allowed + ulp) && outside++ == 0) {
          ADD_FAILURE() << "head " << head << ", row " << row << ", channel " << c << ": " << ours
                        << ", library " << theirs << ", bound " << allowed << " + " << ulp;
        }
      }
    }
  }
  EXPECT_EQ(outside, 0);
  EXPECT_LT(std::sqrt(bounds / outputs), 0.05) << "the bound itself has to say something";
}

void ExpectLseNear(const Call& call, const std::vector<float>& library_raw,
                   const std::vector<float>& library) {
  const double additions = static_cast<double>(call.epochs() * call.geometry().cta_k / 16 * 4 + 5);
  for (size_t i = 0; i < library_raw.size(); ++i) {
    const double lg2 = std::fabs(std::log2(static_cast<double>(call.at.d[i])));
    const double lse2 = std::fabs(call.at.lse2[i]);
    const double m = std::fabs(lse2 - lg2) + lg2;
    const double of_d = (kMufu + additions * 0x1p-24) * 1.4427;
    const double ulps = 0x1p-23 * (m + 2 * lse2);  // of the sum and the product
    const double allowed = (of_d + kMufu * std::max(1.0, lg2) + ulps) * 0.6932;
    EXPECT_LE(std::fabs(double{call.lse_raw[i]} - library_raw[i]), allowed) << "row " << i;
    // The correction is the library's own product of 16-bit floats, here correctly rounded: equal
    // in these cases.
    const double correction = std::fabs(double{library[i]} - library_raw[i]);
    EXPECT_LE(std::fabs(double{call.lse[i]} - library[i]),
              allowed + 0x1p-23 * (correction + std::fabs(library[i]) + lse2))
        << "row " << i;
    EXPECT_LT(allowed, 3e-5) << "the bound itself has to say something";
  }
}

// The codes and scales of V as the library made them: MUFU.RCP's last bit decides a few codes. Its
// layout is [batch, channel, head, key], padded to 64 keys; the batch is 1.
void TakeLibraryV(const Fixture& fixture, const Call& call) {
  const ExactProblem& p = call.problem;
  const std::string prefix = p.path == ExactPath::kA16 ? "v2.25" : "v448.0";
  const std::vector<uint8_t> codes = fixture.Read<uint8_t>(prefix + ".v_fp8");
  const std::vector<float> scales = fixture.Read<float>(prefix + ".v_scale");
  const int64_t from = exact::RoundUp(p.k_len, 64);
  const int64_t to = exact::RoundUp(p.k_len, exact::kRowPad);
  ASSERT_EQ(static_cast<int64_t>(codes.size()), p.head_dim * p.k_heads * from);
  ASSERT_EQ(static_cast<int64_t>(scales.size()), p.k_heads * p.head_dim);
  for (int64_t head = 0; head < p.k_heads; ++head) {
    for (int64_t c = 0; c < p.head_dim; ++c) {
      std::copy_n(&codes[static_cast<size_t>((c * p.k_heads + head) * from)], from,
                  call.prepared.v8 + (head * p.head_dim + c) * to);
    }
  }
  std::copy(scales.begin(), scales.end(), call.prepared.v_scale);
}

double RelativeL2(const Call& call, const std::vector<double>& reference) {
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double delta = call.OutputAt(static_cast<int64_t>(i)) - reference[i];
    difference += delta * delta;
    norm += reference[i] * reference[i];
  }
  return std::sqrt(difference / norm);
}

TEST(OracleAgainstTheLibraryTest, OutputAndLseAreNearTheLibrarysAndTheErrorIsNotAboveIt) {
  for (const char* name : kFixtures) {
    const Fixture fixture(name);
    ASSERT_EQ(fixture.golden.outputs.size(), 8u);
    for (const GoldenOutput& golden : fixture.golden.outputs) {
      SCOPED_TRACE(std::string(name) + " " + golden.key);
      Call call(fixture.golden.inputs, golden.path, golden.granularity);
      call.problem.given_k_mean = fixture.k_mean.data();
      call.Prepare();
      TakeLibraryV(fixture, call);
      call.Attend();
      ExpectOutputNear(call, fixture.Read<uint16_t>(golden.key + ".o"));
      ExpectLseNear(call, fixture.Read<float>(golden.key + ".lse_raw"),
                    fixture.Read<float>(golden.key + ".lse"));
      std::vector<double> reference(call.o.size(), std::nan(""));
      ASSERT_TRUE(
          Float64Attention(call.problem, 0, call.problem.q_len, reference.data(), nullptr).ok());
      EXPECT_LE(RelativeL2(call, reference), 1.05 * golden.rel_l2.value());
    }
  }
}

// The file of a float16 case is not kept here, only its hashes and the library's errors.
TEST(OracleAgainstTheLibraryTest, TheErrorOfFloat16IsNotAboveTheLibrarys) {
  const GoldenIndex index = ReadGoldenIndex(H3RT_TEST_DATA "/sage2/index.json").value();
  const GoldenCase& golden = *index.Find("fp16_192");
  ASSERT_EQ(golden.inputs.type, ExactType::kF16);
  ASSERT_EQ(golden.outputs.size(), 8u);
  for (const GoldenOutput& output : golden.outputs) {
    SCOPED_TRACE(output.key);
    Call call(golden.inputs, output.path, output.granularity);
    call.Run();
    std::vector<double> reference(call.o.size(), std::nan(""));
    ASSERT_TRUE(
        Float64Attention(call.problem, 0, call.problem.q_len, reference.data(), nullptr).ok());
    EXPECT_LE(RelativeL2(call, reference), 1.05 * output.rel_l2.value());
    call.o[77] ^= 0x8000u;
    call.o[78] = 0x7e00u;  // a NaN
    EXPECT_FALSE(RelativeL2(call, reference) <= 1.05 * output.rel_l2.value());
  }
}

// T13. Scores are off by what quantisation adds: each of q and k by half a step, through the 1-norm
// of the other, and the correction by its own rounding; the LSE is off by the largest of them.
double ScoreBound(const Call& call, int64_t row) {
  double q_sum = 0;
  double correction = 0;
  for (int64_t c = 0; c < 64; ++c) {
    const double q = Bf16ToFloat(call.inputs.q[static_cast<size_t>(row * 64 + c)]);
    q_sum += std::fabs(q);
    correction += q * Bf16ToFloat(call.prepared.k_mean[c]);
  }
  double bound = 0;
  const exact::Geometry g = call.geometry();
  for (int64_t key = 0; key < call.problem.k_len; ++key) {
    const double qs = call.prepared.q_scale[row / g.warp_q];
    const double ks = call.prepared.k_scale[key / g.cta_k];
    double k_sum = 0;
    for (int64_t c = 0; c < 64; ++c) k_sum += std::abs(call.prepared.k8[key * 64 + c]) * ks;
    bound = std::max(bound, 0.5 * ks * q_sum + 0.5 * qs * k_sum);
  }
  return call.problem.sm_scale * (bound * 1.001 + std::fabs(correction) * 0x1p-8) + 1e-5;
}

TEST(OracleAgainstTheLibraryTest, UnevenShardsMergeThroughTheirLse) {
  const int64_t cut = 77;
  const int64_t n = 300;
  const int64_t rows = 40;
  for (const ExactPath path : kPaths) {
    Call whole(Spec(rows, n, 64), path, ExactGranularity::kPerWarp);
    std::vector<double> exact_o(rows * 64);
    std::vector<double> exact_lse(rows);
    ASSERT_TRUE(Float64Attention(whole.problem, 0, rows, exact_o.data(), exact_lse.data()).ok());
    ExactInputs halves[2];
    std::vector<std::unique_ptr<Call>> shards;
    std::vector<double> shard_o[2];
    for (int i = 0; i < 2; ++i) {
      ExactInputs part;
      part.q = whole.inputs.q;
      const auto take = [&](const std::vector<uint16_t>& from) {
        return i == 0 ? std::vector<uint16_t>(from.begin(), from.begin() + cut * 64)
                      : std::vector<uint16_t>(from.begin() + cut * 64, from.end());
      };
      part.k = take(whole.inputs.k);
      part.v = take(whole.inputs.v);
      shards.push_back(std::make_unique<Call>(Spec(rows, i == 0 ? cut : n - cut, 64), part, path,
                                              ExactGranularity::kPerWarp));
      shards[static_cast<size_t>(i)]->Run();
      shard_o[i].resize(rows * 64);
      ASSERT_TRUE(Float64Attention(shards[static_cast<size_t>(i)]->problem, 0, rows,
                                   shard_o[i].data(), nullptr)
                      .ok());
    }
    double uncorrected = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const size_t at = static_cast<size_t>(row);
      const double l0 = shards[0]->lse[at];
      const double l1 = shards[1]->lse[at];
      const double lse = std::max(l0, l1) + std::log1p(std::exp(-std::fabs(l0 - l1)));
      const double bound = std::max(ScoreBound(*shards[0], row), ScoreBound(*shards[1], row));
      EXPECT_LE(std::fabs(lse - exact_lse[at]), bound);
      uncorrected = std::max(uncorrected, std::fabs(shards[0]->lse_raw[at] - l0));
      // Weights are off by a quarter of what the difference of the two logarithms is off by.
      const double w0 = std::exp(l0 - lse);
      double difference = 0;
      double errors[2] = {0, 0};
      double apart = 0;
      for (int64_t c = row * 64; c < row * 64 + 64; ++c) {
        const size_t i = static_cast<size_t>(c);
        const double o0 = shards[0]->OutputAt(c);
        const double o1 = shards[1]->OutputAt(c);
        const double delta = w0 * o0 + (1 - w0) * o1 - exact_o[i];
        difference += delta * delta;
        errors[0] += (o0 - shard_o[0][i]) * (o0 - shard_o[0][i]);
        errors[1] += (o1 - shard_o[1][i]) * (o1 - shard_o[1][i]);
        apart += (shard_o[0][i] - shard_o[1][i]) * (shard_o[0][i] - shard_o[1][i]);
      }
      const double allowed = w0 * std::sqrt(errors[0]) + (1 - w0) * std::sqrt(errors[1]) +
                             0.25 * 2 * bound * std::sqrt(apart) + 1e-9;
      EXPECT_LE(std::sqrt(difference), allowed);
    }
    EXPECT_GT(uncorrected, 1.0) << "without the correction the merge would be far off";
  }
}

}  // namespace
}  // namespace h3rt
