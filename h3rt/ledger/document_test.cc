#include "h3rt/ledger/document.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace h3rt::lab {
namespace {

// The one finding of a text that must be refused: "CODE line:column".
std::string Refused(const std::string& text) {
  Findings findings;
  EXPECT_FALSE(ParseDocument(text, "f", 1, findings).has_value()) << text;
  EXPECT_EQ(findings.errors(), 1) << text;
  if (findings.errors() == 0) return "";
  const Finding first = findings.Sorted()[0];
  return first.code + " " + std::to_string(first.line) + ":" + std::to_string(first.column);
}

TEST(Document, ReadsWhatItWritesAndSortsKeys) {
  Findings findings;
  const std::optional<Doc> doc = ParseDocument(
      R"({"b":[1,-9007199254740991,null,true,false,{}],"a":"\u00e9 \ud83d\ude00 \"\\\/"})", "f", 1,
      findings);
  ASSERT_TRUE(doc.has_value());
  const std::string text = CanonicalText(*doc);
  EXPECT_EQ(text,
            "{\"a\":\"\xc3\xa9 \xf0\x9f\x98\x80 \\\"\\\\/\","
            "\"b\":[1,-9007199254740991,null,true,false,{}]}");
  EXPECT_EQ(ParseDocument(text, "f", 1, findings), doc);
  EXPECT_EQ(DigestOf(*doc), DigestOfText(text));
  EXPECT_EQ(DigestWithout(*doc, "b"),
            DigestOfText("{\"a\":\"\xc3\xa9 \xf0\x9f\x98\x80 \\\"\\\\/\"}"));
  EXPECT_EQ(findings.errors() + findings.warnings(), 0);
}

TEST(Document, RefusesWithCodeLineAndColumn) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "E-JSON 1:1"},
      {"{\"a\":1", "E-JSON 1:7"},
      {"{\"a\":1}\n{}", "E-JSON 2:1"},
      {"{\n\"a\" 1}", "E-JSON 2:5"},
      {"[1,]", "E-JSON 1:4"},
      {"{\"a\":1,}", "E-JSON 1:8"},
      {"{a:1}", "E-JSON 1:2"},
      {"[01]", "E-JSON 1:2"},
      {"tru", "E-JSON 1:1"},
      {"[\"a", "E-JSON 1:4"},
      {"[\"\\q\"]", "E-JSON 1:4"},
      {"[\"\\u12\"]", "E-JSON 1:7"},
      {"{\"a\":1,\n \"a\":2}", "E-JSON-DUPKEY 2:2"},
      {"[1.5]", "E-JSON-NUM 1:2"},
      {"[1e3]", "E-JSON-NUM 1:2"},
      {"[NaN]", "E-JSON-NUM 1:2"},
      {"[-Infinity]", "E-JSON-NUM 1:2"},
      {"[-0]", "E-JSON-NUM 1:2"},
      {"[9007199254740992]", "E-JSON-NUM 1:2"},
      {"[99999999999999999999999999]", "E-JSON-NUM 1:2"},
      {"\xef\xbb\xbf{}", "E-JSON-ENC 1:1"},
      {"[\"\xff\"]", "E-JSON-ENC 1:3"},
      {"[\"\xc0\x80\"]", "E-JSON-ENC 1:3"},
      {"[\"\xed\xa0\x80\"]", "E-JSON-ENC 1:3"},
      {"[\"\\ud800\"]", "E-JSON-ENC 1:3"},
      {"[\"\\udc00 \"]", "E-JSON-ENC 1:3"},
      {"[\"\\ud800\\u0041\"]", "E-JSON-ENC 1:3"},
      {"[\"\\u0000\"]", "E-JSON-ENC 1:3"},
      {"[\"\\n\"]", "E-JSON-ENC 1:3"},
      {"[\"\x01\"]", "E-JSON-ENC 1:3"},
      {"[\"\xc2\x85\"]", "E-JSON-ENC 1:3"},
      {std::string("[\0]", 3), "E-JSON-ENC 1:2"},
      {std::string("{}\0", 3), "E-JSON-ENC 1:3"},
      {"{\"a\":1}\r\n", "E-EOL 1:8"},
      {"{\"a\":\n<<<<<<< HEAD\n1}", "E-MERGE 2:1"},
      {std::string(65, '[') + std::string(65, ']'), "E-JSON-LIMIT 1:65"},
      {"[\"" + std::string((1 << 20) + 1, 'a') + "\"]", "E-JSON-LIMIT 1:2"},
  };
  for (const auto& [text, wanted] : cases) EXPECT_EQ(Refused(text), wanted) << text.substr(0, 40);
}

TEST(Document, AllowsWhatLiesAtTheLimits) {
  Findings findings;
  const std::string deep = std::string(64, '[') + std::string(64, ']');
  EXPECT_TRUE(ParseDocument(deep, "f", 1, findings).has_value());
  const std::string longest = "[\"" + std::string(1 << 20, 'a') + "\"]";
  EXPECT_TRUE(ParseDocument(longest, "f", 1, findings).has_value());
}

TEST(Document, NamesBothPlacesOfADuplicateKeyAndThePointerOfANumber) {
  Findings findings;
  ParseDocument("{\"x\":{\"a\":1,\n\"a\":2}}", "f", 7, findings);
  EXPECT_NE(findings.Sorted()[0].message.find("the first is at 7:7"), std::string::npos);
  EXPECT_EQ(findings.Sorted()[0].line, 8);
  Findings numbers;
  ParseDocument("{\"x/y\":[0,{\"z~\":0.5}]}", "f", 1, numbers);
  EXPECT_EQ(numbers.Sorted()[0].pointer, "/x~1y/1/z~0");
}

