#include "h3rt/pages/report.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "h3rt/base/file.h"
#include "h3rt/lab/closure.h"
#include "h3rt/lab/freshness.h"
#include "h3rt/lab/test_simulate.h"
#include "h3rt/ledger/log.h"
#include "h3rt/pages/report_view.h"
#include "h3rt/pages/svg.h"

namespace h3rt::lab {
namespace {
namespace fs = std::filesystem;

// A store with records in every kind of state, made anew for each test.
class Pages : public ::testing::Test {
 protected:
  Pages() {
    std::string name = testing::TempDir() + "/lab-pages-XXXXXX";
    store_.root = ::mkdtemp(name.data());
    for (const char* path : kHarnessSources) Write(path, "int timer;\n");
    Write("h3rt/k/new.cu", "int candidate;\n");
    Write("h3rt/k/old.cu", "int baseline;\n");
    policy_ = {{"gates", {{"isolated", {{"min_gain_ppm", 10000}}}}}, {"schema", "lab.policy/1"}};
    Write(kPolicyFile, CanonicalText(policy_) + "\n");
  }
  ~Pages() override { fs::remove_all(store_.root); }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(store_.PathOf(path)).parent_path());
    std::ofstream(store_.PathOf(path), std::ios::binary) << text;
  }

  static Doc RecordOf(const std::string& id, const std::string& status) {
    const Doc gates = {{"block", nullptr},      {"build", nullptr},    {"correct", nullptr},
                       {"deployment", nullptr}, {"isolated", nullptr}, {"trajectory", nullptr}};
    return {{"artifacts", Doc::array()},
            {"closed", nullptr},
            {"decision", {{"log_seq", 2}, {"text", "Nothing is decided about this yet."}}},
            {"evidence", Doc::array()},
            {"gates", gates},
            {"group", "layout"},
            {"id", id},
            {"imported_status", nullptr},
            {"kind", "candidate"},
            {"missing", Doc::array()},
            {"name", "Experiment " + id},
            {"scope", {{"archs", {"sm_90a"}}, {"eligible", nullptr}}},
            {"skipped", Doc::array()},
            {"source",
             {{"digest", nullptr},
              {"entry", {"k"}},
              {"paths", Doc::array()},
              {"state", "not_started"}}},
            {"status", status}};
  }
  static void Cite(Doc& record, const std::string& digest, const char* role = "result") {
    record["evidence"].push_back({{"invalid_log_seq", nullptr},
                                  {"invalid_reason", nullptr},
                                  {"role", role},
                                  {"sha256", digest},
                                  {"valid", true},
                                  {"vid", nullptr}});
  }
  static void Judge(Doc& record, const char* gate, const char* verdict,
                    const std::vector<std::string>& evidence, const char* device_class = "sm_90a") {
    if (record["gates"][gate].is_null()) record["gates"][gate] = Doc::array();
    record["gates"][gate].push_back({{"class", device_class},
                                     {"evidence", evidence},
                                     {"log_seq", 2},
                                     {"reason", "the interval decided"},
                                     {"verdict", verdict},
                                     {"workloads", {"canonical"}}});
  }
  Doc Envelope(const std::string& id, const char* kind, const char* target) {
    const std::string now = ClosureDigest(store_, {"h3rt/k/new.cu"}).value();
    return {
        {"schema", "lab.evidence/1"},
        {"kind", kind},
        {"origin", "measured"},
        {"word", "executed"},
        {"experiment", id},
        {"vid", "fused"},
        {"target", target},
        {"subject",
         {{"source_paths", {"h3rt/k/new.cu"}}, {"source_digest", now}, {"baseline", nullptr}}},
        {"workload", {{"id", "canonical"}, {"generator", "splitmix64/1"}}},
        {"environment", {{"class", {{"device", "NVIDIA H200"}}}}},
        {"invocation", {{"start_us", 1}}},
        {"harness",
         {{"source_digest", HarnessDigest(store_).value()}, {"policy_digest", DigestOf(policy_)}}},
        {"plan", nullptr},
        {"body", Doc::object()}};
  }
  std::string AddEvidence(const NewEvidence& evidence) {
    return WriteEvidence(store_, evidence).value();
  }

