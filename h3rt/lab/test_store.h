// A small, good store in a fresh folder, for tests that spoil it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "h3rt/base/file.h"
#include "h3rt/lab/test_documents.h"
#include "h3rt/lab/validate.h"
#include "h3rt/ledger/log.h"

namespace h3rt::lab {

inline std::string FreshFolder(const std::string& name) {
  static std::atomic<int> count = 0;
  const std::string path = testing::TempDir() + "/" + name + "-" + std::to_string(::getpid()) +
                           "-" + std::to_string(count++);
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path;
}

struct TestStore {
  Store store;
  Doc policy;
  std::string evidence;  // digest of the one piece, of alpha-one

  // alpha-one is research_retained: it compiled without spills. beta-two is incomplete.
  TestStore() {
    static const TestStore* const base = new TestStore(0);
    store.root = FreshFolder("lab-store");
    policy = base->policy;
    evidence = base->evidence;
    std::filesystem::copy(base->store.root, store.root, std::filesystem::copy_options::recursive);
  }
  TestStore(const TestStore&) = delete;
  TestStore& operator=(const TestStore&) = delete;
  ~TestStore() { std::filesystem::remove_all(store.root); }

  void Write(const std::string& relative, const std::string& text) const {
    const std::string path = store.PathOf(relative);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream out(path, std::ios::binary);  // not flushed to disk, as that takes long
    out << text;
    EXPECT_TRUE(out.good()) << path;
  }
  std::string Read(const std::string& relative) const {
    return ReadFile(store.PathOf(relative)).value_or("");
  }
  void Replace(const std::string& file, const std::string& from, const std::string& to) const {
    std::string text = Read(file);
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    Write(file, text.replace(at, from.size(), to));
  }
  void Remove(const std::string& relative) const {
    EXPECT_TRUE(std::filesystem::remove(store.PathOf(relative)));
  }

  std::string AddEvidence(Doc envelope, std::map<std::string, std::string> blobs = {}) const {
    const absl::StatusOr<std::string> digest =
        WriteEvidence(store, {.envelope = std::move(envelope), .blobs = std::move(blobs)});
    EXPECT_TRUE(digest.ok()) << digest.status();
    return digest.value_or("");
  }
  std::string EvidenceFile(const std::string& digest) const {
    Findings findings;
    return LoadEvidence(store, findings).at(digest).file;
  }

  // Records with their log entry, as every command writes them.
  absl::StatusOr<int64_t> Put(const Doc& entry, const std::vector<Doc>& records) const {
    return Commit(store, [&](const Registry&, const Log&, int64_t) -> absl::StatusOr<Change> {
      return Change{.entry = entry, .records = records};
    });
  }
  Doc Get(const std::string& id) const {
    Findings findings;
    return LoadRegistry(store, findings).value().Find(id)->json;
  }
  // Changes one record, with its log entry.
  void Change1(const std::string& id, const std::function<void(Doc&)>& change) const {
    Doc record = Get(id);
    change(record);
    const absl::StatusOr<int64_t> seq = Put(EmptyEntry("entry", "A change"), {record});
    EXPECT_TRUE(seq.ok()) << seq.status();
  }
  // A second policy, as after an edit with `lab gate --reevaluate`.
  void ChangePolicy(const std::function<void(Doc&)>& change) {
    change(policy);
    Write(kPolicyFile, policy.dump(1) + "\n");
    Change1("beta-two", [](Doc& record) { record["name"] = "Another name"; });
  }

  Findings Check(const std::string& muted = "", bool filesystem = true) const {
    Findings findings;
    findings.Mute(muted);
    Validate(store, {.filesystem = filesystem}, findings);
    return findings;
  }

 private:
  explicit TestStore(int) {
    store.root = FreshFolder("lab-base");
    Write("kernels/add.h", "int header = 1;\n");
    Write("kernels/add.cu", "#include \"kernels/add.h\"\nint add = 1;\n");
    policy = Doc::parse(ReadFile(std::string(H3RT_SOURCE_DIR) + "/research/policy.json").value());
    policy["required_ids"] = {"alpha-one"};
    Write(kPolicyFile, policy.dump(1) + "\n");
    evidence = AddEvidence(TestEnvelope(store, "alpha-one"), {{"log", "compiled\n"}});
    Doc resource = TestEnvelope(store, "alpha-one");
    resource["kind"] = "resource";
    resource["body"] = {{"compiler", "nvcc 13.0"},
                        {"ptxas", "ptxas 13.0"},
                        {"flags", "-O3"},
                        {"kernels",
                         {{{"symbol", "add_kernel"},
                           {"code_sha256", nullptr},
                           {"code_bytes", 1024},
                           {"registers", 32},
                           {"stack_bytes", 0},
                           {"spill_store_bytes", 0},
                           {"spill_load_bytes", 0},
                           {"static_shared_bytes", 0},
                           {"constant_bytes", 528},
                           {"barriers", 0},
                           {"max_threads", 256},
                           {"ctas_per_sm", 8},
                           {"limiter", "registers"}}}}};
    Doc alpha = TestRecord("alpha-one", "research_retained");
    alpha["scope"]["non_claims"] = {"No speed is claimed."};
    alpha["evidence"] = {Cited(evidence), Cited(AddEvidence(resource))};
    const absl::StatusOr<int64_t> seq =
        Put(EmptyEntry("entry", "The store of tests"), {alpha, TestRecord("beta-two")});
    EXPECT_TRUE(seq.ok()) << seq.status();
    Write(kReadmeFile,
          "# h3rt\n\n## Claims\n\n| claim | evidence |\n|---|---|\n| it compiles | ev:" +
              evidence.substr(0, 12) + " |\n\n## More\n");
  }
};

inline std::string TextOf(const Findings& findings) {
  std::string out;
  for (const Finding& finding : findings.Sorted()) out += Findings::ToText(finding) + "\n";
  return out;
}

}  // namespace h3rt::lab
