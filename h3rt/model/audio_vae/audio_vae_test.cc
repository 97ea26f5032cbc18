#include "h3rt/model/audio_vae/audio_vae.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <thread>

#include "h3rt/io/checkpoint.h"
#include "h3rt/io/safetensors.h"
#include "h3rt/num/compare.h"

namespace h3rt {
namespace {

// Issue: relative L2 of the audio VAE.
constexpr double kBound = 2e-5;

struct Model {
  AudioVaeCheckpoint checkpoint;
  SafetensorsFile fixture;
  AudioVae vae;

  static std::unique_ptr<Model> Open(const std::string& name) {
    const std::string folder = std::string(H3RT_TEST_DATA) + "/h3/" + name + "/";
    auto checkpoint = OpenAudioVae(folder + "audio_vae");
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    auto fixture = SafetensorsFile::Open(folder + "audio_vae.safetensors");
    EXPECT_TRUE(fixture.ok()) << fixture.status();
    auto vae = AudioVae::Create(checkpoint->config, checkpoint->weights);
    EXPECT_TRUE(vae.ok()) << vae.status();
    return std::unique_ptr<Model>(
        new Model{*std::move(checkpoint), *std::move(fixture), *std::move(vae)});
  }
  ConstTensorView Get(const std::string& name) const { return fixture.Get(name).value(); }
  // Samples [channels, 1, n] as [channels, n].
  ConstTensorView Samples(const std::string& name) const { return Get(name).Select(1, 0); }
};

std::span<const float> Values(const ConstTensorView& view) {
  return {view.as<float>(), static_cast<size_t>(view.elements())};
}

std::string BytesOf(const ConstTensorView& view) {
  return {reinterpret_cast<const char*>(view.data()), static_cast<size_t>(view.bytes())};
}

class AudioVaeParity : public ::testing::TestWithParam<const char*> {
 protected:
  ThreadPool pool_{2};
  ExecContext context_{.pool = &pool_};
};

TEST_P(AudioVaeParity, DecodeEqualsThePublicImplementation) {
  const auto model = Model::Open(GetParam());
  const auto got = model->vae.Decode(model->Get("z"), context_);
  ASSERT_TRUE(got.ok()) << got.status();
  const Tensor want = Tensor::Copy(model->Samples("decode")).value();
  const CompareResult all = CompareFloats(Values(got->view()), got->shape().dims(),
                                          Values(want.view()), want.shape().dims());
  EXPECT_TRUE(Within(all, kBound)) << Describe(all);
  RecordProperty("decode", Describe(all));
  // A clamped sample agrees whatever lies behind the clamp, so the others are compared alone.
  std::vector<float> free_got;
  std::vector<float> free_want;
  for (int64_t i = 0; i < want.elements(); ++i) {
    if (!(std::abs(want.as<float>()[i]) < 1.0f)) continue;
    free_got.push_back(got->as<float>()[i]);
    free_want.push_back(want.as<float>()[i]);
  }
  ASSERT_GT(free_want.size(), static_cast<size_t>(want.elements()) / 4);
  const CompareResult free = CompareFloats(free_got, free_want);
  EXPECT_TRUE(Within(free, kBound)) << Describe(free);
  RecordProperty("decode_unclamped", Describe(free));
}

TEST_P(AudioVaeParity, EncodedMeansEqualThePublicImplementation) {
  const auto model = Model::Open(GetParam());
  const Tensor wave = Tensor::Copy(model->Samples("wave")).value();
  ASSERT_NE(wave.shape()[1] % model->vae.config().hop(), 0);
  const auto got = model->vae.Encode(wave.view(), context_);
  ASSERT_TRUE(got.ok()) << got.status();
  const ConstTensorView want = model->Get("encode_mode");
  const CompareResult result =
      CompareFloats(Values(got->view()), got->shape().dims(), Values(want), want.shape().dims());
  EXPECT_TRUE(Within(result, kBound)) << Describe(result);
  RecordProperty("encode_mode", Describe(result));
}

INSTANTIATE_TEST_SUITE_P(Models, AudioVaeParity, ::testing::Values("nano", "mini"));

class AudioVaeTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { nano_ = Model::Open("nano").release(); }
  static void TearDownTestSuite() {
    delete nano_;
    nano_ = nullptr;
  }
  static Model* nano_;
  ThreadPool pool_{2};
  ExecContext context_{.pool = &pool_};
};
Model* AudioVaeTest::nano_ = nullptr;

void ExpectRefused(const absl::StatusOr<Tensor>& got, const std::string& part) {
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.status().code(), absl::StatusCode::kInvalidArgument) << got.status();
  EXPECT_NE(got.status().message().find(part), std::string::npos) << got.status();
}