  std::string AddPair(const std::string& id, double effect, uint64_t seed,
                      const char* origin = "measured", bool stale = false) {
    NewEvidence pair{.envelope = Envelope(id, "timing_pair", "sm_90a"), .blobs = {}};
    SimulatedRun run{
        .noise = Noise::kSpikes, .processes = 6, .quads = 60, .effect = effect, .sample_sd = 0.004};
    const std::vector<Sample> samples = Simulate(run, seed);
    pair.envelope["origin"] = origin;
    if (stale) pair.envelope["subject"]["source_digest"] = std::string(64, '0');
    pair.envelope["plan"] = {{"gate", "isolated"}, {"min_gain_ppm", 10000}};
    pair.envelope["body"] = {{"mode", "batched"},
                             {"samples_blob", "samples"},
                             {"statistics", PairStatisticsDoc(AnalysePair(samples, 1))}};
    pair.blobs["samples"] = PackSamples(samples);
    return AddEvidence(pair);
  }
  std::string AddResource(const std::string& id, const char* target, int64_t registers,
                          int64_t spill) {
    NewEvidence resource{.envelope = Envelope(id, "resource", target), .blobs = {}};
    for (const char* symbol : {"_ZN4h3rt11FusedKernelILi4EEEvPKfPf", "_ZN4h3rt9TwoPassesEvPf"}) {
      resource.envelope["body"]["kernels"].push_back({{"symbol", symbol},
                                                      {"registers", registers++},
                                                      {"stack_bytes", 0},
                                                      {"spill_store_bytes", spill},
                                                      {"spill_load_bytes", spill * 2},
                                                      {"static_shared_bytes", 1024},
                                                      {"constant_bytes", 560},
                                                      {"ctas_per_sm", nullptr},
                                                      {"limiter", "registers"}});
    }
    return AddEvidence(resource);
  }

  void Commit(const std::vector<Doc>& records, Doc entry, const std::string& now) {
    const auto seq = lab::Commit(
        store_,
        [&](const Registry&, const Log&, int64_t) -> absl::StatusOr<Change> {
          return Change{.entry = entry, .records = records};
        },
        now);
    ASSERT_TRUE(seq.ok()) << seq.status();
  }

