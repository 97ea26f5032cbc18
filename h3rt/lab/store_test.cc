#include "h3rt/ledger/store.h"

#include <sys/stat.h>

#include <random>

#include "h3rt/lab/test_store.h"

namespace h3rt::lab {
namespace {

namespace fs = std::filesystem;

TEST(Store, BlobsComeBackAndDamageIsDataLoss) {
  std::mt19937 random(1);
  for (const size_t size : {size_t{0}, size_t{1}, size_t{65535}, size_t{65536}, size_t{200001}}) {
    std::string raw(size, '\0');
    for (char& c : raw) c = static_cast<char>(random() % 7);
    const std::string stored = Deflate(raw);
    EXPECT_EQ(Inflate(stored, size).value(), raw);
    EXPECT_EQ(Inflate(stored, size + 1).status().code(), absl::StatusCode::kDataLoss);
    EXPECT_TRUE(size == 0 || !Inflate(stored, size - 1).ok());
    EXPECT_FALSE(Inflate(stored + "x", size).ok());
    EXPECT_FALSE(Inflate(stored.substr(0, stored.size() - 1), size).ok());
    EXPECT_FALSE(Inflate("", size).ok());
  }
  EXPECT_FALSE(Inflate(Deflate("a"), UINT64_MAX).ok());
}

TEST(Store, PathsThatLeaveTheRootAreRefusedBeforeTheyAreOpened) {
  const Store store{.root = FreshFolder("lab-paths")};
  const std::string outside = FreshFolder("lab-outside");
  fs::create_directories(store.root + "/in/side");
  fs::create_symlink(outside, store.root + "/out");
  fs::create_symlink("in", store.root + "/link");
  fs::create_symlink("nowhere", store.root + "/broken");
  fs::create_symlink("loop", store.root + "/loop");
  ASSERT_EQ(::mkfifo((store.root + "/pipe").c_str(), 0600), 0);
  const auto passes = [&](const std::string& path) {
    Findings findings;
    const bool ok = CheckPath(store, path, "f", 1, "/p", findings);
    EXPECT_EQ(findings.Has("E-PATH"), !ok) << path;
    return ok;
  };
  for (const char* good : {"in/side", "not/there", "link/side", "in"}) EXPECT_TRUE(passes(good));
  for (const char* bad : {"", "/etc/passwd", "../x", "in/../x", "in/..", "./in", "in//x", "in/",
                          "out", "out/x", "broken", "loop", "pipe", "a\\b"}) {
    EXPECT_FALSE(passes(bad)) << bad;
  }
}

TEST(Store, IdsAreLowerCaseWordsJoinedByHyphens) {
  for (const char* good : {"abc", "a-b", "sage-p0-2", "000"}) EXPECT_TRUE(IsId(good)) << good;
  for (const char* bad : {"", "ab", "-ab", "ab-", "a--b", "A-b", "a_b", "a/b", "a b"}) {
    EXPECT_FALSE(IsId(bad)) << bad;
  }
  EXPECT_FALSE(IsId(std::string(81, 'a')));
}

TEST(Store, EvidenceLiesUnderItsClass) {
  Doc envelope = {{"word", "executed"}, {"environment", {{"class", {{"device", "NVIDIA H200"}}}}}};
  EXPECT_EQ(DeviceFolder(envelope), "nvidia-h200");
  envelope["environment"]["class"]["device"] = " NVIDIA GB10 (DGX Spark)/.. ";
  EXPECT_EQ(DeviceFolder(envelope), "nvidia-gb10-dgx-spark");
  envelope["environment"]["class"]["device"] = nullptr;
  EXPECT_EQ(DeviceFolder(envelope), "host");
  envelope["word"] = "assembled";
  EXPECT_EQ(DeviceFolder(envelope), "nvcc");
}

TEST(Store, EvidenceIsWrittenOnceAndReadBack) {
  const TestStore t;
  const Doc envelope = TestEnvelope(t.store, "alpha-one");
  const std::string digest = t.AddEvidence(envelope, {{"log", "compiled\n"}});
  EXPECT_EQ(digest, t.evidence);
  Findings findings;
  const std::map<std::string, Evidence> all = LoadEvidence(t.store, findings);
  ASSERT_EQ(all.size(), 2u);
  const Evidence& one = all.at(digest);
  EXPECT_EQ(one.file, "benchmarks/nvcc/alpha-one/" + digest + ".json");
  EXPECT_EQ(ReadBlob(t.store, one, "log", findings), "compiled\n");
  EXPECT_EQ(findings.errors(), 0);
  EXPECT_FALSE(ReadBlob(t.store, one, "other", findings).has_value());
  EXPECT_TRUE(findings.Has("E-SAMPLES"));
}

TEST(Store, ABlobThatIsStoredAlreadyKeepsItsBytes) {
  const TestStore t;
  // Another compression of the same content, as another version of zlib would give.
  const std::string stream = {'\x78', '\x01', '\x01', '\x02', '\x00', '\xfd', '\xff',
                              'h',    'i',    '\x01', '\x3b', '\x00', '\xd2'};
  ASSERT_EQ(Inflate(stream, 2).value(), "hi");
  Doc envelope = TestEnvelope(t.store, "beta-two");
  envelope["blobs"] = {{{"name", "log"},
                        {"sha256", DigestOfText(stream)},
                        {"bytes", stream.size()},
                        {"raw_bytes", 2},
                        {"encoding", "zlib"}}};
  const std::string digest = t.AddEvidence(envelope, {{"log", stream}});
  EXPECT_EQ(digest, DigestOf(envelope));
  Findings findings;
  EXPECT_EQ(ReadBlob(t.store, LoadEvidence(t.store, findings).at(digest), "log", findings), "hi");
}

TEST(Store, EvidenceThatCannotBeReadBackIsRefused) {
  const TestStore t;
  Doc envelope = TestEnvelope(t.store, "alpha-one");
  envelope["body"]["wall_ns"] = int64_t{1} << 60;
  EXPECT_FALSE(WriteEvidence(t.store, {.envelope = envelope, .blobs = {}}).ok());
  envelope = TestEnvelope(t.store, "../../outside");
  EXPECT_FALSE(WriteEvidence(t.store, {.envelope = envelope, .blobs = {}}).ok());
  EXPECT_FALSE(fs::exists(t.store.PathOf("../outside")));
  // What lies under the name already is never replaced.
  t.Write(t.EvidenceFile(t.evidence), "{}");
  envelope = TestEnvelope(t.store, "alpha-one");
  EXPECT_FALSE(
      WriteEvidence(t.store, {.envelope = envelope, .blobs = {{"log", "compiled\n"}}}).ok());
}

TEST(Store, RandomRegistriesComeBackAndOrderDoesNotChangeDigests) {
  std::mt19937 random(7);
  const Store store{.root = FreshFolder("lab-registry")};
  fs::create_directories(store.root + "/research");
  for (int round = 0; round < 30; ++round) {
    Registry registry;
    registry.header = {{"schema", "lab.registry/1"}, {"round", round}};
    for (int i = static_cast<int>(random() % 6); i > 0; --i) {
      Doc record = TestRecord("r" + std::to_string(random() % 1000) + "-x" + std::to_string(i));
      record["name"] = std::string(1 + random() % 50, 'n');
      RefreshDigest(record);
      registry.records.push_back({record, 0});
    }
    std::sort(registry.records.begin(), registry.records.end(),
              [](const Record& a, const Record& b) { return a.id() < b.id(); });
    const std::string text = RegistryText(registry);
    ASSERT_TRUE(WriteFileAtomically(store.PathOf(kRegistryFile), text).ok());
    Findings findings;
    const std::optional<Registry> again = LoadRegistry(store, findings);
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(findings.errors(), 0) << TextOf(findings);
    EXPECT_EQ(RegistryText(*again), text);
    for (const Record& record : again->records) {
      EXPECT_EQ(again->Find(record.id()), &record);
      EXPECT_EQ(TextAt(record.json, "record_digest"), DigestWithout(record.json, "record_digest"));
    }
    EXPECT_EQ(again->Find("zzz"), nullptr);
    std::reverse(registry.records.begin(), registry.records.end());
    ASSERT_TRUE(WriteFileAtomically(store.PathOf(kRegistryFile), RegistryText(registry)).ok());
    Findings reversed;
    const std::optional<Registry> turned = LoadRegistry(store, reversed);
    ASSERT_TRUE(turned.has_value());
    EXPECT_EQ(RegistryText(*turned), text);
    EXPECT_EQ(reversed.Has("E-ORDER"), registry.records.size() > 1);
    EXPECT_FALSE(reversed.Has("E-DIGEST"));
  }
}

// Every byte of log, evidence and blob, each changed in one bit.
TEST(Store, AnyFlippedByteIsFound) {
  const TestStore t;
  ASSERT_EQ(t.Check().errors(), 0) << TextOf(t.Check());
  Findings findings;
  const Evidence evidence = LoadEvidence(t.store, findings).at(t.evidence);
  const std::string blob = evidence.file.substr(0, evidence.file.rfind('/') + 1) +
                           evidence.json["blobs"][0]["sha256"].get<std::string>() + ".z";
  std::mt19937 random(3);
  for (const std::string& file : {std::string(kLogFile), std::string(kHeadFile),
                                  std::string(kRegistryFile), evidence.file, blob}) {
    const std::string text = t.Read(file);
    ASSERT_FALSE(text.empty()) << file;
    const size_t step = std::max<size_t>(1, text.size() / 100);
    for (size_t at = 0; at < text.size(); at += 1 + random() % step) {
      std::string damaged = text;
      damaged[at] ^= static_cast<char>(1 << (random() % 8));
      t.Write(file, damaged);
      Findings found;
      if (file == blob) {
        EXPECT_FALSE(ReadBlob(t.store, evidence, "log", found).has_value()) << at;
      } else {
        found = t.Check();
      }
      EXPECT_GT(found.errors(), 0) << file << " byte " << at;
    }
    t.Write(file, text);
  }
  EXPECT_EQ(t.Check().errors(), 0);
}

}  // namespace
}  // namespace h3rt::lab
