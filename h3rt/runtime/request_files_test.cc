#include "h3rt/runtime/request_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "h3rt/io/safetensors.h"
#include "h3rt/num/bf16.h"

namespace h3rt {
namespace {

class RequestFiles : public testing::Test {
 protected:
  RequestFiles() {
    std::string name = (std::filesystem::temp_directory_path() / "h3rt-files-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~RequestFiles() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string Path(const char* name) const { return folder_ + "/" + name; }

  std::string folder_;
};

Tensor Ramp(const Shape& shape) {
  Tensor tensor = Tensor::Create(DType::kF32, shape).value();
  for (int64_t i = 0; i < tensor.elements(); ++i) tensor.as<float>()[i] = static_cast<float>(i) / 4;
  return tensor;
}

TEST_F(RequestFiles, ReadsEmbedsOfEveryFloatTypeAndDropsTheBatch) {
  const Tensor ramp = Ramp({1, 3, 4});
  Tensor half = Tensor::Create(DType::kBF16, {3, 4}).value();
  for (int64_t i = 0; i < 12; ++i) half.as<uint16_t>()[i] = FloatToBf16(ramp.as<float>()[i]);
  ASSERT_TRUE(WriteSafetensors(Path("a"), {{"prompt_embeds", ramp.view()}}).ok());
  ASSERT_TRUE(WriteSafetensors(Path("b"), {{"prompt_embeds", half.view()}}).ok());
  for (const char* name : {"a", "b"}) {
    GenerateRequest request;
    ASSERT_TRUE(ReadPromptEmbeds(Path(name), request).ok());
    ASSERT_EQ(request.prompt_embeds.shape(), (Shape{3, 4}));
    for (int64_t i = 0; i < 12; ++i) {
      EXPECT_EQ(request.prompt_embeds.as<float>()[i], static_cast<float>(i) / 4) << name;
    }
  }
}

TEST_F(RequestFiles, ReadsTagsAndRefusesOthers) {
  const Tensor ramp = Ramp({2, 4});
  Tensor tags = Tensor::Create(DType::kI64, {2}).value();
  tags.as<int64_t>()[0] = 0;
  tags.as<int64_t>()[1] = 1;
  ASSERT_TRUE(
      WriteSafetensors(Path("a"), {{"prompt_embeds", ramp.view()}, {"token_tags", tags.view()}})
          .ok());
  GenerateRequest request;
  ASSERT_TRUE(ReadPromptEmbeds(Path("a"), request).ok());
  EXPECT_EQ(request.prompt_tags, (std::vector<int32_t>{0, 1}));
  tags.as<int64_t>()[1] = 2;
  ASSERT_TRUE(
      WriteSafetensors(Path("b"), {{"prompt_embeds", ramp.view()}, {"token_tags", tags.view()}})
          .ok());
  const absl::Status bad = ReadPromptEmbeds(Path("b"), request);
  EXPECT_EQ(bad.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(MessageOf(bad).find("token_tags[1]"), std::string::npos);
}

TEST_F(RequestFiles, RefusesUnknownAndMissingTensorsByName) {
  const Tensor ramp = Ramp({2, 4});
  ASSERT_TRUE(WriteSafetensors(Path("a"), {{"hidden_states", ramp.view()}}).ok());
  GenerateRequest request;
  for (const absl::Status& status :
       {ReadPromptEmbeds(Path("a"), request), ReadLatents(Path("a"), request)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(MessageOf(status).find("hidden_states"), std::string::npos) << status;
  }
  EXPECT_EQ(ReadLatents(Path("none"), request).code(), absl::StatusCode::kNotFound);
}

TEST_F(RequestFiles, LatentsSurviveTheRoundTrip) {
  GenerateResult result;
  result.latents = Ramp({24, 2, 2, 2});
  result.audio_latents = Ramp({2, 32, 8});
  ASSERT_TRUE(WriteLatents(Path("l"), result).ok());
  GenerateRequest request;
  ASSERT_TRUE(ReadLatents(Path("l"), request).ok());
  ASSERT_EQ(request.latents.shape(), result.latents.shape());
  ASSERT_EQ(request.audio_latents.shape(), result.audio_latents.shape());
  EXPECT_EQ(request.latents.as<float>()[100], 25.0f);
}

TEST_F(RequestFiles, APictureThatIsNoneIsNamed) {
  std::ofstream(Path("x.png")) << "no picture";
  GenerateRequest request;
  request.width = 32;
  request.height = 32;
  const absl::Status status = ReadKeyframes("", Path("x.png"), request);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(MessageOf(status).find("x.png"), std::string::npos) << status;
}

}  // namespace
}  // namespace h3rt
