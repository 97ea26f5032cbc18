#include "h3rt/io/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>

#include "h3rt/io/checkpoint.h"
#include "h3rt/io/random_checkpoint.h"
#include "h3rt/io/tensor_list.h"
#include "h3rt/io/test_files.h"

namespace h3rt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kFile = "/diffusion_pytorch_model.safetensors";

int64_t ResidentBytes() {
  std::ifstream in("/proc/self/statm");
  int64_t size = 0;
  int64_t resident = 0;
  in >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

// Resident memory after `work` stays within 100 MB of before, and the time under a second: of this
// process, so that a busy machine does not fail the test. Sanitizers get ten and their own memory.
void ExpectCheap(const std::function<void()>& work) {
  const int64_t before = ResidentBytes();
  const std::clock_t start = std::clock();
  work();
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
#if defined(__SANITIZE_ADDRESS__)
  EXPECT_LT(seconds, 10.0);
  EXPECT_GT(before, 0);
#else
  EXPECT_LT(seconds, 1.0);
  EXPECT_LT(ResidentBytes() - before, 100'000'000);
#endif
}

std::vector<SafetensorsSpec> ReleasedTransformer(CheckpointLayout layout) {
  std::vector<SafetensorsSpec> specs;
  for (const SourceTensor& t : TransformerTensors(ReleasedConfigs().transformer, layout)) {
    const bool f32 = t.island || t.role == Role::kFrequencies;
    specs.push_back({t.key, f32 ? DType::kF32 : DType::kBF16, t.shape});
  }
  return specs;
}

TEST(Inspect, SixtySixGigabyteFileTakesUnderASecondAndLittleMemory) {
  const TempFolder folder;
  const std::string path = folder / "model.safetensors";
  WriteSparse(path, ReleasedTransformer(CheckpointLayout::kOriginalContiguous));
  ExpectCheap([&path] {
    const absl::StatusOr<InspectReport> report = Inspect(path);
    ASSERT_TRUE(report.ok()) << report.status();
    ASSERT_EQ(report->components.size(), 1u);
    const ComponentReport& c = report->components[0];
    EXPECT_TRUE(report->ok()) << report->ToJson().dump(2);
    EXPECT_EQ(c.network, "transformer");
    EXPECT_EQ(c.layout, "original, contiguous qkv");
    EXPECT_EQ(c.variant, "full");
    EXPECT_EQ(c.parameters, 33'122'992'896);
    EXPECT_EQ(c.bytes, 66'280'430'080u + 64u);  // and rope.inv_freq
    EXPECT_EQ(c.dtypes.at("F32").tensors, 13);
    EXPECT_EQ(c.config["num_layers"], 50);
    EXPECT_EQ(c.config, ReleasedConfigs().transformer.ToJson());
  });
}

TEST(Inspect, OpeningSixtySixGigabytesTakesNoMemoryEither) {
  const TempFolder folder;
  WriteSparse(folder / "model.safetensors", ReleasedTransformer(CheckpointLayout::kDiffusers));
  WriteText(folder / "config.json", ReleasedConfigs().transformer.ToJson().dump());
  ExpectCheap([&folder] {
    const absl::StatusOr<TransformerCheckpoint> opened = OpenTransformer(folder.path());
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ(opened->weights.mapped_bytes(), 66'280'430'080u);
    EXPECT_EQ(opened->weights.owned_bytes(), 0u);
  });
}

TEST(Inspect, ReleasedVaesInOriginalNamesNeedNoConfig) {
  const TempFolder folder;
  const ModelConfigs released = ReleasedConfigs();
  std::vector<SafetensorsSpec> video;
  for (const SourceTensor& t :
       VideoVaeTensors(released.video_vae, CheckpointLayout::kOriginalInterleaved)) {
    video.push_back({t.key, DType::kF16, t.shape});
  }
  WriteSparse(folder / "video.safetensors", video);
  std::vector<SafetensorsSpec> audio;
  const HasKey folded = [](std::string_view) { return true; };
  for (const SourceTensor& t : AudioVaeTensors(released.audio_vae, folded)) {
    if (t.split != Split::kDrop) audio.push_back({t.key, DType::kF32, t.shape});
  }
  WriteSparse(folder / "audio.safetensors", audio);
  const absl::StatusOr<InspectReport> video_report = Inspect(folder / "video.safetensors");
  ASSERT_TRUE(video_report.ok()) << video_report.status();
  EXPECT_TRUE(video_report->ok()) << video_report->ToJson().dump(2);
  EXPECT_EQ(video_report->components[0].config, released.video_vae.ToJson());
  EXPECT_EQ(video_report->components[0].parameters, 2'603'868'984);
  const absl::StatusOr<InspectReport> audio_report = Inspect(folder / "audio.safetensors");
  ASSERT_TRUE(audio_report.ok()) << audio_report.status();
  EXPECT_TRUE(audio_report->ok()) << audio_report->ToJson().dump(2);
  EXPECT_EQ(audio_report->components[0].config, released.audio_vae.ToJson());
  EXPECT_EQ(audio_report->components[0].variant, "folded");
}

TEST(Inspect, ModelFolderListsItsParts) {
  const absl::StatusOr<InspectReport> report = Inspect(FixturePath("mini"));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->form, "diffusers model");
  EXPECT_TRUE(report->ok()) << report->ToJson().dump(2);
  ASSERT_EQ(report->components.size(), 3u);
  EXPECT_EQ(report->components[0].network, "transformer");
  EXPECT_EQ(report->components[1].network, "video VAE");
  EXPECT_EQ(report->components[2].network, "audio VAE");
  EXPECT_EQ(report->video_shift, 12.0);
  EXPECT_EQ(report->audio_shift, 3.0);
  EXPECT_EQ(report->model_id.size(), 64u);
  const Json json = report->ToJson();
  EXPECT_EQ(json["components"].size(), 3u);
  EXPECT_EQ(json["components"][0]["dtypes"]["F32"]["tensors"], 12);
}

TEST(Inspect, MissingPartsAreListed) {
  const TempFolder folder;
  MakeFolder(folder / "transformer");
  CopyFile(FixturePath("nano/transformer") + kFile, folder / "transformer" + kFile);
  CopyFile(FixturePath("nano/transformer/config.json"), folder / "transformer/config.json");
  const absl::StatusOr<InspectReport> report = Inspect(folder.path());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(report->ok());
  EXPECT_THAT(report->missing_parts,
              ElementsAre("vae", "audio_vae", "scheduler/scheduler_config.json",
                          "audio_scheduler/scheduler_config.json"));
}

TEST(Inspect, MissingUnknownAndWrongKeysAreListedAndNoError) {
  const TempFolder folder;
  TensorMap tensors = ReadTensors(FixturePath("nano/single_file.safetensors"));
  tensors.erase("blocks.1.norm2.weight");
  tensors["blocks.1.extra"] = FloatTensor({1}, {0});
  tensors["blocks.0.norm1.weight"] = FloatTensor({1}, {0});
  WriteTensors(folder / "model.safetensors", tensors);
  const absl::StatusOr<InspectReport> report = Inspect(folder / "model.safetensors");
  ASSERT_TRUE(report.ok()) << report.status();
  const ComponentReport& c = report->components[0];
  EXPECT_THAT(c.missing, ElementsAre("blocks.1.norm2.weight"));
  EXPECT_THAT(c.unknown, ElementsAre("blocks.1.extra"));
  ASSERT_EQ(c.wrong.size(), 1u);
  EXPECT_THAT(c.wrong[0], HasSubstr("blocks.0.norm1.weight"));
  EXPECT_FALSE(report->ok());
}

TEST(Inspect, ForeignFileIsUnknownAndCorruptFileIsAnError) {
  const TempFolder folder;
  TensorMap tensors;
  tensors["lora.up"] = FloatTensor({1}, {0});
  WriteTensors(folder / "foreign.safetensors", tensors);
  const absl::StatusOr<InspectReport> report = Inspect(folder / "foreign.safetensors");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->components[0].network, "unknown network");
  EXPECT_THAT(report->components[0].unknown, ElementsAre("lora.up"));
  WriteText(folder / "bad.safetensors", "1234567");
  EXPECT_EQ(Inspect(folder / "bad.safetensors").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Inspect(folder / "none").status().code(), absl::StatusCode::kNotFound);
  MakeFolder(folder / "empty");
  EXPECT_EQ(Inspect(folder / "empty").status().code(), absl::StatusCode::kNotFound);
  MakeFolder(folder / "config");
  CopyFile(FixturePath("nano/transformer") + kFile, folder / "config/model.safetensors");
  WriteText(folder / "config/config.json", "{");
  EXPECT_EQ(Inspect(folder / "config").status().code(), absl::StatusCode::kDataLoss);
}

TEST(Inspect, OverriddenLayoutIsCheckedAgainstTheKeys) {
  const TempFolder folder;
  const std::string single = FixturePath("nano/single_file.safetensors");
  const auto layout_of = [](const std::string& path, std::optional<CheckpointLayout> layout) {
    const absl::StatusOr<InspectReport> report = Inspect(path, {}, layout);
    EXPECT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->ok()) << report->ToJson().dump(2);
    return report->components[0].layout;
  };
  EXPECT_EQ(layout_of(single, {}), NameOf(CheckpointLayout::kOriginalContiguous));
  EXPECT_EQ(layout_of(single, CheckpointLayout::kOriginalInterleaved),
            NameOf(CheckpointLayout::kOriginalInterleaved));
  // Names of the other layout: found from the headers alone.
  const absl::StatusOr<InspectReport> wrong = Inspect(single, {}, CheckpointLayout::kDiffusers);
  ASSERT_TRUE(wrong.ok()) << wrong.status();
  EXPECT_FALSE(wrong->ok());
  // The VAEs of a model folder keep their own.
  const absl::StatusOr<InspectReport> model =
      Inspect(FixturePath("mini"), {}, CheckpointLayout::kOriginalContiguous);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_FALSE(model->components[0].ok());
  EXPECT_EQ(model->components[1].layout, NameOf(CheckpointLayout::kDiffusers));
  EXPECT_TRUE(model->components[1].ok());
  EXPECT_TRUE(model->components[2].ok());
}

TEST(ModelFolder, FindsTheOriginalLayout) {
  const TempFolder folder;
  for (const std::string part : {"transformer", "video_vae/source", "audio_vae"}) {
    MakeFolder(folder / ("FL2VA/" + part));
    MakeFolder(folder / ("Ref2VA/" + part));
  }
  WriteText(folder / "FL2VA/model_index.json",
            R"({"_minimax_h3":{"sigma_shift_scales":{"video":6,"audio":2}}})");
  const absl::StatusOr<ModelFolder> model = ModelFolder::Open(folder.path());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->form, ModelForm::kOriginal);
  EXPECT_EQ(model->transformer, folder / "FL2VA/transformer");
  EXPECT_EQ(model->video_vae, folder / "FL2VA/video_vae/source");
  EXPECT_EQ(model->scheduler.shift, 6.0);
  EXPECT_EQ(model->audio_scheduler.shift, 2.0);
  const auto reference = ModelFolder::Open(folder.path(), {.transformer = "transformer_ref"});
  ASSERT_TRUE(reference.ok()) << reference.status();
  EXPECT_EQ(reference->transformer, folder / "Ref2VA/transformer");
  EXPECT_EQ(reference->scheduler.shift, 12.0);
  const auto partition = ModelFolder::Open(folder / "Ref2VA");
  ASSERT_TRUE(partition.ok()) << partition.status();
  EXPECT_EQ(partition->audio_vae, folder / "Ref2VA/audio_vae");
}

TEST(ModelFolder, NamesWhatIsMissing) {
  const TempFolder folder;
  EXPECT_EQ(ModelFolder::Open(folder / "none").status().code(), absl::StatusCode::kNotFound);
  MakeFolder(folder / "transformer");
  MakeFolder(folder / "vae");
  const absl::Status status = ModelFolder::Open(folder.path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(MessageOf(status), HasSubstr("no audio_vae, scheduler/scheduler_config.json"));
  EXPECT_THAT(
      MessageOf(ModelFolder::Open(folder.path(), {.transformer = "transformer_ref"}).status()),
      HasSubstr("transformer_ref"));
  EXPECT_EQ(ModelFolder::Open(folder.path(), {.transformer = "x"}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// Parts of a model in three places; the root is relative when the test says so.
class ModelHashParts : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const std::string part : {"transformer", "vae", "audio_vae"}) {
      MakeFolder(folder_ / ("model/" + part));
      WriteText(folder_ / ("model/" + part + "/w.safetensors"), part);
      WriteText(folder_ / ("model/" + part + "/config.json"), "{}");
      MakeFolder(folder_ / ("other/" + part));
      WriteText(folder_ / ("other/" + part + "/w.safetensors"), "another " + part);
    }
    model_ = ModelFolder::Open(folder_ / "model", {.allow_missing = true}).value();
  }
  std::string Hash() const { return ModelHash(model_).value(); }
  TempFolder folder_;
  ModelFolder model_;
};

TEST_F(ModelHashParts, EveryOverriddenPartCounts) {
  // With a root that is relative no path of another folder is relative to it.
  const std::string roots[] = {model_.root, "relative"};
  for (const std::string& root : roots) {
    model_.root = root;
    std::string* const paths[] = {&model_.transformer, &model_.video_vae, &model_.audio_vae};
    const char* const names[] = {"transformer", "vae", "audio_vae"};
    const ModelFolder before = model_;
    for (size_t i = 0; i < 3; ++i) *paths[i] = folder_ / ("other/" + std::string(names[i]));
    for (size_t i = 0; i < 3; ++i) {
      const std::string path = folder_ / ("other/" + std::string(names[i]) + "/w.safetensors");
      *paths[i] = path;
      const std::string old = Hash();
      const std::string content = ReadText(path);
      WriteText(path, "x" + content.substr(1));  // of the same size
      EXPECT_NE(Hash(), old) << names[i] << " below " << root;
      WriteText(path, content);
      EXPECT_EQ(Hash(), old);
      // Opening a single file reads the config.json beside it.
      WriteText(folder_ / ("other/" + std::string(names[i]) + "/config.json"), "{}");
      EXPECT_NE(Hash(), old) << names[i];
      std::filesystem::remove(folder_ / ("other/" + std::string(names[i]) + "/config.json"));
    }
    model_ = before;
  }
}

TEST_F(ModelHashParts, ThePlaceOfAPartDoesNotCountAndItsRoleDoes) {
  const std::string here = Hash();
  std::filesystem::rename(folder_ / "model/vae", folder_ / "elsewhere");
  model_.video_vae = folder_ / "elsewhere";
  EXPECT_EQ(Hash(), here);
  std::swap(model_.video_vae, model_.audio_vae);
  EXPECT_NE(Hash(), here);
}

TEST(ModelHash, OfTheOriginalFormSeesItsShifts) {
  const TempFolder folder;
  for (const std::string part : {"transformer", "video_vae", "audio_vae"}) {
    MakeFolder(folder / part);
    WriteText(folder / (part + "/w.safetensors"), part);
  }
  const std::string index = folder / "model_index.json";
  std::string hashes[2];
  for (const int shift : {5, 6}) {
    WriteText(index, R"({"_minimax_h3":{"sigma_shift_scales":{"video":)" + std::to_string(shift) +
                         R"(,"audio":2}}})");
    const auto model = ModelFolder::Open(folder.path());
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->index, folder / "model_index.json");
    hashes[shift - 5] = ModelHash(*model).value();
  }
  EXPECT_NE(hashes[0], hashes[1]);
}

TEST(ModelHash, OfALargeFileSeesItsBlocks) {
  const TempFolder folder;
  const std::string path = folder / "model.safetensors";
  WriteSparse(path, {{"a", DType::kF32, Shape{100, 1 << 20}}});
  const std::string before = WeightsHash(path).value();
  EXPECT_EQ(before, WeightsHash(path).value());
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(100);  // in the first block of the data
  file.put('x');
  file.close();
  EXPECT_NE(before, WeightsHash(path).value());
}

}  // namespace
}  // namespace h3rt