TEST(Document, TellsEveryConflictMarker) {
  Findings findings;
  ParseDocument("<<<<<<< a\n{}\n=======\n[]\n>>>>>>> b\n", "f", 1, findings);
  EXPECT_EQ(findings.errors(), 3);
  EXPECT_EQ(findings.counts().at("E-MERGE"), 3);
}

// Random documents come back as they were, and no damage makes the reader fail in another way than
// by a finding.
Doc RandomDoc(std::mt19937_64& random, int depth) {
  switch (random() % (depth > 0 ? 7 : 5)) {
    case 0:
      return static_cast<int64_t>(random() % 9007199254740992) * (random() % 2 == 0 ? 1 : -1);
    case 1:
      return nullptr;
    case 2:
      return random() % 2 == 0;
    case 3:
      return std::string(random() % 9, static_cast<char>('a' + random() % 26)) + "\xc3\xa9\"\\/|";
    case 4:
      return "";
    case 5: {
      Doc list = Doc::array();
      for (size_t i = random() % 4; i > 0; --i) list.push_back(RandomDoc(random, depth - 1));
      return list;
    }
    default: {
      Doc object = Doc::object();
      for (size_t i = random() % 4; i > 0; --i) {
        object["k" + std::to_string(random() % 9)] = RandomDoc(random, depth - 1);
      }
      return object;
    }
  }
}

TEST(Document, RandomDocumentsComeBackAndDamageIsAFinding) {
  std::mt19937_64 random(20260826);
  for (int i = 0; i < 2000; ++i) {
    const Doc doc = RandomDoc(random, 5);
    std::string text = CanonicalText(doc);
    Findings findings;
    EXPECT_EQ(ParseDocument(text, "f", 1, findings), std::optional<Doc>(doc)) << text;
    text[random() % text.size()] ^= static_cast<char>(1 << (random() % 8));
    const std::optional<Doc> damaged = ParseDocument(text, "f", 1, findings);
    EXPECT_EQ(damaged.has_value(), findings.errors() == 0) << text;
    if (damaged && CanonicalText(*damaged) == text) {
      EXPECT_NE(*damaged, doc);
    }
  }
}

TEST(Finding, CodesAreUniqueAndSayHowToMend) {
  std::set<std::string> seen;
  for (const CodeEntry& entry : CodeTable()) {
    EXPECT_TRUE(seen.insert(entry.code).second) << entry.code;
    EXPECT_EQ(entry.severity == Severity::kWarning, entry.code[0] == 'W') << entry.code;
    EXPECT_GT(std::string(entry.mend).size(), 10u) << entry.code;
    EXPECT_EQ(FindCode(entry.code), &entry);
  }
  EXPECT_EQ(FindCode("E-NO-SUCH"), nullptr);
}

TEST(Finding, CountsExactlyBeyondTheCapAndKeepsErrorsBesideWarnings) {
  Findings findings(3);
  for (int i = 0; i < 1000; ++i) findings.Add({.code = "W-NUMBER", .line = i, .message = "w"});
  for (int i = 0; i < 100000; ++i) findings.Add({.code = "E-TYPE", .line = 9 - i, .message = "e"});
  EXPECT_EQ(findings.errors(), 100000);
  EXPECT_EQ(findings.warnings(), 1000);
  EXPECT_EQ(findings.Sorted().size(), 6u);
  EXPECT_EQ(findings.exit_code(), ExitCode::kAnswerIsNo);
}

TEST(Finding, SortsAndTellsInOneLine) {
  Findings findings;
  findings.Add({.code = "E-TYPE",
                .file = "b",
                .line = 2,
                .column = 3,
                .pointer = "/x",
                .message = "got \"a\nb\xff\x1b[31m\""});
  findings.Add({.code = "E-IO", .file = "a", .message = "gone"});
  const std::vector<Finding> sorted = findings.Sorted();
  EXPECT_EQ(Findings::ToText(sorted[0]),
            "E-IO a: gone; mend: restore the file, or run where it is");
  EXPECT_TRUE(Findings::ToText(sorted[1]).starts_with(
      "E-TYPE b:2:3 /x: got \"a\\x0ab\\xff\\x1b[31m\"; mend: "))
      << Findings::ToText(sorted[1]);
  EXPECT_EQ(findings.ToJson()["errors"], 2);
  EXPECT_EQ(findings.ToJson()["findings"][0]["code"], "E-IO");
}

TEST(Finding, GraverCodesGiveTheExitCode) {
  Findings findings;
  EXPECT_EQ(findings.exit_code(), ExitCode::kDone);
  findings.Add({.code = "W-STALE", .message = "w"});
  EXPECT_EQ(findings.exit_code(), ExitCode::kDone);
  findings.Add({.code = "E-IO", .message = "e"});
  EXPECT_EQ(findings.exit_code(), ExitCode::kNotFoundOrIo);
  findings.Add({.code = "E-LOG-CHAIN", .message = "e"});
  findings.Add({.code = "E-TYPE", .message = "e"});
  EXPECT_EQ(findings.exit_code(), ExitCode::kDataLoss);
}

TEST(Finding, StrictRaisesAndMuteSilences) {
  Findings strict;
  strict.SetStrict(true);
  strict.Mute("E-TYPE");
  strict.Add({.code = "E-TYPE", .message = "muted"});
  strict.Add({.code = "W-STALE", .message = "raised"});
  strict.Add({.code = "W-AGED", .message = "stays a warning"});
  EXPECT_EQ(strict.errors(), 1);
  EXPECT_EQ(strict.warnings(), 1);
  EXPECT_FALSE(strict.Has("E-TYPE"));
}

}  // namespace
}  // namespace h3rt::lab
