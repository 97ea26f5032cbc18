#include "h3rt/runtime/session.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "h3rt/num/torch_rng.h"
#include "h3rt/runtime/memory.h"

namespace h3rt {
namespace {

constexpr char kModel[] = H3RT_TEST_DATA "/h3/mini";

std::unique_ptr<Session> Open(int threads = 2) {
  SessionOptions options;
  options.threads = threads;
  auto session = Session::Open(kModel, options);
  EXPECT_TRUE(session.ok()) << session.status();
  return session.ok() ? std::move(session).value() : nullptr;
}

Tensor RandomTensor(const Shape& shape, uint64_t seed) {
  Tensor tensor = Tensor::Create(DType::kF32, shape).value();
  TorchGenerator generator(seed);
  generator.Randn({tensor.as<float>(), static_cast<size_t>(tensor.elements())});
  return tensor;
}

// A small clip: 22 frames at 32x32, two forwards.
GenerateRequest SmallRequest(uint64_t seed = 7) {
  GenerateRequest request;
  request.prompt_embeds = RandomTensor({6, 64}, 1000 + seed);
  request.width = 32;
  request.height = 32;
  request.frames = 22;
  request.forwards = 2;
  request.seed = seed;
  return request;
}

std::string BytesOf(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.view().data()), static_cast<size_t>(tensor.bytes())};
}

// All bytes of a result, to compare runs.
std::string BytesOf(const GenerateResult& result) {
  return BytesOf(result.frames) + BytesOf(result.samples) + BytesOf(result.latents) +
         BytesOf(result.audio_latents);
}

std::string RunOnce(Session& session, const GenerateRequest& request) {
  const auto result = session.Generate(request, {}, nullptr);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? BytesOf(*result) : "";
}

TEST(Session, MakesAClipOfThePromisedShape) {
  const auto session = Open();
  const auto result = session->Generate(SmallRequest(), {}, nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->frames.shape(), (Shape{3, 22, 32, 32}));
  EXPECT_EQ(result->samples.shape(), (Shape{2, 37 * 800}));
  EXPECT_EQ(result->latents.shape(), (Shape{24, 7, 2, 2}));
  EXPECT_EQ(result->audio_latents.shape(), (Shape{2, 32, 37}));
  for (int64_t i = 0; i < result->frames.elements(); ++i) {
    const float x = result->frames.as<float>()[i];
    ASSERT_TRUE(x >= 0.0f && x <= 1.0f) << i << " " << x;
  }
  std::vector<std::string> stages;
  for (const StageTime& stage : result->stages) stages.push_back(stage.stage);
  EXPECT_EQ(stages, (std::vector<std::string>{"adaln", "denoise", "decode video", "decode audio"}));
}

TEST(Session, FiveFramesDecodeOnePaddedChunk) {
  const auto session = Open();
  GenerateRequest request = SmallRequest();
  request.frames = 5;
  const auto result = session->Generate(request, {}, nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->frames.shape(), (Shape{3, 5, 32, 32}));
  EXPECT_EQ(result->samples.shape(), (Shape{2, 8 * 800}));
}

TEST(Session, SameBytesForAnyNumberOfThreads) {
  const std::string one = RunOnce(*Open(1), SmallRequest());
  ASSERT_FALSE(one.empty());
  for (const int threads : {2, 3, 8}) {
    EXPECT_TRUE(RunOnce(*Open(threads), SmallRequest()) == one) << threads << " threads";
  }
}

TEST(Session, AnotherJobBetweenDoesNotChangeTheBytes) {
  const auto session = Open();
  const std::string a = RunOnce(*session, SmallRequest(1));
  GenerateRequest other = SmallRequest(2);
  other.width = 64;
  other.frames = 5;
  const std::string b = RunOnce(*session, other);
  EXPECT_TRUE(RunOnce(*session, SmallRequest(1)) == a);
  EXPECT_FALSE(b == a);
  EXPECT_FALSE(RunOnce(*session, SmallRequest(3)) == a) << "the seed changes the clip";
}

