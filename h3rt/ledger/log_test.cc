#include "h3rt/ledger/log.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "h3rt/base/file.h"
#include "h3rt/base/hash.h"
#include "h3rt/ledger/commit.h"

namespace h3rt::lab {
namespace {

namespace fs = std::filesystem;

// A store of its own, removed at the end.
class LogTest : public testing::Test {
 protected:
  LogTest() {
    std::string folder = testing::TempDir() + "/lab_log_XXXXXX";
    EXPECT_NE(::mkdtemp(folder.data()), nullptr);
    store_.root = folder;
    fs::create_directories(store_.PathOf("research"));
  }
  ~LogTest() override {
    std::error_code ignored;
    fs::remove_all(store_.root, ignored);
  }

  std::string Read(const char* file) const {
    absl::StatusOr<std::string> text = ReadFile(store_.PathOf(file));
    return text.ok() ? *text : "";
  }
  void Write(const char* file, std::string_view text) const {
    EXPECT_TRUE(WriteFileAtomically(store_.PathOf(file), text).ok());
  }

  absl::StatusOr<int64_t> Add(std::vector<Doc> records, const Doc& entry,
                              const std::string& now = "") const {
    return Commit(
        store_,
        [&](const Registry&, const Log&, int64_t) {
          return Change{.entry = entry, .records = records};
        },
        now);
  }
  // `count` changes of one record, so `count` + 1 entries with the genesis.
  void Fill(int count) const {
    for (int i = 0; i < count; ++i) {
      const Doc record = {{"id", "first-record"}, {"version", i}};
      ASSERT_TRUE(Add({record}, EmptyEntry("entry", "Change of a record")).ok());
    }
  }
  Findings Check() const {
    Findings findings;
    EXPECT_TRUE(LoadLog(store_, findings).has_value());
    return findings;
  }

  Store store_;
};

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at) + 1;
    lines.push_back(text.substr(at, end - at));
    at = end;
  }
  return lines;
}

std::string Joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line;
  return out;
}

// Text and HEAD of a log with these entries: seq, prev and hash are set, everything else is as
// given.
std::pair<std::string, std::string> Chain(std::vector<Doc> entries) {
  std::string prev(64, '0');
  std::string text;
  int64_t seq = 0;
  for (Doc& entry : entries) {
    entry["seq"] = ++seq;
    entry["prev"] = prev;
    if (At(entry, "ts").is_null()) entry["ts"] = "2026-08-26T10:00:00.000000000Z";
    entry["hash"] = std::string(64, '0');
    prev = LogHash(entry);
    entry["hash"] = prev;
    text += CanonicalText(entry) + "\n";
  }
  const Doc head = {{"bytes", text.size()}, {"hash", prev}, {"seq", seq}};
  return {text, CanonicalText(head) + "\n"};
}

Findings Parse(const std::vector<Doc>& entries, const std::string& now = "") {
  const auto [text, head] = Chain(entries);
  Findings findings;
  ParseLog(text, head, now, findings);
  return findings;
}

std::string First(const Findings& findings) {
  const std::vector<Finding> sorted = findings.Sorted();
  return sorted.empty() ? "" : Findings::ToText(sorted.front());
}

TEST_F(LogTest, NoLogIsAnEmptyLog) {
  Findings findings;
  const std::optional<Log> log = LoadLog(store_, findings);
  ASSERT_TRUE(log.has_value());
  EXPECT_TRUE(log->entries.empty());
  EXPECT_EQ(log->head_hash, std::string(64, '0'));
  EXPECT_EQ(findings.errors(), 0);
}

TEST_F(LogTest, TheFirstCommitWritesTheGenesisToo) {
  EXPECT_EQ(Add({}, EmptyEntry("entry", "First")).value(), 2);
  Findings findings;
  const Log log = LoadLog(store_, findings).value();
  ASSERT_EQ(log.entries.size(), 2u);
  EXPECT_EQ(TextAt(log.entries[0].json, "kind"), "genesis");
  EXPECT_EQ(TextAt(log.entries[0].json, "title"), "The log of h3rt");
  EXPECT_EQ(log.head_seq, 2);
  EXPECT_EQ(findings.errors() + findings.warnings(), 0);
  const Doc head = ParseHead(Read(kHeadFile));
  EXPECT_EQ(IntAt(head, "bytes"), static_cast<int64_t>(Read(kLogFile).size()));
  EXPECT_EQ(TextAt(head, "hash"), log.head_hash);
}