// T22: at the released hop of 800.
TEST_F(AudioVaeTest, PartOfAHopIsAWholeLatent) {
  const AudioVaeConfig released;
  EXPECT_EQ(AudioVae::LatentsFor(released, 437333), 547);
  EXPECT_EQ(AudioVae::LatentsFor(released, 800), 1);
  EXPECT_EQ(AudioVae::LatentsFor(released, 801), 2);
  EXPECT_EQ(AudioVae::LatentsFor(released, 1), 1);
}

TEST_F(AudioVaeTest, TheRightEndIsPaddedWithZeros) {
  const int64_t hop = nano_->vae.config().hop();
  Tensor wave = Tensor::Create(DType::kF32, {2, 5 * hop}).value();
  for (int64_t i = 0; i < wave.elements(); ++i) {
    wave.as<float>()[i] = 0.3f * std::sin(0.7f * static_cast<float>(i));
  }
  const Tensor part = Tensor::Copy(wave.view().Slice(1, 0, 5 * hop - 3)).value();
  for (int64_t channel = 0; channel < 2; ++channel) {
    for (int64_t i = 1; i <= 3; ++i) wave.as<float>()[(channel + 1) * 5 * hop - i] = 0.0f;
  }
  const auto padded = nano_->vae.Encode(wave.view(), context_);
  const auto got = nano_->vae.Encode(part.view(), context_);
  ASSERT_TRUE(padded.ok() && got.ok()) << padded.status() << got.status();
  EXPECT_EQ(got->shape(), Shape({2, 8, 5}));
  EXPECT_EQ(BytesOf(got->view()), BytesOf(padded->view()));
}

TEST_F(AudioVaeTest, ChannelsAreIndependent) {
  const ConstTensorView z = nano_->Get("z");
  const auto both = nano_->vae.Decode(z, context_);
  ASSERT_TRUE(both.ok());
  for (int64_t channel = 0; channel < 2; ++channel) {
    const auto one = nano_->vae.Decode(z.Slice(0, channel, channel + 1), context_);
    ASSERT_TRUE(one.ok()) << one.status();
    EXPECT_EQ(BytesOf(one->view()), BytesOf(both->view().Slice(0, channel, channel + 1)));
  }
}

// Attention is causal and everything before it has a bounded reach, so that the first latents do
// not see far samples.
TEST_F(AudioVaeTest, EncodedLatentsDoNotSeeTheFarFuture) {
  const int64_t hop = nano_->vae.config().hop();
  const int64_t n = 200 * hop;
  Tensor wave = Tensor::Create(DType::kF32, {1, n}).value();
  for (int64_t i = 0; i < n; ++i) wave.as<float>()[i] = 0.2f * std::cos(static_cast<float>(i));
  const auto before = nano_->vae.Encode(wave.view(), context_);
  for (int64_t i = n / 2; i < n; ++i) wave.as<float>()[i] = -0.4f;
  const auto after = nano_->vae.Encode(wave.view(), context_);
  ASSERT_TRUE(before.ok() && after.ok()) << before.status() << after.status();
  for (int64_t c = 0; c < 8; ++c) {
    const float* a = before->as<float>() + c * 200;
    const float* b = after->as<float>() + c * 200;
    // 39 samples of dilation at each of two levels reach less than 60 latents of 4 samples.
    for (int64_t t = 0; t < 40; ++t) ASSERT_EQ(a[t], b[t]) << c << " " << t;
    EXPECT_NE(a[199], b[199]);
  }
}

