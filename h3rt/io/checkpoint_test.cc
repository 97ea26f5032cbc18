#include "h3rt/io/checkpoint.h"

#include <gtest/gtest.h>

namespace h3rt {
namespace {

const std::string kData = std::string(H3RT_TEST_DATA) + "/h3/";

TEST(Checkpoint, OpensTheDiffusersFolders) {
  for (const char* model : {"nano", "mini"}) {
    const std::string folder = kData + model;
    absl::StatusOr<TransformerCheckpoint> dit = OpenTransformer(folder + "/transformer");
    ASSERT_TRUE(dit.ok()) << dit.status();
    EXPECT_EQ(dit->weights.owned_bytes(), 0u);
    absl::StatusOr<VideoVaeCheckpoint> vae = OpenVideoVae(folder + "/vae");
    ASSERT_TRUE(vae.ok()) << vae.status();
    EXPECT_EQ(vae->weights.owned_bytes(), 0u);
    absl::StatusOr<AudioVaeCheckpoint> audio = OpenAudioVae(folder + "/audio_vae");
    ASSERT_TRUE(audio.ok()) << audio.status();
  }
}

}  // namespace
}  // namespace h3rt
