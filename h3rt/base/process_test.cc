#include "h3rt/base/process.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <thread>

namespace h3rt {
namespace {

TEST(Process, StreamsExitCodeAndClocksAreKept) {
  const auto run = RunProgram({"sh", "-c", "echo out; echo err >&2; exit 3"});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->exit_code, 3);
  EXPECT_EQ(run->out, "out\n");
  EXPECT_EQ(run->err, "err\n");
  EXPECT_FALSE(run->ok());
  EXPECT_GT(run->wall_ns, 0);
  EXPECT_GE(run->end_ns, run->start_ns);
  EXPECT_GT(run->peak_rss_bytes, 0);
}

TEST(Process, WordsAreNoShell) {
  const auto run = RunProgram({"printf", "%s|", "a b", "$HOME", ""});
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->out, "a b|$HOME||");
}

TEST(Process, MissingProgramIsNotFoundAndMissingFolderToo) {
  EXPECT_EQ(RunProgram({"no-such-program-h3rt"}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(RunProgram({"true"}, {.folder = "/no/such/folder"}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(Process, ASignalIsToldApartFromAnExit) {
  const auto run = RunProgram({"sh", "-c", "kill -SEGV $$"});
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->signal, SIGSEGV);
  EXPECT_EQ(run->exit_code, -1);
}

TEST(Process, TheWholeGroupEndsWhenTheTimeIsUp) {
  const auto start = std::chrono::steady_clock::now();
  const auto run = RunProgram({"sh", "-c", "sleep 60 & echo $!; wait"}, {.timeout_ms = 300});
  ASSERT_TRUE(run.ok());
  EXPECT_TRUE(run->timed_out);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  const pid_t grandchild = static_cast<pid_t>(std::stoi(run->out));
  bool gone = false;  // a zombie of an absent init counts as gone too, but is rare: wait a little
  for (int i = 0; i < 200 && !gone; ++i) {
    const auto state = RunProgram(
        {"sh", "-c",
         "cat /proc/" + std::to_string(grandchild) + "/stat 2>/dev/null | cut -d' ' -f3"});
    gone = state.ok() && (state->out.empty() || state->out == "Z\n");
    if (!gone) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(gone);
}

TEST(Process, ADescendantThatKeepsTheStreamsOpenDoesNotHoldUs) {
  const auto start = std::chrono::steady_clock::now();
  const auto run = RunProgram({"sh", "-c", "sleep 60 & echo done"});
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->out, "done\n");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(Process, LongOutputIsCutButReadToTheEnd) {
  const auto run =
      RunProgram({"sh", "-c", "head -c 1000000 /dev/zero; echo end >&2"}, {.output_bytes = 1000});
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->out.size(), 1000u);
  EXPECT_TRUE(run->cut);
  EXPECT_EQ(run->err, "end\n");
}

TEST(Process, AddressSpaceIsLimited) {
  const auto run =
      RunProgram({"sh", "-c", "ulimit -v"}, {.address_space_bytes = uint64_t{256} << 20});
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->out, "262144\n");
}

TEST(Process, VariablesReplaceOurs) {
  const auto run = RunProgram({"sh", "-c", "echo $HOME"}, {.variables = {{"HOME", "elsewhere"}}});
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->out, "elsewhere\n");
}

TEST(Process, CancellingEndsIt) {
  CancelToken cancel;
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    cancel.Cancel();
  });
  const auto run = RunProgram({"sleep", "60"}, {.cancel = &cancel});
  later.join();
  EXPECT_EQ(run.status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace h3rt
