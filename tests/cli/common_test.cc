// What every command does: help, version, unknown flags, one JSON object, exit codes.
#include <gtest/gtest.h>

#include "h3rt/base/json.h"
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
  for (const std::string& command : kCommands) {
    const ProgramRun run = RunProgram({command, "--no-such-flag"});
    EXPECT_EQ(run.exit_code, 2) << command;
    EXPECT_NE(run.err.find("no-such-flag"), std::string::npos) << command << ": " << run.err;
    EXPECT_EQ(run.out, "") << "messages belong to standard error";
  }
  EXPECT_EQ(RunProgram({"frobnicate"}).exit_code, 2);
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
