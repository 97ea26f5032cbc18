// Permitted statuses against the table of the specification, written out a second time.
#include "h3rt/lab/status_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <iterator>

#include "h3rt/lab/test_evidence.h"

namespace h3rt::lab {
namespace {

using ::testing::HasSubstr;

const StatusView& ViewOf(const std::vector<StatusView>& views, std::string_view status) {
  for (const StatusView& view : views) {
    if (view.status == status) return view;
  }
  ADD_FAILURE() << status;
  return views.front();
}

bool Permits(const TestCase& c, std::string_view status) {
  return ViewOf(PermittedStatuses(c.Get()), status).permitted;
}
std::string Missing(const TestCase& c, std::string_view status) {
  return ViewOf(PermittedStatuses(c.Get()), status).first_missing;
}

// The table, as one expression a status.
bool Allowed(const Predicates& p, std::string_view status) {
  if (status == "production_accepted") {
    return p.source && p.all && p.eligible && p.selected && p.can_be_selected && !p.superseded &&
           !p.quality_fail;
  }
  if (status == "research_retained") {
    return (p.any || p.model) && (p.non_claims || !p.needs_non_claims) && !p.selected;
  }
  if (status == "architecture_rejected") return p.architecture && !p.selected;
  if (status == "performance_rejected") {
    return p.correct && p.slow && p.correct_and_slow && !p.quality_fail && !p.selected;
  }
  if (status == "quality_rejected") return p.quality_fail && !p.selected;
  if (status == "temporarily_blocked") {
    return p.blocked && p.retry && !p.slow && !p.quality_fail;
  }
  return status == "incomplete";
}

// Precedence: Qfail > (ARCH, Gfail) > BLK > ANY.
int Rank(std::string_view status) {
  if (status == "production_accepted") return 0;
  if (status == "quality_rejected") return 1;
  if (status == "architecture_rejected") return 2;
  if (status == "performance_rejected") return 3;
  if (status == "temporarily_blocked") return 4;
  return status == "research_retained" ? 5 : 6;
}

void ExpectTable(const Predicates& p, const std::vector<StatusView>& views) {
  ASSERT_EQ(views.size(), std::size(kStatuses));
  int strongest = 7;
  for (size_t i = 0; i < views.size(); ++i) {
    ASSERT_EQ(views[i].status, kStatuses[i]);
    ASSERT_EQ(views[i].permitted, Allowed(p, views[i].status)) << views[i].status;
    ASSERT_EQ(views[i].first_missing.empty(), views[i].permitted);
    if (views[i].permitted) strongest = std::min(strongest, Rank(views[i].status));
  }
  for (const StatusView& view : views) {
    ASSERT_EQ(view.strongest, Rank(view.status) == strongest) << view.status;
  }
}

TEST(ViewsOf, AgreesWithTheTableOnEveryCombination) {
  bool Predicates::*const members[] = {
      &Predicates::source,           &Predicates::any,        &Predicates::model,
      &Predicates::quality_fail,     &Predicates::correct,    &Predicates::slow,
      &Predicates::correct_and_slow, &Predicates::blocked,    &Predicates::retry,
      &Predicates::architecture,     &Predicates::all,        &Predicates::eligible,
      &Predicates::selected,         &Predicates::superseded, &Predicates::can_be_selected,
      &Predicates::needs_non_claims, &Predicates::non_claims};
  int64_t accepted = 0;
  for (uint32_t bits = 0; bits < (uint32_t{1} << std::size(members)); ++bits) {
    Predicates p;
    for (size_t i = 0; i < std::size(members); ++i) p.*members[i] = ((bits >> i) & 1) != 0;
    const std::vector<StatusView> views = ViewsOf(p);
    ExpectTable(p, views);
    if (HasFatalFailure()) FAIL() << bits;
    accepted += views[0].permitted;
  }
  EXPECT_EQ(accepted, 1 << 10) << "seven of the seventeen predicates decide acceptance";
}

// Random records: what was put in says which predicates hold, and nothing else may pass.
TEST(PermittedStatuses, NeverLetAForbiddenStatusPassOnRandomEvidence) {
  const Doc pairs[] = {TestPair(TestSamples(std::log(1.03))), TestPair(TestSamples(0.002)),
                       TestPair(TestSamples(0.012, 0.02))};
  Doc races = TestSanitizer("racecheck");
  races["body"]["hazards_total"] = 256;
  Doc wrong = TestParity();
  wrong["body"]["cases"][0]["mismatches"] = 1;
  wrong["body"]["cases"][0]["first_index"] = 0;
  uint64_t state = 42;
  auto draw = [&](uint64_t n) { return NextRandom(state) % n; };
  std::map<std::string, int> seen;
  for (int round = 0; round < 3000; ++round) {
    TestCase c;
    Predicates p;
    // Adds it in one of four ways, of which one counts.
    auto add = [&](const Doc& envelope) {
      const std::string digest = c.Add(envelope);
      const uint64_t way = draw(6);
      if (way == 0) c.freshness[digest].stale = true;
      if (way == 1) c.record["evidence"].back()["valid"] = false;
      return way > 1;
    };
    const bool good_parity = draw(3) > 0 && add(TestParity());
    const bool memcheck = draw(4) > 0 && add(TestSanitizer("memcheck"));
    const bool racecheck = draw(4) > 0 && add(TestSanitizer("racecheck"));
    const bool hazards = draw(5) == 0 && add(races);
    const bool bad_parity = draw(5) == 0 && add(wrong);
    p.quality_fail = hazards || bad_parity;
    p.correct = !p.quality_fail && good_parity && memcheck && racecheck;
    const uint64_t timing = draw(4);
    const bool timed = timing < 3 && add(pairs[timing]);
    p.slow = timed && timing == 1;
    p.correct_and_slow = p.correct && p.slow;
    const bool rejected = draw(4) == 0 && add(TestCompile("rejected", "rejected"));
    const bool gave_up = draw(6) == 0 && add(TestCompile("oom"));
    const bool failed = draw(4) == 0 && add(TestFailure(nullptr));
    const bool retried = draw(6) == 0 && add(TestFailure("more memory"));
    p.blocked = rejected || gave_up || failed || retried;
    p.retry = rejected || gave_up || retried;
    p.model = draw(4) == 0 && add(TestInspection());
    if (draw(2) == 0) {
      c.record["decision"]["log_seq"] = 3;
      p.architecture = p.model;
    }
    p.any = good_parity || memcheck || racecheck || hazards || bad_parity || timed || rejected ||
            gave_up;
    p.selected = draw(5) == 0;
    if (p.selected) c.record["retention"]["dispatch"] = "default";
    p.needs_non_claims = true;
    p.non_claims = draw(2) == 0;
    if (p.non_claims) c.record["scope"]["non_claims"] = {"no speedup is claimed"};
    const std::vector<StatusView> views = PermittedStatuses(c.Get());
    ExpectTable(p, views);
    if (HasFatalFailure()) FAIL() << "round " << round << ": " << c.record.dump();
    for (const StatusView& view : views) seen[view.status] += view.permitted;
  }
  for (const char* status : kStatuses) {
    if (std::string_view(status) == "production_accepted") continue;
    EXPECT_GT(seen[status], 20) << status << " was hardly ever permitted: the test has no teeth";
  }
}

TEST(PermittedStatuses, OfAnEmptyRecordAreIncompleteAlone) {
  const TestCase c;
  for (const StatusView& view : PermittedStatuses(c.Get())) {
    EXPECT_EQ(view.permitted, view.status == "incomplete") << view.status;
    EXPECT_EQ(view.strongest, view.status == "incomplete") << view.status;
  }
  EXPECT_THAT(Missing(c, "production_accepted"), HasSubstr("build on sm_90a is not run"));
  EXPECT_THAT(Missing(c, "performance_rejected"), HasSubstr("a pass of the correct gate"));
  EXPECT_THAT(Missing(c, "temporarily_blocked"), HasSubstr("with its log"));
}

TEST(PermittedStatuses, NameTheGateThatIsNextForAcceptance) {
  TestCase c;
  c.Add(TestCompile("ok"));
  c.Add(TestResource());
  c.AddCorrect();
  EXPECT_THAT(Missing(c, "production_accepted"), HasSubstr("isolated on sm_90a is not run"));
  c.Add(TestPair(TestSamples(0.012, 0.02)));
  EXPECT_THAT(Missing(c, "production_accepted"), HasSubstr("isolated on sm_90a is inconclusive"));
  EXPECT_THAT(Missing(c, "performance_rejected"), HasSubstr("isolated on sm_90a is inconclusive"));
}

TEST(PermittedStatuses, PerformanceIsNotRejectedOnNoise) {
  TestCase c;
  c.AddCorrect();
  c.Add(TestPair(TestSamples(0.012, 0.02)));
  EXPECT_FALSE(Permits(c, "performance_rejected"));
  TestCase slow;
  slow.AddCorrect();
  slow.Add(TestPair(TestSamples(0.002)));
  EXPECT_TRUE(Permits(slow, "performance_rejected"));
  EXPECT_FALSE(Permits(slow, "temporarily_blocked"));
}

TEST(PermittedStatuses, PerformanceNeedsBothVerdictsOnOneDevice) {
  TestCase c;
  c.record["scope"]["archs"] = {"sm_90a", "sm_121a"};
  c.AddCorrect();
  Doc pair = TestPair(TestSamples(0.002));
  pair["target"] = "sm_121a";
  pair["body"]["bytes"] = 1000;
  pair["body"]["copy_bytes_per_s"] = nullptr;
  c.Add(pair);
  ASSERT_EQ(c.Verdict("isolated", "sm_121a"), "fail");
  EXPECT_FALSE(Permits(c, "performance_rejected"));
  EXPECT_THAT(Missing(c, "performance_rejected"), HasSubstr("same device class"));
}

TEST(PermittedStatuses, QualityComesBeforeSpeedAndArchitecture) {
  TestCase c;
  c.AddCorrect();
  c.Add(TestPair(TestSamples(0.002)));
  c.Add(TestInspection());
  c.record["decision"]["log_seq"] = 4;
  Doc wrong = TestParity();
  wrong["body"]["repeat_exact"]["distinct_digests"] = 3;
  c.Add(wrong);
  EXPECT_TRUE(Permits(c, "quality_rejected"));
  EXPECT_FALSE(Permits(c, "performance_rejected"));
  EXPECT_TRUE(ViewOf(PermittedStatuses(c.Get()), "quality_rejected").strongest);
}

TEST(PermittedStatuses, AConfirmedCompileProbeIsBlockedOrRetained) {
  TestCase c;
  c.record["kind"] = "probe";
  c.record["scope"]["non_claims"] = {"nothing was timed"};
  c.Add(TestCompile("rejected", "rejected"));
  EXPECT_TRUE(Permits(c, "temporarily_blocked"));
  EXPECT_TRUE(Permits(c, "research_retained"));
  EXPECT_FALSE(Permits(c, "quality_rejected"));
  // Without a control a missing toolkit looks the same.
  TestCase unproved;
  Doc broken = TestCompile("rejected", "rejected");
  broken["body"]["control"]["outcome"] = "rejected";
  unproved.Add(broken);
  EXPECT_FALSE(Permits(unproved, "temporarily_blocked"));
}

TEST(PermittedStatuses, AFailureBlocksOnlyWithWhatWouldLiftIt) {
  TestCase c;
  c.Add(TestFailure(nullptr));
  EXPECT_THAT(Missing(c, "temporarily_blocked"), HasSubstr("what would lift"));
  c.Add(TestFailure("a machine with more memory"));
  EXPECT_TRUE(Permits(c, "temporarily_blocked"));
  EXPECT_FALSE(Permits(c, "research_retained")) << "a failure is no result";
}

TEST(PermittedStatuses, ImportedEvidenceCarriesNothing) {
  TestCase c;
  c.record["scope"]["non_claims"] = {"x"};
  for (Doc envelope : {TestParity(), TestPair(TestSamples(0.002)), TestInspection()}) {
    envelope["origin"] = "imported";
    c.Add(envelope);
  }
  c.record["decision"]["log_seq"] = 4;
  for (const StatusView& view : PermittedStatuses(c.Get())) {
    EXPECT_EQ(view.permitted, view.status == "incomplete") << view.status;
  }
}

TEST(PredicatesOf, SourceIsComparedWithTheTree) {
  TestCase c;
  c.record["source"] = {{"state", "present"}, {"paths", {"h3rt/lab/stats.cc"}}, {"digest", ""}};
  EXPECT_FALSE(PredicatesOf(c.Get()).source);
  c.record["source"]["digest"] = ClosureDigest(c.store, {"h3rt/lab/stats.cc"}).value();
  EXPECT_TRUE(PredicatesOf(c.Get()).source);
  c.record["source"]["state"] = "partial";
  EXPECT_FALSE(PredicatesOf(c.Get()).source);
  c.record["source"] = {{"state", "present"}, {"paths", {"no/such.cc"}}, {"digest", kTestDigest}};
  EXPECT_FALSE(PredicatesOf(c.Get()).source);
}

TEST(PredicatesOf, ReadsWhatTheRecordDeclares) {
  TestCase c;
  c.record["kind"] = "profile";
  c.record["scope"]["eligible"] = "rows >= 128";
  c.record["retention"]["dispatch"] = "default";
  c.record["relations"]["superseded_by"] = "another-one";
  const Predicates p = PredicatesOf(c.Get());
  EXPECT_TRUE(p.eligible);
  EXPECT_TRUE(p.selected);
  EXPECT_TRUE(p.superseded);
  EXPECT_FALSE(p.can_be_selected);
  EXPECT_FALSE(p.needs_non_claims);
}

TEST(WhyNotTransition, IsTheTableOfAllowedChanges) {
  const std::map<std::string, std::string> allowed = {
      // The order of kStatuses: production, retained, architecture, performance, quality, blocked,
      // incomplete.
      {"production_accepted", "xx..x.."},
      {"research_retained", "xxxxx.x"},
      {"architecture_rejected", "..xxx.x"},
      {"performance_rejected", "..xxx.x"},
      {"quality_rejected", "..xxx.x"},
      {"temporarily_blocked", ".....xx"},
      {"incomplete", "xxxxxxx"}};
  for (const char* from : kStatuses) {
    for (size_t to = 0; to < std::size(kStatuses); ++to) {
      EXPECT_EQ(WhyNotTransition(from, kStatuses[to]).empty(), allowed.at(from)[to] == 'x')
          << from << " to " << kStatuses[to];
    }
  }
  EXPECT_NE(WhyNotTransition("rejected", "incomplete"), "");
  EXPECT_NE(WhyNotTransition("incomplete", "accepted"), "");
}

}  // namespace
}  // namespace h3rt::lab
