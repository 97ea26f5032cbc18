// `generate`: legal sizes, files, errors, cancellation. The model is the embedded default.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "h3rt/base/json.h"
#include "h3rt/io/safetensors.h"
#include "h3rt/media/clip_reader.h"
#include "h3rt/num/torch_rng.h"
#include "h3rt/tensor/tensor.h"
#include "tests/cli/program.h"

namespace h3rt::cli_test {
namespace {

const std::string kModel = H3RT_SOURCE_DIR "/models/h3-tiny";

// generate with the smallest clip that has every part, written into `folder`.
std::vector<std::string> SmallClip(const TemporaryFolder& folder,
                                   const std::vector<std::string>& more = {},
                                   const std::string& frames = "5") {
  std::vector<std::string> args = {"generate",         "--model", kModel,       "--size", "32x32",
                                   "--frames",         frames,    "--forwards", "1",      "--out",
                                   folder / "clip.mp4"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

std::vector<std::string> WithPrompt(std::vector<std::string> args) {
  args.insert(args.end(), {"--prompt", "a red circle moves left on a dark background"});
  return args;
}

struct SizeCase {
  std::vector<std::string> flags;
  std::vector<std::string> named;  // all of these are in the message
};

TEST(Generate, RefusesIllegalLengthsAndNamesTheNearest) {
  const TemporaryFolder folder;
  const SizeCase cases[] = {
      {{"--frames", "1"}, {"5"}},
      {{"--frames", "4"}, {"5"}},
      {{"--frames", "6"}, {"5", "22"}},
      {{"--frames", "121"}, {"107", "124"}},
      {{"--frames", "122"}, {"107", "124"}},
      {{"--frames", "123"}, {"107", "124"}},
      {{"--frames", "125"}, {"124", "141"}},
      {{"--frames", "346"}, {"345", "362"}},
      {{"--frames", "363"}, {"362", "379"}},
      {{"--frames", "3600"}, {"3592", "3609"}},
      {{"--frames", "-5"}, {"5"}},
      {{"--frames", "0"}, {"5"}},
  };
  for (const SizeCase& c : cases) {
    std::vector<std::string> args = {"generate", "--model",          kModel, "--prompt", "x",
                                     "--out",    folder / "clip.mp4"};
    args.insert(args.end(), c.flags.begin(), c.flags.end());
    const ProgramRun run = RunProgram(args);
    EXPECT_EQ(run.exit_code, 2) << c.flags[1];
    for (const std::string& name : c.named) {
      EXPECT_NE(run.err.find(name), std::string::npos) << c.flags[1] << ": " << run.err;
    }
  }
  EXPECT_TRUE(folder.Files().empty());
}

TEST(Generate, RefusesIllegalSizesBeforeAnyLoad) {
  const SizeCase cases[] = {
      {{"--size", "1056x592"}, {"576", "608"}},
      {{"--size", "1345x767"}, {"1344", "768"}},
      {{"--size", "31x32"}, {"32"}},
      {{"--size", "0x32"}, {"32"}},
      {{"--size", "32x0"}, {"32"}},
      {{"--size", "32"}, {"WIDTHxHEIGHT"}},
      {{"--size", "axb"}, {"WIDTHxHEIGHT"}},
      {{"--size", "32x32x3"}, {"WIDTHxHEIGHT"}},
      {{"--size", "-32x32"}, {"32"}},
  };
  for (const SizeCase& c : cases) {
    // A model that does not exist: the size is refused before it is looked for.
    std::vector<std::string> args = {"generate", "--model", "/no/such/model", "--prompt", "x"};
    args.insert(args.end(), c.flags.begin(), c.flags.end());
    const ProgramRun run = RunProgram(args);
    EXPECT_EQ(run.exit_code, 2) << c.flags[1] << run.err;
    for (const std::string& name : c.named) {
      EXPECT_NE(run.err.find(name), std::string::npos) << c.flags[1] << ": " << run.err;
    }
  }
  for (const char* legal : {"864x480", "1376x768"}) {
    const ProgramRun run =
        RunProgram({"generate", "--model", "/no/such/model", "--prompt", "x", "--size", legal});
    EXPECT_EQ(run.exit_code, 3) << legal << ": " << run.err;
  }
}

TEST(Generate, SecondsSnapUpAndSaySo) {
  const TemporaryFolder folder;
  const std::pair<const char*, int> cases[] = {
      {"5.0", 124}, {"15.0", 362}, {"15.04", 362}, {"0.2", 5}};
  for (const auto& [seconds, frames] : cases) {
    std::vector<std::string> args = {"generate", "--model",   kModel,  "--prompt",
                                     "x",        "--seconds", seconds, "--plan"};
    const ProgramRun run = RunProgram(args);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_NE(run.err.find(std::to_string(frames) + " frames"), std::string::npos) << run.err;
  }
  for (const char* bad : {"-1", "0", "nan", "inf", "1e30", "abc"}) {
    EXPECT_EQ(
        RunProgram({"generate", "--model", kModel, "--prompt", "x", "--seconds", bad}).exit_code, 2)
        << bad;
  }
}

TEST(Generate, WritesEveryKindOfFile) {
  const TemporaryFolder folder;
  const ProgramRun run = RunProgram(WithPrompt(SmallClip(
      folder,
      {"--sheet", folder / "sheet.png", "--png", folder / "frames", "--wav", folder / "sound.wav",
       "--save-latents", folder / "latents.safetensors", "--seed", "11", "--json"},
      "22")));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json json = ParseJson(run.out, "generate").value();
  EXPECT_EQ(json["files"].size(), 4u + 22u);
  EXPECT_EQ(json["frames"].get<int>(), 22);
  EXPECT_EQ(json["seed"].get<int>(), 11);
  EXPECT_EQ(folder.Files(), (std::vector<std::string>{"clip.mp4", "frames", "latents.safetensors",
                                                      "sheet.png", "sound.wav"}));
  const auto metadata = ReadClipMetadata(folder / "clip.mp4");
  ASSERT_TRUE(metadata.ok()) << metadata.status();
  EXPECT_EQ(metadata->prompt, "a red circle moves left on a dark background");
  EXPECT_EQ(metadata->seed, 11u);
  EXPECT_EQ(metadata->frames, 22);
  EXPECT_EQ(metadata->forwards, 1);
  EXPECT_EQ(metadata->model_hash, json["model_hash"].get<std::string>());
  EXPECT_EQ(metadata->h3rt_version, "0.1.0");
}

// Also where oneDNN is held to the oldest instructions that the release builds of it know well.
TEST(Generate, SameSeedSameFilesForAnyNumberOfThreads) {
  for (const char* isa : {"", "AVX2"}) {
    std::string first;
    for (const char* threads : {"1", "2", "3", "8"}) {
      const TemporaryFolder folder;
      Environment env;
      if (*isa != '\0') env["DNNL_MAX_CPU_ISA"] = isa;
      const ProgramRun run =
          RunProgram(WithPrompt(SmallClip(folder, {"--threads", threads})), {.env = env});
      ASSERT_EQ(run.exit_code, 0) << run.err;
      const std::string bytes = ReadAll(folder / "clip.mp4");
      ASSERT_FALSE(bytes.empty());
      if (first.empty()) first = bytes;
      EXPECT_TRUE(bytes == first) << threads << " threads, " << isa;
    }
  }
}

TEST(Generate, LatentsGoOutAndInAgain) {
  const TemporaryFolder folder;
  ASSERT_EQ(RunProgram(WithPrompt(SmallClip(folder, {"--save-latents", folder / "l.safetensors",
                                                     "--wav", folder / "a.wav"})))
                .exit_code,
            0);
  const ProgramRun again =
      RunProgram(WithPrompt({"generate", "--model", kModel, "--size", "32x32", "--frames", "5",
                             "--forwards", "0", "--latents-in", folder / "l.safetensors", "--out",
                             folder / "b.mp4", "--wav", folder / "b.wav"}));
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_TRUE(ReadAll(folder / "a.wav") == ReadAll(folder / "b.wav"));
}

// Every --*-in file that is not what it should be, and what is said of it.
TEST(Generate, RefusesBadInputFiles) {
  const TemporaryFolder folder;
  WriteAll(folder / "text.png", "this is not a picture");
  WriteAll(folder / "broken.safetensors", std::string("\x08\0\0\0\0\0\0\0{}", 10));
  const auto embeds = [&](const char* name, const Shape& shape, float value) {
    Tensor tensor = Tensor::Create(DType::kF32, shape).value();
    for (int64_t i = 0; i < tensor.elements(); ++i) tensor.as<float>()[i] = 0.1f;
    tensor.as<float>()[0] = value;
    ASSERT_TRUE(WriteSafetensors(folder / name, {{"prompt_embeds", tensor.view()}}).ok());
  };
  embeds("wrong_width.safetensors", {4, 63}, 0.1f);
  embeds("nan.safetensors", {4, 64}, std::numeric_limits<float>::quiet_NaN());
  struct Case {
    std::vector<std::string> flags;
    int exit_code;
    const char* named;
  };
  const Case cases[] = {
      {{"--prompt", "x", "--first", folder / "text.png"}, 2, "text.png"},
      {{"--prompt", "x", "--last", folder / "none.png"}, 3, "none.png"},
      {{"--prompt-embeds", folder / "broken.safetensors"}, 7, "broken.safetensors"},
      {{"--prompt-embeds", folder / "wrong_width.safetensors"}, 2, "63"},
      {{"--prompt-embeds", folder / "nan.safetensors"}, 2, "nan"},
      {{"--prompt-embeds", folder / "none.safetensors"}, 3, "none.safetensors"},
      {{"--prompt", "x", "--latents-in", folder / "nan.safetensors"}, 2, "prompt_embeds"},
      {{"--prompt", "x", "--prompt-embeds", folder / "nan.safetensors"}, 2, "prompt"},
      {{"--prompt", ""}, 2, "prompt"},
      {{"--prompt", "   "}, 2, "prompt"},
      {{}, 2, "prompt"},
      {{"--prompt", "\xff\xfe"}, 2, "UTF-8"},
      {{"--prompt", "x", "--impl", "attention=nonsense"}, 2, "nonsense"},
      {{"--prompt", "x", "--impl", "nonsense=ref"}, 2, "nonsense"},
      {{"--prompt", "x", "--impl", "attention"}, 2, "OP=NAME"},
      {{"--prompt", "x", "--device", "tpu"}, 2, "tpu"},
      {{"--prompt", "x", "--device", "cuda"}, 4, "cuda"},
      {{"--prompt", "x", "--seed", "-1"}, 2, "seed"},
      {{"--prompt", "x", "--forwards", "-1"}, 2, "forwards"},
      {{"--prompt", "x", "--seed", "18446744073709551616"}, 2, "seed"},
      {{"--prompt", "x", "--seed", "1e3"}, 2, "seed"},
      {{"--prompt", "x", "--threads", "0"}, 2, "threads"},
      {{"--prompt", "x", "--device", "cuda:1"}, 4, "cuda:1"},
      {{"--prompt", "x", "--layout", "sideways"}, 2, "layout"},
      {{"--prompt", "x", "--layout", "contiguous"}, 7, ""},
      {{"--prompt", "x", "--vae", kModel + "/audio_vae"}, 2, "audio_vae"},
      {{"--prompt", "x", "--audio-vae", kModel + "/vae"}, 2, "vae"},
      {{"--prompt", "x", "--transformer", kModel + "/vae"}, 2, "vae"},
      {{"--prompt", "x", "--transformer", "/no/such/file"}, 3, "/no/such/file"},
  };
  for (const Case& c : cases) {
    const TemporaryFolder out;
    const ProgramRun run =
        RunProgram(SmallClip(out, c.flags), {.env = {{"H3RT_FAKE_DEVICES", "none"}}});
    const std::string what = c.flags.empty() ? "no flags" : c.flags.back();
    EXPECT_EQ(run.exit_code, c.exit_code) << what << ": " << run.err;
    EXPECT_NE(run.err.find(c.named), std::string::npos) << what << ": " << run.err;
    EXPECT_TRUE(out.Files().empty()) << what;
  }
}

TEST(Generate, TenThousandWordsWork) {
  const TemporaryFolder folder;
  std::string prompt;
  for (int i = 0; i < 10000; ++i) prompt += "word" + std::to_string(i) + " ";
  const ProgramRun run = RunProgram(SmallClip(folder, {"--prompt", prompt}));
  EXPECT_EQ(run.exit_code, 0) << run.err.substr(0, 2000);
  EXPECT_EQ(folder.Files(), std::vector<std::string>{"clip.mp4"});
}

TEST(Generate, RefusesPathsThatCannotBeWrittenBeforeTheWork) {
  const TemporaryFolder folder;
  for (const std::string& out : {folder / "no/such/folder/clip.mp4", folder.path(),
                                 std::string("/proc/clip.mp4"), folder / "clip.xyz"}) {
    std::vector<std::string> args = {"generate", "--model", kModel,     "--prompt", "x",
                                     "--size",   "32x32",   "--frames", "5",        "--forwards",
                                     "1",        "--out",   out};
    const ProgramRun run = RunProgram(args);
    EXPECT_TRUE(run.exit_code == 3 || run.exit_code == 2) << out << ": " << run.err;
    EXPECT_EQ(run.err.find("adaln 1/1"), std::string::npos)
        << "refused only after the work: " << out;
  }
  EXPECT_TRUE(folder.Files().empty());
}

TEST(Generate, RefusesNamesThatWouldSayAnotherFormat) {
  const TemporaryFolder folder;
  const std::pair<std::string, std::string> cases[] = {
      {"--sheet", "sheet.jpg"}, {"--sheet", ".png"}, {"--wav", "sound.mp3"}, {"--wav", "sound"}};
  for (const auto& [flag, name] : cases) {
    const ProgramRun run =
        RunProgram({"generate", "--model", kModel, "--prompt", "x", "--size", "32x32", "--frames",
                    "5", "--forwards", "1", "--out", folder / "clip.mp4", flag, name});
    EXPECT_EQ(run.exit_code, 2) << flag << " " << name;
    EXPECT_NE(run.err.find(name), std::string::npos) << run.err;
  }
  EXPECT_TRUE(folder.Files().empty());
}

TEST(Generate, OutputsMayNotReplaceEachOtherTheInputsOrTheModel) {
  const TemporaryFolder folder;
  std::filesystem::copy(kModel, folder / "model", std::filesystem::copy_options::recursive);
  const std::string weights = folder / "model/transformer/diffusion_pytorch_model.safetensors";
  const std::string before = ReadAll(weights);
  struct Case {
    std::vector<std::string> flags;
    const char* named;
  };
  const Case cases[] = {
      {{"--out", folder / "a.mp4", "--save-latents", folder / "a.mp4"}, "a.mp4"},
      {{"--out", folder / "a.mp4", "--save-latents", folder / "./a.mp4"}, "a.mp4"},
      {{"--out", folder / "a.y4m", "--wav", folder / "a.wav"}, "a.wav"},
      {{"--out", folder / "a.mp4", "--save-latents", weights}, "diffusion_pytorch_model"},
      {{"--out", folder / "model/clip.mp4"}, "model"},
  };
  for (const Case& c : cases) {
    std::vector<std::string> args = {
        "generate", "--model", folder / "model", "--prompt", "x", "--size", "32x32",
        "--frames", "5",       "--forwards",     "1"};
    args.insert(args.end(), c.flags.begin(), c.flags.end());
    const ProgramRun run = RunProgram(args);
    EXPECT_EQ(run.exit_code, 2) << c.flags.back() << ": " << run.err;
    EXPECT_NE(run.err.find(c.named), std::string::npos) << run.err;
  }
  EXPECT_EQ(folder.Files(), std::vector<std::string>{"model"});
  EXPECT_TRUE(ReadAll(weights) == before);
}

TEST(Generate, FramesIntoAFolderThatIsNotEmptyAreRefused) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "frames");
  WriteAll(folder / "frames/frame_00099.png", "of an earlier clip");
  const ProgramRun run = RunProgram(WithPrompt(SmallClip(folder, {"--png", folder / "frames"})));
  EXPECT_EQ(run.exit_code, 2) << run.err;
  EXPECT_EQ(ReadAll(folder / "frames/frame_00099.png"), "of an earlier clip");
}

TEST(Generate, KeyframesPrecisionAndImplementationsAreTaken) {
  const TemporaryFolder folder;
  ASSERT_EQ(RunProgram(WithPrompt(SmallClip(folder, {"--sheet", folder / "key.png"}))).exit_code,
            0);
  const std::string plain = ReadAll(folder / "clip.mp4");
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--first", folder / "key.png"},
        {"--last", folder / "key.png"},
        {"--first", folder / "key.png", "--last", folder / "key.png"},
        {"--precision", "bf16"},
        {"--transformer", kModel + "/transformer", "--vae", kModel + "/vae"}}) {
    const ProgramRun run = RunProgram(WithPrompt(SmallClip(folder, flags)));
    EXPECT_EQ(run.exit_code, 0) << flags[0] << run.err;
    EXPECT_EQ(ReadAll(folder / "clip.mp4") == plain, flags[0] == "--transformer") << flags[0];
  }
  const ProgramRun reference =
      RunProgram(WithPrompt(SmallClip(folder, {"--impl", "attention=ref", "--impl", "norm=ref"})));
  EXPECT_EQ(reference.exit_code, 0) << reference.err;
}