TEST_F(LogTest, TheHashIsOfTheTagThePreviousHashAndTheCanonicalEntry) {
  Fill(1);
  const std::vector<std::string> lines = Lines(Read(kLogFile));
  Doc entry = Doc::parse(lines[1]);
  const std::string prev = TextAt(Doc::parse(lines[0]), "hash");
  EXPECT_EQ(TextAt(entry, "prev"), prev);
  const std::string hash = TextAt(entry, "hash");
  entry.erase("hash");
  Sha256 sha;
  sha.Update(std::string_view("lab.log/1\0", 10));
  for (size_t i = 0; i < 64; i += 2) {
    const char byte = static_cast<char>(std::stoi(prev.substr(i, 2), nullptr, 16));
    sha.Update(std::string_view(&byte, 1));
  }
  sha.Update(entry.dump());
  EXPECT_EQ(sha.Finish(), hash);
}

TEST_F(LogTest, AnyFlippedBitOfLogOrHeadIsFound) {
  Fill(2);
  const std::string log = Read(kLogFile);
  const std::string head = Read(kHeadFile);
  const auto errors = [](const std::string& text, const std::string& head_text) {
    Findings findings;
    ParseLog(text, head_text, "", findings);
    return findings.errors();
  };
  ASSERT_EQ(errors(log, head), 0);
  for (size_t i = 0; i < log.size(); ++i) {
    for (const int bit : {0, 3, 5, 7}) {
      std::string flipped = log;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      ASSERT_GT(errors(flipped, head), 0) << "byte " << i << " bit " << bit;
    }
  }
  for (size_t i = 0; i < head.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = head;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      ASSERT_GT(errors(log, flipped), 0) << "HEAD byte " << i << " bit " << bit;
    }
  }
}