TEST_F(AudioVaeTest, ConstantLatentsSettleToAConstantAwayFromTheEnds) {
  // A stationary input gives an output that repeats with the hop; the ends see padding.
  const int64_t a = 240;
  const int64_t hop = nano_->vae.config().hop();
  const Tensor z = Tensor::Zeros(DType::kF32, {1, 8, a}).value();
  const auto got = nano_->vae.Decode(z.view(), context_);
  ASSERT_TRUE(got.ok()) << got.status();
  const std::span<const float> middle =
      Values(got->view()).subspan(static_cast<size_t>(a / 2 * hop));
  const auto n = static_cast<size_t>(8 * hop);
  // Both windows are the same samples up to rounding, and each is allowed to be off by kBound of
  // its norm; the triangle inequality allows their difference twice that.
  const CompareResult shifted =
      CompareFloats(middle.subspan(static_cast<size_t>(hop), n), middle.first(n));
  EXPECT_TRUE(Within(shifted, 2 * kBound)) << Describe(shifted);
  for (const float v : middle.first(n)) ASSERT_LE(std::abs(v), 1.0f);
}

TEST_F(AudioVaeTest, SamplesAreClamped) {
  const ConstTensorView z = nano_->Get("z");
  Tensor loud = Tensor::Copy(z).value();
  for (int64_t i = 0; i < loud.elements(); ++i) loud.as<float>()[i] *= 50.0f;
  const auto got = nano_->vae.Decode(loud.view(), context_);
  ASSERT_TRUE(got.ok()) << got.status();
  int64_t clamped = 0;
  for (const float v : Values(got->view())) {
    ASSERT_LE(std::abs(v), 1.0f);
    clamped += std::abs(v) == 1.0f ? 1 : 0;
  }
  EXPECT_GT(clamped, 0);
}

TEST_F(AudioVaeTest, NormalisationIsPerChannelAndGoesBack) {
  const auto mini = Model::Open("mini");
  const ConstTensorView z = mini->Get("z");
  Tensor changed = Tensor::Copy(z).value();
  mini->vae.Normalize(changed.view());
  const AudioVaeConfig& config = mini->vae.config();
  for (int64_t i = 0; i < z.elements(); ++i) {
    const auto c = static_cast<size_t>(i / z.dim(2) % z.dim(1));
    const double want =
        (static_cast<double>(z.as<float>()[i]) - config.latents_mean[c]) / config.latents_std[c];
    ASSERT_NEAR(static_cast<double>(changed.as<float>()[i]), want, 1e-6 * (1 + std::abs(want)));
  }
  Tensor other = Tensor::Copy(z).value();
  ASSERT_TRUE(mini->vae.Normalize(other.view(), context_).ok());
  EXPECT_EQ(BytesOf(other.view()), BytesOf(changed.view()));
  mini->vae.Denormalize(changed.view());
  ASSERT_TRUE(mini->vae.Denormalize(other.view(), context_).ok());
  EXPECT_EQ(BytesOf(other.view()), BytesOf(changed.view()));
  EXPECT_TRUE(Within(CompareFloats(Values(changed.view()), Values(z)), 1e-6));
}

TEST_F(AudioVaeTest, WrongInputIsRefused) {
  const auto decode = [&](const Shape& shape) {
    return nano_->vae.Decode(Tensor::Zeros(DType::kF32, shape).value().view(), context_);
  };
  ExpectRefused(decode({2, 8, 0}), "audio VAE decode");
  ExpectRefused(decode({2, 7, 3}), "[2, 7, 3]");
  ExpectRefused(decode({8, 3}), "[8, 3]");
  ExpectRefused(nano_->vae.Decode(ConstTensorView(), context_), "audio VAE decode");
  const auto encode = [&](const Shape& shape) {
    return nano_->vae.Encode(Tensor::Zeros(DType::kF32, shape).value().view(), context_);
  };
  ExpectRefused(encode({2, 0}), "n at least 1");
  ExpectRefused(encode({2, 1, 9}), "audio VAE encode");
  const auto doubles = Tensor::Zeros(DType::kF64, {2, 9}).value();
  ExpectRefused(nano_->vae.Encode(doubles.view(), context_), "F64");
}