TEST(Generate, AFullDiskLeavesNothingBehind) {
  const TemporaryFolder folder;
  const ProgramRun run =
      RunProgram(WithPrompt(SmallClip(folder, {}, "22")), {.file_limit_bytes = 4096});
  EXPECT_EQ(run.exit_code, 6) << run.err;
  EXPECT_TRUE(folder.Files().empty());
}

TEST(Generate, AnInterruptLeavesNothingBehind) {
  const TemporaryFolder folder;
  const auto begin = std::chrono::steady_clock::now();
  const ProgramRun run =
      RunProgram(WithPrompt({"generate", "--model", kModel, "--size", "256x256", "--frames", "56",
                             "--forwards", "500", "--out", folder / "clip.mp4"}),
                 {.interrupt_at = "denoise 0/500"});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(run.exit_code, 8) << run.err;
  EXPECT_NE(run.err.find("cancelled"), std::string::npos) << run.err;
  EXPECT_TRUE(folder.Files().empty());
  EXPECT_LT(took.count(), 30) << "500 forwards take minutes";
}

TEST(Generate, RefusesWhatDoesNotFitIntoMemory) {
  const TemporaryFolder folder;
  const ProgramRun small =
      RunProgram(WithPrompt(SmallClip(folder)), {.env = {{"H3RT_FAKE_MEMORY", "1000000"}}});
  EXPECT_EQ(small.exit_code, 6) << small.err;
  const ProgramRun huge =
      RunProgram(WithPrompt({"generate", "--model", kModel, "--size", "4096x8192", "--frames",
                             "345", "--out", folder / "clip.mp4"}));
  EXPECT_EQ(huge.exit_code, 6) << huge.err;
  EXPECT_NE(huge.err.find("needed"), std::string::npos) << huge.err;
  EXPECT_TRUE(folder.Files().empty());
}

