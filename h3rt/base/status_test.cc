#include "h3rt/base/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "h3rt/base/candidates.h"
#include "h3rt/base/check.h"
#include "h3rt/base/exit_code.h"

namespace h3rt {
namespace {

using ::testing::HasSubstr;

TEST(Status, TheMessageSaysWhatGotWantedWhere) {
  EXPECT_EQ(FormatError({.what = "frames", .got = "7", .wanted = "17k+5", .where = "--frames"}),
            "frames: got 7, wanted 17k+5 [--frames]");
}

TEST(Status, PartsOfAMessageThatAreEmptyAreLeftOut) {
  EXPECT_EQ(FormatError({.what = "a"}), "a");
  EXPECT_EQ(FormatError({.what = "a", .got = "b"}), "a: got b");
  EXPECT_EQ(FormatError({.what = "a", .wanted = "c"}), "a: wanted c");
  EXPECT_EQ(FormatError({.what = "a", .where = "d"}), "a [d]");
  EXPECT_EQ(FormatError({.what = "a", .wanted = "c", .where = "d"}), "a: wanted c [d]");
}

TEST(Status, EveryMakerHasItsCodeAndExitCode) {
  const ErrorText text{.what = "x"};
  const std::vector<std::pair<absl::Status, int>> table = {
      {absl::OkStatus(), 0},         {InvalidArgument(text), 2},
      {NotFound(text), 3},           {IoError(text), 3},
      {FailedPrecondition(text), 4}, {Unimplemented(text), 5},
      {ResourceExhausted(text), 6},  {DataLoss(text), 7},
      {Cancelled("x"), 8},           {RefusedClosedWork(text), 12},
      {Internal(text), 70},
  };
  for (const auto& [status, exit] : table) {
    EXPECT_EQ(static_cast<int>(ExitCodeOf(status)), exit) << status;
  }
}

TEST(Status, EveryStatusCodeThereIsHasAnExitCode) {
  using Code = absl::StatusCode;
  const std::vector<std::pair<Code, int>> others = {
      {Code::kUnknown, 70},          {Code::kDeadlineExceeded, 70}, {Code::kAlreadyExists, 3},
      {Code::kPermissionDenied, 12}, {Code::kAborted, 11},          {Code::kOutOfRange, 2},
      {Code::kUnauthenticated, 70},
  };
  for (const auto& [code, exit] : others) {
    EXPECT_EQ(static_cast<int>(ExitCodeOf(absl::Status(code, "x"))), exit)
        << static_cast<int>(code);
  }
}

TEST(Status, ErrnoTellsMissingFilesFromFullDisks) {
  const std::vector<std::pair<int, int>> table = {
      {ENOENT, 3}, {ENOTDIR, 3}, {EACCES, 3}, {EIO, 3},   {EROFS, 3},
      {ENOSPC, 6}, {EDQUOT, 6},  {ENOMEM, 6}, {EFBIG, 6},
  };
  for (const auto& [error, exit] : table) {
    const absl::Status status = ErrnoStatus(error, "write", "out.mp4");
    EXPECT_EQ(static_cast<int>(ExitCodeOf(status)), exit) << error;
    EXPECT_THAT(MessageOf(status), HasSubstr("cannot write: got "));
    EXPECT_THAT(MessageOf(status), HasSubstr("[out.mp4]"));
  }
}

TEST(Status, ContextIsAddedToErrorsOnly) {
  EXPECT_TRUE(WithContext(absl::OkStatus(), "stage").ok());
  const absl::Status status = WithContext(DataLoss({.what = "bad", .where = "file"}), "stage");
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(MessageOf(status), "bad [file] [stage]");
}

absl::StatusOr<int> Half(int n) {
  if (n % 2 != 0) return InvalidArgument({.what = "odd"});
  return n / 2;
}

absl::StatusOr<int> Quarter(int n) {
  H3RT_ASSIGN_OR_RETURN(const int half, Half(n));
  H3RT_ASSIGN_OR_RETURN(const int quarter, Half(half));
  H3RT_RETURN_IF_ERROR(quarter == 25 ? NotFound({.what = "25"}) : absl::OkStatus());
  return quarter;
}

TEST(Status, TheMacrosReturnTheFirstError) {
  EXPECT_EQ(Quarter(8).value(), 2);
  EXPECT_EQ(Quarter(7).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Quarter(6).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Quarter(100).status().code(), absl::StatusCode::kNotFound);
}

TEST(CheckDeathTest, AFailedCheckSaysWhatAndWhere) {
  H3RT_CHECK(1 + 1 == 2);
  EXPECT_DEATH(H3RT_CHECK(1 + 1 == 3), "internal check failed: 1 \\+ 1 == 3 \\(.*status_test.cc:");
}

// Candidates for a problem that is one number.
struct Problem {
  int n = 0;
  std::string* ran = nullptr;
};

constexpr std::array<Candidate<Problem>, 3> kCandidates = {{
    {"even", [](const Problem& p) { return std::string(p.n % 2 == 0 ? "" : "n is odd"); },
     [](const Problem& p, const ExecContext&) {
       *p.ran = "even";
       return absl::OkStatus();
     }},
    {"small", [](const Problem& p) { return std::string(p.n < 10 ? "" : "n is 10 or more"); },
     [](const Problem& p, const ExecContext&) {
       *p.ran = "small";
       return absl::OkStatus();
     }},
    {"broken", [](const Problem& p) { return std::string(p.n == 11 ? "" : "n is not 11"); },
     [](const Problem&, const ExecContext&) { return DataLoss({.what = "broken"}); }},
}};

absl::Status Choose(int n, const ImplChoice& choice, std::string* ran) {
  ThreadPool pool(1);
  const ExecContext context{.pool = &pool, .cancel = nullptr, .impls = &choice};
  return RunCandidate<Problem>("op", kCandidates, {.n = n, .ran = ran}, context);
}

TEST(Candidates, TheFirstThatSupportsTheProblemRuns) {
  std::string ran;
  EXPECT_TRUE(Choose(4, {}, &ran).ok());
  EXPECT_EQ(ran, "even");
  EXPECT_TRUE(Choose(5, {}, &ran).ok());
  EXPECT_EQ(ran, "small");
  EXPECT_EQ(Choose(11, {}, &ran).code(), absl::StatusCode::kDataLoss) << "its error is passed on";
}

TEST(Candidates, AnExplicitChoiceWinsAndItsRefusalIsNotReplaced) {
  std::string ran;
  EXPECT_TRUE(Choose(4, {{"op", "small"}}, &ran).ok());
  EXPECT_EQ(ran, "small");
  EXPECT_TRUE(Choose(4, {{"another", "small"}}, &ran).ok());
  EXPECT_EQ(ran, "even");
  const absl::Status status = Choose(5, {{"op", "even"}}, &ran);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(MessageOf(status), HasSubstr("even: n is odd"));
}

TEST(Candidates, NoneThatFitsIsUnimplementedWithEveryReason) {
  std::string ran;
  const absl::Status status = Choose(13, {}, &ran);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(MessageOf(status),
              HasSubstr("even: n is odd; small: n is 10 or more; broken: n is not 11"));
}

TEST(Candidates, AnUnknownNameIsRefusedWithTheNamesThereAre) {
  std::string ran;
  const absl::Status status = Choose(4, {{"op", "fast"}}, &ran);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MessageOf(status), "implementation of op: got fast, wanted one of even, small, broken");
  EXPECT_EQ(ran, "");
}

}  // namespace
}  // namespace h3rt