TEST(Session, FiftyJobsKeepMemoryFlat) {
  const auto session = Open();
  GenerateRequest request = SmallRequest();
  request.frames = 5;
  request.forwards = 1;
  std::string first;
  uint64_t after_five = 0;
  for (int i = 0; i < 50; ++i) {
    const std::string bytes = RunOnce(*session, request);
    if (i == 0) first = bytes;
    ASSERT_TRUE(bytes == first) << "job " << i;
    if (i == 4) after_five = ResidentBytes();
  }
  // One job of this size works on about 10 MB; a leak of a twentieth of that a job would show.
  EXPECT_LT(ResidentBytes(), after_five + (20ull << 20));
}

TEST(Session, CancelledAtEveryStepItStaysUsable) {
  const auto session = Open();
  const std::string whole = RunOnce(*session, SmallRequest());
  int64_t events = 0;
  ASSERT_TRUE(session
                  ->Generate(
                      SmallRequest(), [&](const ProgressEvent&) { ++events; }, nullptr)
                  .ok());
  ASSERT_GT(events, 6);
  for (int64_t at = 0; at < events - 1; ++at) {
    CancelToken cancel;
    int64_t seen = 0;
    const auto result = session->Generate(
        SmallRequest(),
        [&](const ProgressEvent&) {
          if (seen++ == at) cancel.Cancel();
        },
        &cancel);
    EXPECT_EQ(result.status().code(), absl::StatusCode::kCancelled) << "event " << at;
  }
  EXPECT_TRUE(RunOnce(*session, SmallRequest()) == whole);
}