TEST_F(LogTest, EditedInsertedRemovedAndReorderedLinesNameTheFirstBadSeq) {
  Fill(4);
  const std::vector<std::string> lines = Lines(Read(kLogFile));
  ASSERT_EQ(lines.size(), 5u);
  std::vector<std::string> edited = lines;
  const size_t place = edited[2].find("Change");
  edited[2][place] = 'c';
  std::vector<std::string> removed = lines;
  removed.erase(removed.begin() + 2);
  std::vector<std::string> inserted = lines;
  inserted.insert(inserted.begin() + 2, lines[1]);
  std::vector<std::string> reordered = lines;
  std::swap(reordered[2], reordered[3]);
  for (const auto& bad : {edited, removed, inserted, reordered}) {
    Write(kLogFile, Joined(bad));
    const Findings findings = Check();
    EXPECT_TRUE(findings.Has("E-LOG-CHAIN"));
    EXPECT_NE(First(findings).find(":3: seq 3: "), std::string::npos) << First(findings);
    EXPECT_EQ(findings.exit_code(), ExitCode::kDataLoss);
    EXPECT_EQ(Add({}, EmptyEntry("entry", "More")).status().code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(RepairLog(store_).status().code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(Read(kLogFile), Joined(bad));  // nothing was mended quietly
  }
}

TEST_F(LogTest, ARewrittenEntryWithARightHashBreaksTheChainBehindIt) {
  Fill(3);
  std::vector<std::string> lines = Lines(Read(kLogFile));
  Doc entry = Doc::parse(lines[1]);
  entry["title"] = "Another title";
  entry["hash"] = LogHash(entry);
  lines[1] = CanonicalText(entry) + "\n";
  Write(kLogFile, Joined(lines));
  const Findings findings = Check();
  EXPECT_TRUE(findings.Has("E-LOG-CHAIN"));
  EXPECT_NE(First(findings).find("seq 3"), std::string::npos) << First(findings);
}

TEST_F(LogTest, ALogCutAtAnyByteIsFound) {
  Fill(2);
  const std::string log = Read(kLogFile);
  const std::string head = Read(kHeadFile);
  for (size_t size = 0; size < log.size(); ++size) {
    Findings findings;
    ParseLog(log.substr(0, size), head, "", findings);
    ASSERT_TRUE(findings.Has("E-LOG-CUT")) << size;
    ASSERT_FALSE(findings.Has("E-LOG-TORN")) << size;
  }
  fs::remove(store_.PathOf(kLogFile));
  EXPECT_TRUE(Check().Has("E-LOG-CUT"));
  EXPECT_EQ(Recover(store_).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(LogTest, HeadThatIsNoneOfThisLogIsFound) {
  Fill(2);
  Doc head = ParseHead(Read(kHeadFile));
  head["hash"] = std::string(64, 'a');
  Write(kHeadFile, CanonicalText(head) + "\n");
  EXPECT_TRUE(Check().Has("E-LOG-CHAIN"));
  EXPECT_EQ(Recover(store_).status().code(), absl::StatusCode::kOk);  // nothing is left to do
  EXPECT_EQ(Add({}, EmptyEntry("entry", "More")).status().code(), absl::StatusCode::kDataLoss);
  fs::remove(store_.PathOf(kHeadFile));
  EXPECT_TRUE(Check().Has("E-LOG-CUT"));
  EXPECT_EQ(Recover(store_).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(LogTest, AHeadThatLagsIsAdvanced) {
  Fill(1);
  const std::string old_head = Read(kHeadFile);
  ASSERT_TRUE(Add({}, EmptyEntry("entry", "Second")).ok());
  const std::string head = Read(kHeadFile);
  Write(kHeadFile, old_head);
  EXPECT_EQ(Check().errors(), 0);
  EXPECT_EQ(Recover(store_).value(), "HEAD advanced to entry 3");
  EXPECT_EQ(Read(kHeadFile), head);
  EXPECT_EQ(Recover(store_).value(), "");
}

TEST_F(LogTest, ATornLineIsRefusedThenMovedToQuarantine) {
  Fill(2);
  const std::string sound = Read(kLogFile);
  const std::string torn = "{\"actions\":[\"half an entry";
  Write(kLogFile, sound + torn);
  const Findings findings = Check();
  EXPECT_TRUE(findings.Has("E-LOG-TORN"));
  EXPECT_EQ(findings.errors(), 1);
  const absl::Status refused = Add({}, EmptyEntry("entry", "More")).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(MessageOf(refused).find("log repair"), std::string::npos);

  EXPECT_NE(RepairLog(store_).value().find(std::to_string(torn.size()) + " bytes moved"),
            std::string::npos);
  EXPECT_EQ(Check().errors() + Check().warnings(), 0);
  const std::string repaired = Read(kLogFile);
  EXPECT_EQ(repaired.substr(0, sound.size()), sound);
  const Doc entry = Doc::parse(Lines(repaired).back());
  EXPECT_EQ(TextAt(entry, "kind"), "quarantine");
  EXPECT_EQ(TextAt(At(entry, "quarantine"), "sha256"), DigestOfText(torn));
  EXPECT_EQ(Read(TextAt(At(entry, "quarantine"), "file").c_str()), torn);
  EXPECT_EQ(RepairLog(store_).value(), "");
  EXPECT_EQ(Add({}, EmptyEntry("entry", "More")).value(), 5);
}

TEST_F(LogTest, RepairNeverTouchesALineThatEndsInALineFeed) {
  Fill(1);
  const std::string text = Read(kLogFile) + "{\"no\":\"entry\"}\n";
  Write(kLogFile, text);
  EXPECT_TRUE(Check().Has("E-LOG-CHAIN"));
  EXPECT_EQ(RepairLog(store_).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Read(kLogFile), text);
}

TEST_F(LogTest, ATornGenesisIsKeptAndTheLogBeginsAgain) {
  fs::create_directories(fs::path(store_.PathOf(kLogFile)).parent_path());
  Write(kLogFile, "{\"act");
  EXPECT_TRUE(Check().Has("E-LOG-TORN"));
  const std::string said = RepairLog(store_).value();
  EXPECT_NE(said.find(DigestOfText("{\"act")), std::string::npos) << said;
  EXPECT_EQ(Add({}, EmptyEntry("entry", "First")).value(), 2);
  EXPECT_EQ(Check().errors(), 0);
}

TEST_F(LogTest, AnOldHeadIsProvedAPrefix) {
  Fill(1);
  const Doc old_head = ParseHead(Read(kHeadFile));
  Fill(3);
  Findings findings;
  const Log log = LoadLog(store_, findings).value();
  VerifyAgainst(log, old_head, "HEAD~1", findings);
  EXPECT_EQ(findings.errors(), 0);

  Doc foreign = old_head;
  foreign["hash"] = std::string(64, 'b');
  VerifyAgainst(log, foreign, "HEAD~1", findings);
  EXPECT_TRUE(findings.Has("E-LOG-CHAIN"));
  Doc moved = old_head;
  moved["bytes"] = IntAt(old_head, "bytes") - 1;
  Findings by_length;
  VerifyAgainst(log, moved, "HEAD~1", by_length);
  EXPECT_TRUE(by_length.Has("E-LOG-CHAIN"));
  Doc longer = old_head;
  longer["seq"] = 99;
  Findings cut;
  VerifyAgainst(log, longer, "printed report", cut);
  EXPECT_TRUE(cut.Has("E-LOG-CUT"));
  EXPECT_NE(First(cut).find("printed report"), std::string::npos);
}

TEST_F(LogTest, AWholeRewriteIsFoundOnlyAgainstAnAnchor) {
  Fill(3);
  const Doc anchor = ParseHead(Read(kHeadFile));
  fs::remove(store_.PathOf(kLogFile));
  fs::remove(store_.PathOf(kHeadFile));
  fs::remove(store_.PathOf(kRegistryFile));
  Fill(4);
  Findings findings;
  const Log log = LoadLog(store_, findings).value();
  EXPECT_EQ(findings.errors(), 0);
  VerifyAgainst(log, anchor, "an old page", findings);
  EXPECT_TRUE(findings.Has("E-LOG-CHAIN"));
}

TEST_F(LogTest, TimesMayNotRunAheadAndRunBackOnlyALittle) {
  const auto at = [](const char* ts) {
    Doc entry = EmptyEntry("entry", "At a time");
    entry["ts"] = ts;
    return entry;
  };
  Doc genesis = EmptyEntry("genesis", "The log");
  genesis["ts"] = "2026-08-26T10:05:00.000000000Z";
  const std::string now = "2026-08-26T11:00:00.000000000Z";
  const Findings little = Parse({genesis, at("2026-08-26T10:00:00.000000000Z")}, now);
  EXPECT_EQ(little.errors() + little.warnings(), 0);
  const Findings back = Parse({genesis, at("2026-08-26T09:59:59.999999999Z")}, now);
  EXPECT_TRUE(back.Has("W-TIME"));
  EXPECT_EQ(back.errors(), 0);
  const Findings near = Parse({genesis, at("2026-08-26T11:10:00.000000000Z")}, now);
  EXPECT_EQ(near.errors(), 0);
  const Findings ahead = Parse({genesis, at("2026-08-26T11:10:00.000000001Z")}, now);
  EXPECT_TRUE(ahead.Has("E-TIME"));
}

TEST_F(LogTest, FormOfEntries) {
  const Doc genesis = EmptyEntry("genesis", "The log");
  const Doc good = EmptyEntry("entry", "An entry");
  EXPECT_EQ(Parse({genesis, good}).errors(), 0);
  const auto code = [&](const char* field, const Doc& value) {
    Doc entry = good;
    entry[field] = value;
    return First(Parse({genesis, entry})).substr(0, 12);
  };
  EXPECT_EQ(code("kind", "remark").substr(0, 6), "E-ENUM");
  EXPECT_EQ(code("status", "accepted"), "E-STATUS-ENU");
  EXPECT_EQ(code("actions", "a text").substr(0, 6), "E-TYPE");
  EXPECT_EQ(code("records", Doc::array({{{"id", "x"}}})).substr(0, 7), "E-FIELD");
  EXPECT_EQ(code("ts", "2026-08-26").substr(0, 6), "E-TYPE");
  EXPECT_EQ(code("extra", 1), "E-FIELD-UNKN");
  Doc less = good;
  less.erase("forbids");
  EXPECT_TRUE(Parse({genesis, less}).Has("E-FIELD-MISSING"));
  EXPECT_TRUE(Parse({good}).Has("E-LOG-FORM"));              // no genesis
  EXPECT_TRUE(Parse({genesis, genesis}).Has("E-LOG-FORM"));  // two
  Doc wide = good;
  wide["decision"] = std::string(70'000, 'x');
  EXPECT_TRUE(Parse({genesis, wide}).Has("E-LOG-FORM"));
}

TEST_F(LogTest, NumbersInOurOwnTextCiteEvidence) {
  const Doc genesis = EmptyEntry("genesis", "The log");
  Doc entry = EmptyEntry("entry", "An entry");
  entry["actions"] = Doc::array({"It took 4.17 ms."});
  EXPECT_TRUE(Parse({genesis, entry}).Has("W-NUMBER"));
  entry["kind"] = "import";
  EXPECT_FALSE(Parse({genesis, entry}).Has("W-NUMBER"));
}

TEST_F(LogTest, ALineThatIsNotCanonicalIsFoundThoughItsHashIsRight) {
  auto [text, head] = Chain({EmptyEntry("genesis", "The log"), EmptyEntry("entry", "An entry")});
  text.insert(text.find(",\"alternatives\""), " ");
  Findings findings;
  ParseLog(text, head, "", findings);
  EXPECT_TRUE(findings.Has("E-LOG-CHAIN"));
}

TEST_F(LogTest, CommitWritesRecordsByIdWithTheirDigestsInTheEntry) {
  const Doc b = {{"id", "b-record"}, {"text", "b"}};
  const Doc a = {{"id", "a-record"}, {"text", "a"}};
  ASSERT_TRUE(Add({b, a}, EmptyEntry("entry", "Two records")).ok());
  Findings findings;
  const Registry registry = LoadRegistry(store_, findings).value();
  EXPECT_EQ(findings.errors(), 0);
  ASSERT_EQ(registry.records.size(), 2u);
  EXPECT_EQ(registry.records[0].id(), "a-record");

  Doc changed = registry.records[0].json;
  changed["text"] = "another";
  ASSERT_TRUE(Add({changed, b}, EmptyEntry("entry", "One of them changes")).ok());
  const Log log = LoadLog(store_, findings).value();
  const Doc& changes = At(log.entries.back().json, "records");
  ASSERT_EQ(changes.size(), 1u) << "b is as it was";
  EXPECT_EQ(TextAt(changes[0], "before"), TextAt(registry.records[0].json, "record_digest"));
  EXPECT_EQ(TextAt(log.entries.back().json, "registry"), DigestOfText(Read(kRegistryFile)));
  const Registry after = LoadRegistry(store_, findings).value();
  EXPECT_EQ(TextAt(changes[0], "after"), TextAt(after.Find("a-record")->json, "record_digest"));
  EXPECT_EQ(findings.errors(), 0);
}

TEST_F(LogTest, TheHeaderFollowsThePolicyAlsoWithoutRecords) {
  Write(kPolicyFile, "{\"version\":1}");
  Fill(1);
  const auto policy = [&] {
    Findings findings;
    return TextAt(LoadRegistry(store_, findings)->header, "policy_digest");
  };
  EXPECT_EQ(policy(), DigestOf({{"version", 1}}));
  Write(kPolicyFile, "{\"version\":2}");
  ASSERT_TRUE(Add({}, EmptyEntry("decision", "Another policy")).ok());
  EXPECT_EQ(policy(), DigestOf({{"version", 2}}));
  EXPECT_EQ(TextAt(Doc::parse(Lines(Read(kLogFile)).back()), "registry"),
            DigestOfText(Read(kRegistryFile)));
}

TEST_F(LogTest, WhatCannotBeWrittenLeavesEverythingAsItWas) {
  Fill(1);
  const std::string log = Read(kLogFile);
  const std::string registry = Read(kRegistryFile);
  const Doc entry = EmptyEntry("entry", "Refused");
  const Doc record = {{"id", "x-record"}, {"text", "x"}};
  Doc other = record;
  other["text"] = "y";
  Doc control = entry;
  control["decision"] = "a\tb";
  Doc wide = entry;
  for (int i = 0; i < 9; ++i) wide["actions"].push_back(std::string(7'900, 'x'));
  Doc untitled = entry;
  untitled["title"] = nullptr;
  const absl::Status refused[] = {
      Add({record, other}, entry).status(),
      Add({{{"text", "no id"}}}, entry).status(),
      Add({{{"id", "x-record"}, {"text", "\x01"}}}, entry).status(),
      Add({{{"id", "x-record"}, {"text", "\xff"}}}, entry).status(),
      Add({}, control).status(),
      Add({record}, wide).status(),
      Add({}, untitled).status(),
      Add({}, EmptyEntry("genesis", "Again")).status(),
      Add({}, EmptyEntry("remark", "No kind")).status(),
      Add({}, entry, "2200-01-01T00:00:00.000000000Z").status(),
      Add({}, entry, "yesterday").status(),
  };
  for (const absl::Status& status : refused) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  }
  const absl::Status own = Commit(store_, [](const Registry&, const Log&, int64_t) {
                             return absl::StatusOr<Change>(absl::NotFoundError("no such record"));
                           }).status();
  EXPECT_EQ(own.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Read(kLogFile), log);
  EXPECT_EQ(Read(kRegistryFile), registry);
  EXPECT_FALSE(fs::exists(store_.PathOf(kRegistryFile) + ".next"));
}

TEST_F(LogTest, ARegistryThatCannotBeReadIsNotWrittenOver) {
  Fill(2);
  const std::string bad = Read(kRegistryFile) + "<<<<<<< ours\n";
  Write(kRegistryFile, bad);
  EXPECT_EQ(Add({}, EmptyEntry("entry", "More")).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Read(kRegistryFile), bad);
  fs::remove(store_.PathOf(kRegistryFile));  // the log names one
  EXPECT_FALSE(Add({}, EmptyEntry("entry", "More")).ok());
}

TEST_F(LogTest, ASecondWriterIsTurnedAway) {
  Fill(1);
  const std::string log = Read(kLogFile);
  absl::StatusOr<FileLock> lock = TakeWriterLock(store_);
  ASSERT_TRUE(lock.ok());
  const absl::Status status = Add({}, EmptyEntry("entry", "More")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kLocked);
  const pid_t child = ::fork();  // another process sees the lock too
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::_exit(static_cast<int>(ExitCodeOf(Add({}, EmptyEntry("entry", "More")).status())));
  }
  int state = 0;
  ASSERT_EQ(::waitpid(child, &state, 0), child);
  // The child has the descriptor too, but asks for one of its own.
  EXPECT_EQ(WEXITSTATUS(state), static_cast<int>(ExitCode::kLocked));
  EXPECT_EQ(Read(kLogFile), log);
  EXPECT_EQ(Recover(store_).value(), "");  // readers do not need the lock
  { const FileLock done = *std::move(lock); }
  EXPECT_EQ(Add({}, EmptyEntry("entry", "More")).value(), 3);
}

TEST_F(LogTest, ManyWritersLoseNothing) {
  constexpr int kWriters = 4;
  constexpr int kEach = 5;
  std::vector<pid_t> children;
  for (int w = 0; w < kWriters; ++w) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const std::string id = "writer-" + std::to_string(w);
      for (int i = 0; i < kEach;) {
        const absl::Status status =
            Add({{{"id", id}, {"count", i}}}, EmptyEntry("entry", "By " + id)).status();
        if (status.ok()) ++i;
        if (!status.ok() && !absl::IsAborted(status)) ::_exit(1);
        ::usleep(500);
      }
      ::_exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int state = 0;
    ASSERT_EQ(::waitpid(child, &state, 0), child);
    EXPECT_EQ(state, 0);
  }
  Findings findings;
  EXPECT_EQ(LoadLog(store_, findings)->entries.size(), size_t{kWriters * kEach + 1});
  EXPECT_EQ(LoadRegistry(store_, findings)->records.size(), size_t{kWriters});
  EXPECT_EQ(findings.errors(), 0) << First(findings);
}

TEST_F(LogTest, TheCommitThatIsCheckedOutIsTheParent) {
  const std::string commit = "0123456789abcdef0123456789abcdef01234567";
  fs::create_directories(store_.PathOf(".git/refs/heads"));
  Write(".git/HEAD", "ref: refs/heads/main\n");
  Write(".git/refs/heads/main", commit + "\n");
  ASSERT_TRUE(Add({}, EmptyEntry("entry", "First")).ok());
  EXPECT_EQ(TextAt(Doc::parse(Lines(Read(kLogFile)).back()), "commit_parent"), commit);
}

TEST_F(LogTest, WhatTheLogCannotBeReadFromIsAnError) {
  fs::create_directories(store_.PathOf(kLogFile));  // a folder
  Findings findings;
  EXPECT_FALSE(LoadLog(store_, findings).has_value());
  EXPECT_TRUE(findings.Has("E-IO"));
  EXPECT_EQ(findings.exit_code(), ExitCode::kNotFoundOrIo);
}

}  // namespace
}  // namespace h3rt::lab