// The plan believes in more memory than the process may have: allocation itself fails, in the
// middle.
TEST(Generate, MemoryThatRunsOutIsAnErrorAndLeavesNothing) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer reserves more address space than the limit";
#endif
  const TemporaryFolder folder;
  const ProgramRun run = RunProgram(
      WithPrompt({"generate", "--model", kModel, "--size", "1024x1024", "--frames", "124",
                  "--forwards", "1", "--threads", "2", "--out", folder / "clip.mp4"}),
      {.memory_limit_bytes = 1ull << 30});
  EXPECT_EQ(run.exit_code, 6) << run.err;
  EXPECT_TRUE(folder.Files().empty());
}

TEST(Generate, WithoutFfmpegItWritesY4mAndWavAndSaysSo) {
  const TemporaryFolder folder;
  const ProgramRun run =
      RunProgram(WithPrompt(SmallClip(folder, {"--sheet", folder / "sheet.png"})),
                 {.env = {{"H3RT_MEDIA_LIBRARY", "none"}}});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(folder.Files(), (std::vector<std::string>{"clip.wav", "clip.y4m"}));
  EXPECT_NE(run.err.find("FFmpeg"), std::string::npos) << run.err;
}

TEST(Inspect, SaysWhatTheEmbeddedModelHoldsAndWhatASizeNeeds) {
  const ProgramRun run =
      RunProgram({"inspect", kModel, "--size", "128x128", "--frames", "56", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json json = ParseJson(run.out, "inspect").value();
  EXPECT_EQ(json["components"].size(), 3u);
  EXPECT_GT(json["plan"]["peak_bytes"].get<int64_t>(), 1 << 20);
  const ProgramRun text = RunProgram({"inspect", kModel});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_NE(text.out.find("complete"), std::string::npos);
  const ProgramRun file = RunProgram({"inspect", kModel + "/transformer", "--size", "128x128"});
  EXPECT_EQ(file.exit_code, 2) << "a size needs a whole model";
}

// Right size, wrong bytes: one bit anywhere in a network is refused by name, before any work.
TEST(Model, AFlippedBitInAnyNetworkIsRefusedByName) {
  for (const std::string network : {"transformer", "vae", "audio_vae"}) {
    const TemporaryFolder folder;
    std::filesystem::copy(kModel, folder / "model", std::filesystem::copy_options::recursive);
    const std::string file = network + "/diffusion_pytorch_model.safetensors";
    std::string bytes = ReadAll(folder / "model/" + file);
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    WriteAll(folder / "model/" + file, bytes);
    const ProgramRun run =
        RunProgram({"generate", "--model", folder / "model", "--prompt", "x", "--size", "32x32",
                    "--frames", "5", "--forwards", "1", "--out", folder / "clip.mp4"});
    EXPECT_EQ(run.exit_code, 7) << network << run.err;
    EXPECT_NE(run.err.find(file), std::string::npos) << run.err;
    EXPECT_EQ(run.err.find("adaln 1/1"), std::string::npos) << run.err;
    EXPECT_EQ(RunProgram({"inspect", folder / "model", "--verify"}).exit_code, 7);
  }
  EXPECT_EQ(RunProgram({"inspect", kModel, "--verify"}).exit_code, 0);
  EXPECT_EQ(RunProgram({"inspect", H3RT_TEST_DATA "/h3/mini/vae", "--verify"}).exit_code, 10);
}

TEST(Inspect, ListsMissingAndUnknownKeysAndExits1) {
  const TemporaryFolder folder;
  std::filesystem::copy(kModel + "/vae", folder / "vae", std::filesystem::copy_options::recursive);
  const std::string path = folder / "vae/diffusion_pytorch_model.safetensors";
  {
    const SafetensorsFile file = SafetensorsFile::Open(path).value();
    std::map<std::string, ConstTensorView, std::less<>> tensors;
    for (const auto& [name, entry] : file.entries()) {
      tensors.emplace(name == "quant_conv.bias" ? "quant_conv.surprise" : name,
                      file.Get(name).value());
    }
    ASSERT_TRUE(WriteSafetensors(path, tensors).ok());
  }
  const ProgramRun run = RunProgram({"inspect", folder / "vae"});
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_NE(run.out.find("unknown: quant_conv.surprise"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("missing: quant_conv.bias"), std::string::npos) << run.out;
  // The loader refuses by the same names.
  const TemporaryFolder out;
  const ProgramRun generate = RunProgram(WithPrompt(SmallClip(out, {"--vae", folder / "vae"})));
  EXPECT_EQ(generate.exit_code, 7) << generate.err;
  EXPECT_NE(generate.err.find("quant_conv."), std::string::npos) << generate.err;
}

TEST(MakeModel, MakesAModelThatRunsAndIsTheSameEveryTime) {
  const TemporaryFolder folder;
  ASSERT_EQ(RunProgram({"make-model", "--config", "mini", "--seed", "5", folder / "a"}).exit_code,
            0);
  ASSERT_EQ(RunProgram({"make-model", "--config", "mini", "--seed", "5", folder / "b"}).exit_code,
            0);
  const char* kFile = "/transformer/diffusion_pytorch_model.safetensors";
  EXPECT_TRUE(ReadAll(folder / "a" + kFile) == ReadAll(folder / "b" + kFile));
  const ProgramRun run =
      RunProgram({"generate", "--model", folder / "a", "--prompt", "x", "--size", "32x32",
                  "--frames", "5", "--forwards", "1", "--out", folder / "clip.mp4"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const ProgramRun again =
      RunProgram({"make-model", "--config", "mini", "--seed", "5", folder / "a"});
  EXPECT_NE(again.exit_code, 0) << "a folder with a model in it is not overwritten";
}

}  // namespace
}  // namespace h3rt::cli_test
