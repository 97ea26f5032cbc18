// What every command does: help, version, unknown flags, one JSON object, exit codes.
#include <gtest/gtest.h>

#include <filesystem>

#include "h3rt/base/json.h"
#include "h3rt/io/safetensors.h"
#include "h3rt/tensor/tensor.h"
#include "tests/cli/program.h"

namespace h3rt::cli_test {
namespace {

const std::vector<std::string> kCommands = {"generate", "inspect", "parity", "doctor",
                                            "make-model"};

TEST(Program, SaysItsVersionAndHelp) {
  const ProgramRun version = RunProgram({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(version.out, "h3rt 0.1.0\n");
  const ProgramRun help = RunProgram({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const std::string& command : kCommands) {
    EXPECT_NE(help.out.find(command), std::string::npos) << command;
  }
  EXPECT_NE(help.out.find("H3RT_THREADS"), std::string::npos);
}

TEST(Program, WithoutACommandItIsAnInvalidArgument) { EXPECT_EQ(RunProgram({}).exit_code, 2); }

TEST(Program, RefusesUnknownFlagsByName) {
  const std::vector<std::vector<std::string>> calls = {{"generate", "--model", "m"},
                                                       {"inspect", "d"},
                                                       {"parity", "d"},
                                                       {"doctor"},
                                                       {"make-model", "d"}};
  ASSERT_EQ(calls.size(), kCommands.size());
  for (std::vector<std::string> call : calls) {
    call.push_back("--no-such-flag");
    const ProgramRun run = RunProgram(call);
    EXPECT_EQ(run.exit_code, 2) << call[0];
    EXPECT_NE(run.err.find("no-such-flag"), std::string::npos) << call[0] << ": " << run.err;
    EXPECT_EQ(run.out, "") << "messages belong to standard error";
  }
  EXPECT_EQ(RunProgram({"frobnicate"}).exit_code, 2);
}

TEST(Program, RefusesEmptyValuesByName) {
  for (const char* flag : {"--prompt", "--out", "--size", "--first", "--seed", "--frames",
                           "--latents-in", "--transformer", "--sheet"}) {
    const ProgramRun run = RunProgram({"generate", "--model", "m", flag, ""});
    EXPECT_EQ(run.exit_code, 2) << flag;
    EXPECT_NE(run.err.find(flag), std::string::npos) << flag << ": " << run.err;
  }
}

TEST(Program, AnOutputThatCannotBePrintedIsAnError) {
  const ProgramRun run = RunProgram({"doctor", "--json"}, {.stdout_path = "/dev/full"});
  EXPECT_EQ(run.exit_code, 3) << run.err;
}

TEST(Program, PrintsOneJsonObjectEvenForErrors) {
  const std::vector<std::vector<std::string>> calls = {
      {"doctor", "--json"},
      {"inspect", "/no/such/place", "--json"},
      {"parity", "/no/such/place", "--json"},
      {"generate", "--model", "/no/such/place", "--prompt", "x", "--json"},
      {"generate", "--json", "--no-such-flag"},
  };
  for (const auto& call : calls) {
    const ProgramRun run = RunProgram(call);
    const auto json = ParseJson(run.out, call[0]);
    ASSERT_TRUE(json.ok()) << call[0] << ": " << json.status() << "\n" << run.out;
    EXPECT_TRUE(json->is_object());
    if (run.exit_code == 0) continue;
    EXPECT_EQ((*json)["exit_code"].get<int>(), run.exit_code);
    EXPECT_FALSE((*json)["error"].get<std::string>().empty());
  }
}

TEST(Program, MissingFilesExit3) {
  EXPECT_EQ(RunProgram({"inspect", "/no/such/place"}).exit_code, 3);
  EXPECT_EQ(RunProgram({"parity", "/no/such/place"}).exit_code, 3);
  EXPECT_EQ(RunProgram({"generate", "--model", "/no/such/place", "--prompt", "x"}).exit_code, 3);
}

TEST(Program, RefusesBadEnvironmentByName) {
  for (const auto& [name, value] : Environment{
           {"H3RT_LOG", "loud"}, {"H3RT_MEMORY_LIMIT", "lots"}, {"H3RT_FAKE_DEVICES", "nine"}}) {
    const ProgramRun run = RunProgram({"doctor"}, {.env = {{name, value}}});
    EXPECT_EQ(run.exit_code, 2) << name;
    EXPECT_NE(run.err.find(name), std::string::npos) << run.err;
  }
}

TEST(Doctor, ListsTheExactTable) {
  const ProgramRun run = RunProgram(
      {"doctor", "--json"}, {.env = {{"H3RT_FAKE_DEVICES", "8.9, 9.0,10.0,12.0,12.1,13.0"}}});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json json = ParseJson(run.out, "doctor").value();
  ASSERT_EQ(json["devices"].size(), 6u);
  const char* const attention[] = {"path A16 per_thread", "path B per_thread", "none",
                                   "path A16 per_warp",   "path A16 per_warp", "none"};
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(json["devices"][i]["exact_attention"].get<std::string>(), attention[i]) << i;
    EXPECT_FALSE(json["devices"][i]["missing"].empty()) << "the missing part is named";
  }
  EXPECT_TRUE(json["devices"][4]["integrated"].get<bool>());
  EXPECT_FALSE(json["devices"][5]["known"].get<bool>());
  ASSERT_EQ(json["architectures"].size(), 5u);
  EXPECT_EQ(json["runs_on"].get<std::string>(), "cpu");
}

TEST(Doctor, SaysWhyThereIsNoFfmpeg) {
  const ProgramRun run =
      RunProgram({"doctor", "--json"}, {.env = {{"H3RT_MEDIA_LIBRARY", "none"}}});
  ASSERT_EQ(run.exit_code, 0);
  const Json json = ParseJson(run.out, "doctor").value();
  EXPECT_TRUE(json["libraries"]["ffmpeg"].is_null());
  EXPECT_FALSE(json["libraries"]["ffmpeg_reason"].get<std::string>().empty());
}

// The whole of what the README claims: every recorded tensor, within its bound.
TEST(Parity, EveryRecordedTensorIsWithinItsBound) {
  const ProgramRun run = RunProgram({"parity", H3RT_TEST_DATA "/h3", "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const Json json = ParseJson(run.out, "parity").value();
  EXPECT_GE(json["compared"].get<int>(), 280);
  EXPECT_EQ(json["failed"].get<int>(), 0);
  std::map<std::string, int> rows;
  for (const Json& row : json["rows"]) {
    EXPECT_TRUE(row["ok"].get<bool>()) << row.dump();
    const std::string name = row["name"].get<std::string>();
    ++rows[row["folder"].get<std::string>() + "/" + name.substr(0, name.find('.'))];
  }
  // No group may quietly go missing.
  for (const char* group : {"/rng",
                            "/formats",
                            "mini/layout",
                            "mini/schedule",
                            "mini/transformer_f32",
                            "mini/transformer_bf16",
                            "mini/pruned_f32",
                            "mini/trajectory",
                            "mini/vae",
                            "mini/audio_vae",
                            "mini/end_to_end",
                            "nano/layout",
                            "nano/schedule",
                            "nano/transformer_f32",
                            "nano/transformer_bf16",
                            "nano/pruned_f32",
                            "nano/single_file",
                            "nano/trajectory",
                            "nano/vae",
                            "nano/audio_vae"}) {
    EXPECT_GT(rows[group], 0) << group;
  }
  EXPECT_EQ(rows["mini/end_to_end"], 6);
}

TEST(Parity, TakesOneModelFolderAndOptionsBeforeIt) {
  const ProgramRun run =
      RunProgram({"parity", "--impl", "attention=ref", H3RT_TEST_DATA "/h3/nano"});
  EXPECT_EQ(run.exit_code, 0) << run.err << run.out;
  EXPECT_NE(run.out.find("0 failed"), std::string::npos);
}

TEST(Parity, AWrongWeightFailsAndSaysWhere) {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  fs::copy(H3RT_TEST_DATA "/h3/nano", folder / "nano", fs::copy_options::recursive);
  const std::string path = folder / "nano/transformer/diffusion_pytorch_model.safetensors";
  std::string bytes = ReadAll(path);
  bytes[bytes.size() - 1] = static_cast<char>(bytes[bytes.size() - 1] ^ 0x80);  // one sign
  fs::permissions(path, fs::perms::owner_all);
  WriteAll(path, bytes);
  const ProgramRun run = RunProgram({"parity", folder / "nano"});
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_NE(run.out.find("FAIL transformer_f32."), std::string::npos) << run.out;
}

TEST(Parity, AnEmptiedFixtureFails) {
  namespace fs = std::filesystem;
  const Tensor other = Tensor::Zeros(DType::kF32, {1}).value();
  for (const char* file : {"schedule.safetensors", "vae.safetensors", "audio_vae.safetensors",
                           "transformer_forward_bf16.safetensors", "layout.safetensors"}) {
    const TemporaryFolder folder;
    fs::copy(H3RT_TEST_DATA "/h3/nano", folder / "nano", fs::copy_options::recursive);
    fs::remove(folder / "nano/" + file);
    ASSERT_TRUE(WriteSafetensors(folder / "nano/" + file, {{"other", other.view()}}).ok());
    const ProgramRun run = RunProgram({"parity", folder / "nano"});
    EXPECT_EQ(run.exit_code, 1) << file << run.err;
    EXPECT_NE(run.out.find("FAIL"), std::string::npos) << file << run.out;
  }
}

TEST(Parity, AFixtureOfAnotherDtypeIsDataLossAndNoCrash) {
  const TemporaryFolder folder;
  const Tensor wrong = Tensor::Zeros(DType::kF16, {3}).value();
  for (const auto& [file, key] : Environment{{"formats.safetensors", "e4m3.in"},
                                             {"layout.safetensors", "t2va.position_ids"},
                                             {"rng.safetensors", "randn.x.3"}}) {
    ASSERT_TRUE(WriteSafetensors(folder / file, {{key, wrong.view()}}).ok());
    const ProgramRun run = RunProgram({"parity", folder.path()});
    EXPECT_EQ(run.exit_code, file == "layout.safetensors" ? 3 : 7) << file << run.err;
    std::filesystem::remove(folder / file);
  }
}

TEST(Parity, AnEmptyFolderIsNoSuccess) {
  const TemporaryFolder folder;
  EXPECT_EQ(RunProgram({"parity", folder.path()}).exit_code, 10);
}

TEST(Parity, ACorruptFixtureIsDataLoss) {
  const TemporaryFolder folder;
  WriteAll(folder / "rng.safetensors", "not a safetensors file");
  const ProgramRun run = RunProgram({"parity", folder.path()});
  EXPECT_EQ(run.exit_code, 7) << run.err;
  EXPECT_NE(run.err.find("rng.safetensors"), std::string::npos) << run.err;
}

TEST(Parity, AWrongNumberFails) {
  const TemporaryFolder folder;
  std::string bytes = ReadAll(H3RT_TEST_DATA "/h3/rng.safetensors");
  ASSERT_GT(bytes.size(), 1000u);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);  // the last bit of one value
  WriteAll(folder / "rng.safetensors", bytes);
  const ProgramRun run = RunProgram({"parity", folder.path()});
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_NE(run.out.find("FAIL"), std::string::npos);
  EXPECT_NE(run.out.find("1 failed"), std::string::npos) << run.out;
}

}  // namespace
}  // namespace h3rt::cli_test