  // A small laboratory: judged, stale, imported, closed and awkward records.
  void Fill(int64_t plain = 3, int64_t timings = 2) {
    std::vector<Doc> records;
    Doc fused = RecordOf("elem-fused-residual-rmsnorm", "research_retained");
    gain_ = AddPair("elem-fused-residual-rmsnorm", 0.031, 1);
    const std::string hopper = AddResource("elem-fused-residual-rmsnorm", "sm_90a", 40, 0);
    const std::string spark = AddResource("elem-fused-residual-rmsnorm", "sm_121a", 48, 8);
    for (const std::string& digest : {gain_, hopper, spark}) Cite(fused, digest);
    Judge(fused, "build", "pass", {hopper});
    Judge(fused, "correct", "pass", {hopper});
    Judge(fused, "isolated", "pass", {gain_});
    Judge(fused, "build", "pass", {spark}, "sm_121a");
    fused["decision"]["text"] = "Faster by {ev:" + gain_ +
                                "/body/statistics/ratio_e9} at {ev:" + gain_ +
                                "/body/statistics/candidate_p50_ps}.";
    fused["imported_status"] = "production_accepted";
    fused["source"]["state"] = "present";
    fused["source"]["paths"] = {"h3rt/k/new.cu"};
    records.push_back(fused);

    Doc slow = RecordOf("qkv-to-sage-fused", "performance_rejected");
    const std::string stale = AddPair("qkv-to-sage-fused", 0.002, 2, "measured", true);
    Cite(slow, stale);
    Judge(slow, "isolated", "fail", {stale});
    slow["closed"] = {{"rule", "Do not repeat unchanged."},
                      {"reopen", {{"conditions", {"another producer pipeline"}}}}};
    slow["skipped"].push_back({{"gate", "block"}, {"because_gate", "isolated"}});
    records.push_back(slow);

    Doc old = RecordOf("sage-p0-early-k-prefetch", "incomplete");
    Cite(old, AddPair("sage-p0-early-k-prefetch", -0.003, 3, "imported"));
    old["imported_status"] = "performance_rejected";
    records.push_back(old);

    Doc awkward = RecordOf("awkward", "quality_rejected");
    awkward["name"] = "a | b `c` <script>alert(1)</script> \u202Eevil\u200F & \"q\"";
    awkward["decision"]["text"] =
        "{ev:0123456789/body} and {ev:" + gain_ + "/body/none} [x](y) *z*";
    awkward["artifacts"].push_back({{"path", "docs/a b`|.md"}, {"exists", true}});
    awkward["missing"].push_back({{"blocker", true}, {"what", "Source | lost"}});
    awkward["missing"].push_back(
        {{"blocker", false}, {"what", "its place"}, {"why", "not_applicable"}});
    awkward["missing"].push_back({{"blocker", false}, {"what", "timing"}, {"why", "not_run"}});
    Cite(awkward, std::string(64, 'f'));
    records.push_back(awkward);
    for (int64_t i = 0; i < plain; ++i) {
      records.push_back(
          RecordOf("layout-variant-number-" + std::to_string(100 + i),
                   kStatusMeanings[static_cast<size_t>(i % 7 == 0 ? 6 : 5 + i % 2)].status));
    }
    for (int64_t i = 2; i < timings; ++i) {
      const std::string id = "extra-timing-" + std::to_string(100 + i);
      records.push_back(RecordOf(id, "incomplete"));
      Cite(records.back(),
           AddPair(id, 0.01 * static_cast<double>(i % 5), static_cast<uint64_t>(i)));
    }
    Doc entry = EmptyEntry("import", "Everything");
    entry["actions"] = {"Read | `pages`", "<b>Nothing</b> was run"};
    Commit(records, entry, "2026-08-26T10:00:00.000000000Z");
    slow["name"] = "Closed at last";
    Doc close = EmptyEntry("close", "Fused QKV to Sage");
    close["decision"] = "Below the threshold.";
    close["projections"].push_back({{"high", 207000000}, {"low", 180000000}, {"unit", "ns"}});
    Commit({slow}, close, "2026-08-27T11:30:00.000000000Z");
  }

  std::map<std::string, std::string> Render() {
    auto pages = RenderPages(store_);
    EXPECT_TRUE(pages.ok()) << pages.status();
    return pages.ok() ? *pages : std::map<std::string, std::string>{};
  }

  Store store_;
  Doc policy_;
  std::string gain_;
};