TEST(Session, RefusesBeforeAllocatingWhatDoesNotFit) {
  const auto session = Open();
  const GenerateRequest request = SmallRequest();
  const auto plan = session->Plan(request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  setenv("H3RT_FAKE_MEMORY", std::to_string(plan->peak() - 1).c_str(), 1);
  int64_t events = 0;
  const auto refused = session->Generate(
      request, [&](const ProgressEvent&) { ++events; }, nullptr);
  unsetenv("H3RT_FAKE_MEMORY");
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(events, 0) << "no stage may have begun";
  EXPECT_FALSE(RunOnce(*session, request).empty());
}

TEST(Session, InjectedLatentsReplaceTheDraw) {
  const auto session = Open();
  GenerateRequest request = SmallRequest();
  const std::string drawn = RunOnce(*session, request);
  // The noise that the seed would draw, injected: video as drawn, audio rows as latents.
  TorchGenerator generator(request.seed);
  request.latents = Tensor::Create(DType::kF32, {24, 7, 2, 2}).value();
  generator.Randn({request.latents.as<float>(), 24 * 7 * 4});
  std::vector<float> rows(74 * 32);
  generator.Randn(rows);
  request.audio_latents = Tensor::Create(DType::kF32, {2, 32, 37}).value();
  for (int64_t side = 0; side < 2; ++side) {
    for (int64_t i = 0; i < 37; ++i) {
      for (int64_t c = 0; c < 32; ++c) {
        request.audio_latents.as<float>()[(side * 32 + c) * 37 + i] =
            rows[static_cast<size_t>((side * 37 + i) * 32 + c)];
      }
    }
  }
  request.seed = 99;  // must not matter any more
  EXPECT_TRUE(RunOnce(*session, request) == drawn);
}

TEST(Session, DecodesInjectedLatentsWithoutAForward) {
  const auto session = Open();
  const auto made = session->Generate(SmallRequest(), {}, nullptr);
  ASSERT_TRUE(made.ok());
  GenerateRequest request = SmallRequest();
  request.forwards = 0;
  request.prompt_embeds = Tensor();  // no text is needed to decode
  request.latents = Tensor::Copy(made->latents.view()).value();
  request.audio_latents = Tensor::Copy(made->audio_latents.view()).value();
  const auto decoded = session->Generate(request, {}, nullptr);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_TRUE(BytesOf(decoded->frames) == BytesOf(made->frames));
  EXPECT_TRUE(BytesOf(decoded->samples) == BytesOf(made->samples));
}

TEST(Session, KeyframesChangeTheClipAndAreRepeatable) {
  const auto session = Open();
  GenerateRequest request = SmallRequest();
  const std::string plain = RunOnce(*session, request);
  request.prompt_tags = {0, 0, 0, 1, 1, 1};  // a vision block and three words
  request.first_frame = Tensor::Create(DType::kF32, {3, 1, 32, 32}).value();
  for (int64_t i = 0; i < 3 * 32 * 32; ++i) {
    request.first_frame.as<float>()[i] = static_cast<float>(i % 97) / 96.0f;
  }
  const std::string first = RunOnce(*session, request);
  EXPECT_FALSE(first == plain);
  EXPECT_TRUE(RunOnce(*session, request) == first);
  request.last_frame = Tensor::Copy(request.first_frame.view()).value();
  EXPECT_FALSE(RunOnce(*session, request) == first);
}

TEST(Session, Bf16DiffersFromFp32AndIsRepeatable) {
  SessionOptions options;
  options.threads = 2;
  options.precision = Precision::kBf16;
  auto session = Session::Open(kModel, options).value();
  const std::string bf16 = RunOnce(*session, SmallRequest());
  EXPECT_TRUE(RunOnce(*session, SmallRequest()) == bf16);
  EXPECT_FALSE(RunOnce(*Open(), SmallRequest()) == bf16);
}

struct BadRequest {
  const char* name;
  void (*spoil)(GenerateRequest&);
  const char* message;  // a part of it
};

const BadRequest kBadRequests[] = {
    {"frames", [](GenerateRequest& r) { r.frames = 23; }, "22 or 39"},
    {"width", [](GenerateRequest& r) { r.width = 33; }, "32"},
    {"zero height", [](GenerateRequest& r) { r.height = 0; }, "32"},
    {"huge width", [](GenerateRequest& r) { r.width = 1 << 15; }, "16384"},
    {"forwards", [](GenerateRequest& r) { r.forwards = 0; }, "forwards"},
    {"many forwards", [](GenerateRequest& r) { r.forwards = 100000; }, "forwards"},
    {"text width",
     [](GenerateRequest& r) {
       r.prompt_embeds = RandomTensor({6, 63}, 1);
     },
     "64"},
    {"no text rows",
     [](GenerateRequest& r) {
       r.prompt_embeds = Tensor::Create(DType::kF32, {0, 64}).value();
     },
     "1 or more"},
    {"text NaN",
     [](GenerateRequest& r) {
       r.prompt_embeds.as<float>()[5] = std::numeric_limits<float>::quiet_NaN();
     },
     "element 5"},
    {"latents of another clip",
     [](GenerateRequest& r) {
       r.latents = RandomTensor({24, 7, 4, 4}, 1);
     },
     "[24, 7, 2, 2]"},
    {"latents infinite",
     [](GenerateRequest& r) {
       r.latents = RandomTensor({24, 7, 2, 2}, 1);
       r.latents.as<float>()[3] = std::numeric_limits<float>::infinity();
     },
     "element 3"},
    {"audio latents",
     [](GenerateRequest& r) {
       r.audio_latents = RandomTensor({2, 32, 36}, 1);
     },
     "[2, 32, 37]"},
    {"keyframe size",
     [](GenerateRequest& r) {
       r.first_frame = RandomTensor({3, 1, 32, 64}, 1);
     },
     "[3, 1, 32, 32]"},
    {"tags",
     [](GenerateRequest& r) {
       r.prompt_tags = {1, 1};
     },
     "6"},
};

TEST(Session, RefusesBadRequestsByName) {
  const auto session = Open();
  for (const BadRequest& bad : kBadRequests) {
    GenerateRequest request = SmallRequest();
    bad.spoil(request);
    const auto result = session->Generate(request, {}, nullptr);
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << bad.name;
    EXPECT_NE(MessageOf(result.status()).find(bad.message), std::string::npos)
        << bad.name << ": " << result.status();
  }
}

TEST(Session, MissingFolderAndMissingConditionerAreNamed) {
  const auto missing = Session::Open("/no/such/folder", {});
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  // The fixture folder has no conditioner: only embeddings can drive it.
  const auto session = Open();
  GenerateRequest request = SmallRequest();
  request.prompt_embeds = Tensor();
  request.prompt = "a red circle";
  const auto result = session->Generate(request, {}, nullptr);
  EXPECT_FALSE(result.ok());
  EXPECT_NE(MessageOf(result.status()).find("conditioner"), std::string::npos) << result.status();
}

}  // namespace
}  // namespace h3rt