TEST_F(AudioVaeTest, ValuesThatAreNotFiniteAreReported) {
  for (const float value : {std::nanf(""), -std::numeric_limits<float>::infinity()}) {
    Tensor z = Tensor::Zeros(DType::kF32, {1, 8, 3}).value();
    z.as<float>()[13] = value;
    ExpectRefused(nano_->vae.Decode(z.view(), context_), "[0, 4, 1]");
    Tensor wave = Tensor::Zeros(DType::kF32, {1, 9}).value();
    wave.as<float>()[8] = value;
    ExpectRefused(nano_->vae.Encode(wave.view(), context_), "[0, 8]");
  }
}

TEST_F(AudioVaeTest, BytesDoNotDependOnThreads) {
  const auto mini = Model::Open("mini");
  const Tensor z = Tensor::Copy(mini->Get("z").Slice(2, 0, 5)).value();
  const Tensor wave = Tensor::Copy(mini->Samples("wave")).value();
  std::string decoded;
  std::string encoded;
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    const ExecContext context = {.pool = &pool};
    const auto samples = mini->vae.Decode(z.view(), context);
    const auto means = mini->vae.Encode(wave.view(), context);
    ASSERT_TRUE(samples.ok() && means.ok()) << samples.status() << means.status();
    if (threads == 1) {
      decoded = BytesOf(samples->view());
      encoded = BytesOf(means->view());
    }
    EXPECT_EQ(BytesOf(samples->view()), decoded) << threads;
    EXPECT_EQ(BytesOf(means->view()), encoded) << threads;
  }
}

TEST_F(AudioVaeTest, CancelStops) {
  CancelToken cancel;
  cancel.Cancel();
  ExecContext context = context_;
  context.cancel = &cancel;
  EXPECT_EQ(nano_->vae.Decode(nano_->Get("z"), context).status().code(),
            absl::StatusCode::kCancelled);
  const Tensor wave = Tensor::Zeros(DType::kF32, {1, 9}).value();
  EXPECT_EQ(nano_->vae.Encode(wave.view(), context).status().code(), absl::StatusCode::kCancelled);
}

// T21: one channel, before which the token is looked at once, so that only a look inside the decode
// can stop it. When the second thread comes too late another try is made.
TEST_F(AudioVaeTest, CancelFromAnotherThreadStopsADecode) {
  Tensor z = Tensor::Create(DType::kF32, {1, 8, 20000}).value();
  for (int64_t i = 0; i < z.elements(); ++i) {
    z.as<float>()[i] = static_cast<float>(i * 37 % 101) / 50.0f - 1.0f;
  }
  const auto start = std::chrono::steady_clock::now();
  const auto want = nano_->vae.Decode(z.view(), context_);
  const auto whole = std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(want.ok()) << want.status();
  CancelToken cancel;
  ExecContext context = context_;
  context.cancel = &cancel;
  bool stopped = false;
  for (int attempt = 0; attempt < 20 && !stopped; ++attempt) {
    cancel.Reset();
    std::thread other([&] {
      std::this_thread::sleep_for(whole / 3);
      cancel.Cancel();
    });
    const auto got = nano_->vae.Decode(z.view(), context);
    other.join();
    if (got.ok()) continue;
    EXPECT_EQ(got.status().code(), absl::StatusCode::kCancelled) << got.status();
    stopped = true;
  }
  EXPECT_TRUE(stopped);
  cancel.Reset();
  const auto again = nano_->vae.Decode(z.view(), context);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(BytesOf(again->view()), BytesOf(want->view()));
}

}  // namespace
}  // namespace h3rt