int64_t CountOf(std::string_view text, std::string_view part) {
  int64_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

// Every element closed in order, as XML wants it. Returns the first fault.
std::string WhyNotNested(const std::string& html) {
  static const std::set<std::string> kVoid = {"meta", "link", "br", "wbr", "!DOCTYPE", "input"};
  std::vector<std::string> open;
  for (size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    const size_t end = html.find('>', at);
    if (end == std::string::npos) return "a tag without end";
    const bool closes = html[at + 1] == '/';
    const size_t from = at + (closes ? 2 : 1);
    const std::string name = html.substr(from, html.find_first_of(" >/\n", from) - from);
    if (closes) {
      if (open.empty() || open.back() != name) {
        return "</" + name + "> closes <" + (open.empty() ? "nothing" : open.back()) + ">";
      }
      open.pop_back();
    } else if (!kVoid.contains(name) && html[end - 1] != '/') {
      open.push_back(name);
      if (name == "script" || name == "style") {
        at = html.find("</" + name, end) - 1;
        continue;
      }
    }
    at = end;
  }
  return open.empty() ? "" : "<" + open.back() + "> stays open";
}

TEST_F(Pages, TheSameStoreGivesTheSameBytesAndOtherPlacesTheSamePages) {
  Fill();
  const auto pages = Render();
  EXPECT_EQ(pages, Render());
  EXPECT_EQ(pages.size(), 4u);
  const Store other{.root = store_.root + "-moved"};
  fs::rename(store_.root, other.root);
  EXPECT_EQ(RenderPages(other).value(), pages);
  fs::rename(other.root, store_.root);
}

TEST_F(Pages, TotalsAreTheRowsThatArePrinted) {
  Fill(11);
  const std::string page = Render()[kRegistryPage];
  std::map<std::string, int64_t> rows, totals;
  const std::regex row("\\n\\| (?:`[a-z0-9-]+`) \\| .*? \\| `([a-z_]+)` \\| ");
  for (auto it = std::sregex_iterator(page.begin(), page.end(), row); it != std::sregex_iterator();
       ++it) {
    ++rows[(*it)[1]];
  }
  const std::string block = page.substr(page.find("## Totals"));
  const std::regex total("\\| `([a-z_]+)` \\| ([0-9]+) \\|");
  for (auto it = std::sregex_iterator(block.begin(), block.end(), total);
       it != std::sregex_iterator(); ++it) {
    if ((*it)[2] != "0") totals[(*it)[1]] = std::stoll((*it)[2]);
  }
  EXPECT_EQ(rows, totals);
  EXPECT_EQ(CountOf(page, "| **Total** | **15** |"), 1);
  for (const StatusMeaning& entry : kStatusMeanings) {
    EXPECT_NE(block.find("`" + std::string(entry.status) + "`"), std::string::npos);
  }
}

TEST_F(Pages, TextOfRecordsIsNeverMarkup) {
  Fill();
  const auto pages = Render();
  const std::string& md = pages.at(kRegistryPage);
  const std::string& html = pages.at(kHtmlPage);
  for (const auto& [file, text] : pages) {
    EXPECT_EQ(text.find("<script>alert"), std::string::npos) << file;
    EXPECT_EQ(text.find("\u202E"), std::string::npos) << file;
    EXPECT_EQ(text.find("\u200F"), std::string::npos) << file;
    EXPECT_EQ(text.find("<b>Nothing"), std::string::npos) << file;
  }
  EXPECT_NE(
      md.find(
          "a \\| b \\`c\\` &lt;script&gt;alert(1)&lt;/script&gt; \\\\u{202E}evil\\\\u{200F} &amp; "
          "\"q\" |"),
      std::string::npos);
  EXPECT_NE(html.find("&lt;script&gt;alert(1)"), std::string::npos);
  EXPECT_NE(html.find("\\u{202E}evil"), std::string::npos);
  EXPECT_NE(md.find("\\[x\\](y) \\*z\\*"), std::string::npos);
  EXPECT_NE(md.find("(../docs/a%20b%60%7C.md)"), std::string::npos);
  EXPECT_NE(md.find("| Source \\| lost; timing (not blocking) |"), std::string::npos);
  // A row has ten cells whatever its texts hold.
  const size_t start = md.find("\n| `awkward`") + 1;
  std::string row = md.substr(start, md.find('\n', start) - start);
  row = std::regex_replace(row, std::regex("\\\\."), "");
  EXPECT_EQ(CountOf(row, "|"), 11);
}

TEST_F(Pages, ReferencesAreFilledWithUnitsAndLinks) {
  Fill();
  const auto pages = Render();
  const std::string link = "benchmarks/nvidia-h200/elem-fused-residual-rmsnorm/" + gain_ + ".json";
  const std::regex md("Faster by \\[1\\.0[0-9]{3}\\]\\(\\.\\./" + link + "\\) at \\[[0-9.]+ us\\]");
  EXPECT_TRUE(std::regex_search(pages.at(kRegistryPage), md));
  const std::regex html("Faster by <a href=\"\\.\\./" + link + "\">1\\.<wbr>0[0-9]{3}</a>");
  EXPECT_TRUE(std::regex_search(pages.at(kHtmlPage), html));
  EXPECT_NE(pages.at(kRegistryPage).find("\\[no evidence 0123456789\\] and"), std::string::npos);
  EXPECT_NE(pages.at(kRegistryPage).find("\\[no value /body/none\\]"), std::string::npos);
}

TEST_F(Pages, TheHtmlPageIsOneNestedFileWithATableForEveryPlot) {
  Fill();
  const std::string html = Render()[kHtmlPage];
  EXPECT_EQ(WhyNotNested(html), "");
  EXPECT_EQ(html.find("http"), std::string::npos);
  EXPECT_EQ(html.find(" src="), std::string::npos);
  EXPECT_EQ(html.find("@import"), std::string::npos);
  // Status, gates, gains, three runs, resources, log.
  EXPECT_EQ(CountOf(html, "<figure"), 8);
  EXPECT_EQ(CountOf(html, "<summary>The same as a table</summary>\n<div class=\"box\""), 8);
  const int64_t plots = CountOf(html, "<svg class=\"plot\"");
  EXPECT_EQ(CountOf(html, "role=\"img\" aria-labelledby="), plots);
  EXPECT_EQ(CountOf(html, "<desc id="), plots);
  EXPECT_GT(plots, 8);
  std::set<std::string> ids;
  const std::regex id(" id=\"([^\"]+)\"");
  for (auto it = std::sregex_iterator(html.begin(), html.end(), id); it != std::sregex_iterator();
       ++it) {
    EXPECT_TRUE(ids.insert((*it)[1]).second) << (*it)[1];
  }
  const std::regex target("(?:href=\"#|aria-labelledby=\")([^\" ]+)");
  for (auto it = std::sregex_iterator(html.begin(), html.end(), target);
       it != std::sregex_iterator(); ++it) {
    EXPECT_TRUE(ids.contains((*it)[1])) << (*it)[1];
  }
  EXPECT_LT(html.size(), 200000u);
}

TEST_F(Pages, EveryFileLinkLeadsToAFile) {
  Fill();
  Write("docs/a b`|.md", "x");
  ASSERT_TRUE(WritePages(store_).ok());
  const std::string html = ReadFile(store_.PathOf(kHtmlPage)).value();
  const std::regex link("href=\"([^#\"][^\"]*)\"");
  int64_t links = 0;
  for (auto it = std::sregex_iterator(html.begin(), html.end(), link); it != std::sregex_iterator();
       ++it) {
    std::string target = (*it)[1];
    if (target.starts_with("data:")) continue;
    for (size_t at = target.find('%'); at != std::string::npos; at = target.find('%', at + 1)) {
      target.replace(at, 3, 1, static_cast<char>(std::stoi(target.substr(at + 1, 2), nullptr, 16)));
    }
    EXPECT_TRUE(fs::exists(store_.PathOf("research/" + target))) << target;
    ++links;
  }
  EXPECT_GT(links, 10);
}

TEST_F(Pages, EmptyPlotsNameTheCommandThatFillsThem) {
  Commit({RecordOf("only", "incomplete")}, EmptyEntry("entry", "One"),
         "2026-08-26T10:00:00.000000000Z");
  const std::string html = Render()[kHtmlPage];
  EXPECT_EQ(CountOf(html, "<p class=\"empty\">"), 4);  // gates, gains, runs, resources
  EXPECT_NE(html.find("<code>h3rt lab gate ID</code>"), std::string::npos);
  EXPECT_NE(html.find("<code>h3rt lab import bundle OUT</code>"), std::string::npos);
  EXPECT_EQ(WhyNotNested(html), "");
}

TEST_F(Pages, StatesAreToldByWordsAndShapes) {
  Fill();
  const auto pages = Render();
  EXPECT_NE(pages.at(kRegistryPage).find("isolated fail (stale)"), std::string::npos);
  EXPECT_NE(pages.at(kRegistryPage).find("1 of 1 stale (source: changed since)"),
            std::string::npos);
  EXPECT_NE(pages.at(kRegistryPage).find("| imported |"), std::string::npos);
  EXPECT_NE(pages.at(kRegistryPage).find("block gate skipped on purpose after isolated"),
            std::string::npos);
  const std::string& html = pages.at(kHtmlPage);
  EXPECT_EQ(CountOf(html, "class=\"mark stale\"><title>"), 1);
  EXPECT_EQ(CountOf(html, "class=\"mark current\"><title>"), 1);
  EXPECT_EQ(CountOf(html, "class=\"mark imported\"><title>"), 1);
}

TEST_F(Pages, ManyTimingsAreThinnedAndThePageSaysSo) {
  Fill(70, 60);
  const std::string html = Render()[kHtmlPage];
  EXPECT_LT(html.size(), 1500000u);
  EXPECT_NE(html.find("one quad in 2 drawn"), std::string::npos);
  EXPECT_EQ(html.find("all drawn"), std::string::npos);
  EXPECT_EQ(WhyNotNested(html), "");
}

TEST_F(Pages, TheLogPageGroupsByDateAndListsClosedWork) {
  Fill();
  const std::string page = Render()[kLogPage];
  EXPECT_LT(page.find("\n## 2026-08-26\n"), page.find("\n## 2026-08-27\n"));
  EXPECT_NE(
      page.find(
          "| Fused QKV to Sage | Below the threshold. | Do not repeat unchanged.<br>Condition: "
          "another producer pipeline | 3 |"),
      std::string::npos);
  EXPECT_NE(page.find("Projected, not measured:\n\n- between 180.0 ms and 207.0 ms"),
            std::string::npos);
  EXPECT_NE(page.find("- Read \\| \\`pages\\`\n"), std::string::npos);
}

TEST_F(Pages, TheManifestHoldsOnlyAcceptedWorkOnCurrentEvidence) {
  Fill();
  EXPECT_EQ(Render()[kManifestFile], "{\"entries\":[],\"schema\":\"lab.manifest/1\"}\n");
  Doc good = RecordOf("accepted", "production_accepted");
  const std::string evidence = AddPair("accepted", 0.05, 9);
  const std::string old = AddPair("accepted", 0.05, 10, "measured", true);
  Cite(good, evidence);
  Cite(good, old);
  for (const char* gate : kGates) Judge(good, gate, "pass", {evidence});
  for (const char* gate : kGates) Judge(good, gate, "pass", {evidence, old}, "sm_121a");
  Commit({good}, EmptyEntry("status", "Accepted"), "2026-08-28T10:00:00.000000000Z");
  const std::string text = Render()[kManifestFile];
  EXPECT_EQ(CountOf(text, "\"id\":\"accepted\""), 1);
  EXPECT_NE(text.find("\"class\":\"sm_90a\""), std::string::npos);
  Write("h3rt/k/new.cu", "int changed;\n");
  EXPECT_EQ(Render()[kManifestFile], "{\"entries\":[],\"schema\":\"lab.manifest/1\"}\n");
}

TEST_F(Pages, WritingIsIdempotentAndADifferenceIsFoundAtItsLine) {
  Fill();
  EXPECT_EQ(WritePages(store_).value().size(), 4u);
  EXPECT_EQ(WritePages(store_).value().size(), 0u);
  Findings none;
  CheckPages(store_, none);
  EXPECT_EQ(none.errors(), 0);
  std::string page = ReadFile(store_.PathOf(kRegistryPage)).value();
  const size_t at = page.find("| **Total** | **7**");
  ASSERT_NE(at, std::string::npos);
  page.replace(at, 19, "| **Total** | **8**");
  Write(kRegistryPage, page);
  fs::remove(store_.PathOf(kLogPage));
  Findings findings;
  CheckPages(store_, findings);
  ASSERT_EQ(findings.errors(), 2);
  const std::vector<Finding> sorted = findings.Sorted();
  EXPECT_EQ(sorted[0].code, "E-REPORT");
  EXPECT_EQ(sorted[0].file, kRegistryPage);
  EXPECT_EQ(sorted[0].line, std::count(page.begin(), page.end(), '\n'));
  EXPECT_NE(sorted[0].message.find("**8**"), std::string::npos);
  EXPECT_EQ(sorted[1].file, kLogPage);
  // A page that only lacks its end, and one with more than there should be.
  page.replace(at, 19, "| **Total** | **7**");
  for (const std::string& other : {page.substr(0, page.size() - 1), page + "x\n", std::string()}) {
    Write(kRegistryPage, other);
    Findings each;
    CheckPages(store_, each);
    EXPECT_TRUE(each.Has("E-REPORT"));
  }
}

TEST_F(Pages, ABrokenStoreGivesNoPage) {
  Fill();
  ASSERT_TRUE(WritePages(store_).ok());
  for (const auto& entry : fs::recursive_directory_iterator(store_.PathOf("benchmarks"))) {
    if (entry.path().extension() == ".z") Write(fs::relative(entry.path(), store_.root), "broken");
  }
  EXPECT_FALSE(RenderPages(store_).ok());
  Findings findings;
  CheckPages(store_, findings);
  EXPECT_TRUE(findings.Has("E-REPORT"));
}

TEST(Svg, NumbersAreWrittenFromIntegers) {
  EXPECT_EQ(FixedText(-1, 1000, 2), "0.00");
  EXPECT_EQ(FixedText(-5, 1000, 2), "-0.01");
  EXPECT_EQ(FixedText(999999, 1000000, 2), "1.00");
  EXPECT_EQ(FixedText(INT64_MIN, 1, 0), "-9223372036854775808");
  EXPECT_EQ(FixedText(INT64_MAX, 1000000000000, 6), "9223372.036855");
  EXPECT_EQ(CountText(-1234567), "-1,234,567");
  EXPECT_EQ(CountText(999), "999");
  EXPECT_EQ(TimeText(14426000), "14.43 us");
  EXPECT_EQ(TimeText(999), "999 ps");
  EXPECT_EQ(TimeText(255447000000000), "255.4 s");
  EXPECT_EQ(Shorten("ééééé", 3), "é…é");
}

TEST(Svg, AxesHoldTheirValuesAndTicks) {
  const Axis axis(-20000, 50000, 0);
  EXPECT_EQ(axis.At(-100000), 0);
  EXPECT_EQ(axis.At(100000), kFullWidth);
  EXPECT_EQ(axis.Ticks(5), (std::vector<int64_t>{-20000, 0, 20000, 40000}));
  const Axis wide(-(int64_t{1} << 53), int64_t{1} << 53, 4);
  EXPECT_EQ(wide.At(0), kFullWidth / 2);
  EXPECT_LE(wide.Ticks(5).size(), 6u);
  const Axis point(7, 7, 4);
  EXPECT_EQ(point.At(7), kFullWidth / 2);
  EXPECT_EQ(Axis(11, 19, 0).Ticks(3), (std::vector<int64_t>{10, 15, 20}));
}

TEST(Svg, WhatNobodySeesIsSpelledOut) {
  EXPECT_EQ(SpellOut("a\tb\u200Bc\uFEFFd\u2066e"), "a\\u{0009}b\\u{200B}c\\u{FEFF}d\\u{2066}e");
  EXPECT_EQ(EscapeHtml("<&>\"'\nx", true), "&lt;&amp;&gt;&quot;&#39;<br>x");
  EXPECT_EQ(EscapeMarkdown("a|b\nc`d"), "a\\|b<br>c\\`d");
  EXPECT_EQ(EscapeHtml("naïve 中文 ✓"), "naïve 中文 ✓");
  // Broken sequences end with the text, not beyond it.
  EXPECT_FALSE(SpellOut("\xE2\x80").empty());
  EXPECT_FALSE(SpellOut("\xFF").empty());
}

}  // namespace
}  // namespace h3rt::lab
