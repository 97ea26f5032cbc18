#include "h3rt/harness/closed.h"

#include <gtest/gtest.h>

#include "h3rt/base/exit_code.h"
#include "h3rt/lab/closure.h"
#include "h3rt/lab/test_store.h"

namespace h3rt::lab {
namespace {

class Closed : public ::testing::Test {
 protected:
  // beta-two is closed by these rules.
  void Close(const Doc& digest, const std::string& mode, const Doc& automatic = nullptr) {
    store_.Change1("beta-two", [&](Doc& record) {
      record["closed"] = {
          {"log_seq", 2},
          {"rule", "Do not repeat unchanged."},
          {"candidate_digest", digest},
          {"reuse_only_in", nullptr},
          {"reopen",
           {{"mode", mode}, {"conditions", {"another producer pipeline"}}, {"auto", automatic}}}};
    });
  }
  Lab Open() {
    absl::StatusOr<Lab> lab = OpenLab(store_.store);
    EXPECT_TRUE(lab.ok()) << lab.status();
    return std::move(lab).value();
  }
  absl::Status Run(const std::string& id, const Candidate& candidate,
                   const ReopenClaim& claim = {}) {
    const Lab lab = Open();
    return WhyRefused(lab, *lab.registry.Find(id), candidate, claim);
  }
  TestStore store_;
  const std::string a_ = std::string(64, 'a'), b_ = std::string(64, 'b');
};

TEST_F(Closed, NothingClosedRefusesNothing) { EXPECT_TRUE(Run("beta-two", {a_, b_, ""}).ok()); }

TEST_F(Closed, TheSameCandidateIsRefusedUnderAnyIdAndByEitherDigest) {
  Close(a_, "unchanged_forbidden");
  for (const char* id : {"beta-two", "alpha-one"}) {
    for (const Candidate& candidate : {Candidate{a_, b_, ""}, Candidate{b_, a_, ""}}) {
      const absl::Status refused = Run(id, candidate);
      EXPECT_EQ(ExitCodeOf(refused), ExitCode::kRefusedClosedWork) << id;
      EXPECT_NE(refused.message().find("beta-two"), std::string::npos);
      EXPECT_NE(refused.message().find("Do not repeat unchanged."), std::string::npos);
    }
    EXPECT_TRUE(Run(id, {b_, b_, ""}).ok()) << id << ": changed";
  }
}

TEST_F(Closed, ACommentDoesNotMakeItAnother) {
  const std::vector<std::string> roots = {"kernels/add.cu"};
  const Lab lab = Open();
  const Candidate before = CandidateOf(lab, *lab.registry.Find("beta-two"), "");
  EXPECT_EQ(before.source_digest, ClosureDigest(store_.store, roots).value());
  Close(before.normalised_digest, "unchanged_forbidden");
  store_.Write("kernels/add.cu", "// Better.\n#include \"kernels/add.h\"\n\nint  add = 1;\n");
  const Lab edited = Open();
  const Record& record = *edited.registry.Find("beta-two");
  EXPECT_EQ(ExitCodeOf(CheckClosedWork(edited, record, "", "", "", -1)),
            ExitCode::kRefusedClosedWork);
  store_.Write("kernels/add.cu", "#include \"kernels/add.h\"\nint add = 2;\n");
  EXPECT_TRUE(CheckClosedWork(edited, record, "", "", "", -1).ok());
}

TEST_F(Closed, AnUnrecordedCandidateNeedsANewId) {
  Close(nullptr, "unchanged_forbidden");
  const absl::Status refused = Run("beta-two", {a_, b_, ""});
  EXPECT_EQ(ExitCodeOf(refused), ExitCode::kRefusedClosedWork);
  EXPECT_NE(refused.message().find("derived_from"), std::string::npos);
  EXPECT_TRUE(Run("alpha-one", {a_, b_, ""}).ok());
}

TEST_F(Closed, AConditionNeedsItsReopenEntry) {
  Close(nullptr, "condition");
  const std::string condition = "another producer pipeline";
  Doc entry = EmptyEntry("reopen", "beta-two opens again");
  entry["decision"] = "It now has another producer pipeline.";
  const int64_t good = store_.Put(entry, {}).value();
  const int64_t wrong_kind = store_.Put(EmptyEntry("entry", "beta-two, " + condition), {}).value();
  const int64_t silent = store_.Put(EmptyEntry("reopen", "beta-two"), {}).value();
  const Candidate candidate{a_, b_, ""};
  EXPECT_TRUE(Run("beta-two", candidate, {"beta-two", condition, good}).ok());
  for (const ReopenClaim& claim :
       {ReopenClaim{}, ReopenClaim{"alpha-one", condition, good},
        ReopenClaim{"beta-two", "because", good}, ReopenClaim{"beta-two", condition, wrong_kind},
        ReopenClaim{"beta-two", condition, silent}, ReopenClaim{"beta-two", condition, 999}}) {
    EXPECT_EQ(ExitCodeOf(Run("beta-two", candidate, claim)), ExitCode::kRefusedClosedWork)
        << claim.id << claim.because << claim.log_seq;
  }
}

TEST_F(Closed, AToolchainOpensWhatItHasNotRefusedYet) {
  Close(nullptr, "condition", "toolchain");
  Doc envelope = TestEnvelope(store_.store, "beta-two");
  envelope["environment"]["class"]["toolkit"] = "13.0";
  envelope["body"]["outcome"] = "rejected";
  const std::string source = envelope["subject"]["source_digest"];
  EXPECT_TRUE(Run("beta-two", {source, b_, "13.0"}).ok()) << "never compiled by it";
  EXPECT_EQ(RetryDue(Open(), "13.0").size(), 1u);
  const std::string digest = store_.AddEvidence(envelope, {{"log", "rejected\n"}});
  store_.Change1("beta-two", [&](Doc& record) { record["evidence"] = {Cited(digest)}; });
  EXPECT_FALSE(Run("beta-two", {source, b_, "13.0"}).ok());
  EXPECT_FALSE(Run("beta-two", {source, b_, ""}).ok());
  EXPECT_TRUE(Run("beta-two", {source, b_, "13.1"}).ok());
  EXPECT_TRUE(Run("beta-two", {a_, b_, "13.0"}).ok()) << "other sources";
  EXPECT_TRUE(RetryDue(Open(), "13.0").empty());
  EXPECT_TRUE(RetryDue(Open(), "").empty());
  EXPECT_EQ(RetryDue(Open(), "13.1"),
            std::vector<std::string>{"beta-two: blocked with 13.0, now 13.1"});
}

TEST_F(Closed, BlockedRecordsAreDueWhenTheirCompilerChanged) {
  Doc envelope = TestEnvelope(store_.store, "beta-two");
  envelope["environment"]["class"]["toolkit"] = "13.0";
  envelope["body"]["outcome"] = "timeout";
  const std::string digest = store_.AddEvidence(envelope, {{"log", "killed\n"}});
  store_.Change1("beta-two", [&](Doc& record) { record["evidence"] = {Cited(digest)}; });
  EXPECT_TRUE(RetryDue(Open(), "13.1").empty()) << "not blocked";
  store_.Change1("beta-two", [&](Doc& record) { record["status"] = "temporarily_blocked"; });
  EXPECT_EQ(RetryDue(Open(), "13.1").size(), 1u);
  EXPECT_TRUE(RetryDue(Open(), "13.0").empty());
}

}  // namespace
}  // namespace h3rt::lab
