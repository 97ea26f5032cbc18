// Kills or fails every operation that changes a file, one by one, and looks at what is left. This
// program's own write, fsync, rename, unlink and ftruncate stand in for those of the C library.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <map>

#include "h3rt/base/file.h"
#include "h3rt/ledger/log.h"

namespace {

enum class Fault { kNone, kKill, kFail };
struct Plan {
  Fault fault = Fault::kNone;
  int at = 0;        // the operation that it happens at
  int quarters = 0;  // of a write's bytes that are written before
};
Plan plan;
int operations = 0;

// Whether this operation is the one. Does not return when it is to be killed.
bool Meets(const std::function<void()>& part) {
  if (plan.fault == Fault::kNone || operations++ != plan.at) return false;
  part();
  if (plan.fault == Fault::kKill) ::_exit(99);
  errno = EIO;
  return true;
}
bool Meets() {
  return Meets([] {});
}

}  // namespace

extern "C" {
ssize_t write(int fd, const void* bytes, size_t size) {
  const size_t part = size * static_cast<size_t>(plan.quarters) / 4;
  if (Meets([&] {
        if (part > 0) (void)::syscall(SYS_write, fd, bytes, part);
      })) {
    // A full disk: what fits is written and said.
    if (part > 0) return static_cast<ssize_t>(part);
    errno = ENOSPC;
    return -1;
  }
  return ::syscall(SYS_write, fd, bytes, size);
}
// A killed process loses nothing that it handed to the kernel, so nothing has to reach the disk
// here.
int fsync(int) { return Meets() ? -1 : 0; }
int rename(const char* from, const char* to) noexcept {
  return Meets() ? -1 : static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int unlink(const char* path) noexcept {
  return Meets() ? -1 : static_cast<int>(::syscall(SYS_unlinkat, AT_FDCWD, path, 0));
}
int ftruncate(int fd, off_t size) noexcept {
  return Meets() ? -1 : static_cast<int>(::syscall(SYS_ftruncate, fd, size));
}
}

namespace h3rt::lab {
namespace {

namespace fs = std::filesystem;
using Action = std::function<absl::Status(const Store&)>;

std::string TextOf(const Store& store, const char* file) {
  const absl::StatusOr<std::string> text = ReadFile(store.PathOf(file));
  return text.ok() ? *text : "";
}

absl::Status ChangeRecords(const Store& store) {
  return Commit(store,
                [](const Registry& registry, const Log&, int64_t seq) {
                  Change change{.entry = EmptyEntry("entry", "Change")};
                  const auto count = static_cast<int64_t>(registry.records.size());
                  change.records.push_back({{"id", "a-record"}, {"seq", seq}});
                  change.records.push_back({{"id", "new-" + std::to_string(count)}, {"seq", seq}});
                  return change;
                })
      .status();
}

// The same change each time: what it writes differs by the time alone.
absl::Status OnlyAnEntry(const Store& store) {
  return Commit(store,
                [](const Registry&, const Log&, int64_t) {
                  return Change{.entry = EmptyEntry("entry", "No record changes")};
                })
      .status();
}

class LogCrash : public testing::Test {
 protected:
  LogCrash() {
    std::string folder = testing::TempDir() + "/lab_crash_XXXXXX";
    EXPECT_NE(::mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    base_.root = folder + "/base";
    fs::create_directories(base_.PathOf("research"));
  }
  ~LogCrash() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  Store Copy(const Store& from, const char* name) const {
    const Store to{folder_ + "/" + name};
    fs::remove_all(to.root);
    fs::copy(from.root, to.root, fs::copy_options::recursive);
    return to;
  }

  // Runs an action in a child that meets the fault. Returns false when the plan's operation never
  // came: the action has fewer.
  static bool Meet(const Store& store, const Action& action, const Plan& fault) {
    const pid_t child = ::fork();
    EXPECT_GE(child, 0);
    if (child == 0) {
      plan = fault;
      const bool ok = action(store).ok();
      if (operations <= fault.at) ::_exit(ok ? 0 : 1);
      ::_exit(98);  // it met a failure and went on or gave up
    }
    int state = 0;
    EXPECT_EQ(::waitpid(child, &state, 0), child);
    EXPECT_TRUE(WIFEXITED(state));
    EXPECT_NE(WEXITSTATUS(state), 1);
    return WEXITSTATUS(state) != 0;
  }

  // Everything agrees: chain, HEAD, registry and the digests that entries name.
  static void ExpectSound(const Store& store) {
    Findings findings;
    const std::optional<Log> log = LoadLog(store, findings);
    ASSERT_TRUE(log.has_value());
    ASSERT_EQ(findings.errors(), 0) << Findings::ToText(findings.Sorted().front());
    EXPECT_EQ(log->head_seq, static_cast<int64_t>(log->entries.size()));
    EXPECT_FALSE(fs::exists(store.PathOf(kRegistryFile) + ".next"));
    if (log->entries.empty() || At(log->entries.back().json, "registry").is_null()) {
      EXPECT_FALSE(fs::exists(store.PathOf(kRegistryFile)));
      return;
    }
    EXPECT_EQ(TextAt(log->entries.back().json, "registry"),
              DigestOfText(TextOf(store, kRegistryFile)));
    const std::optional<Registry> registry = LoadRegistry(store, findings);
    ASSERT_TRUE(registry.has_value());
    ASSERT_EQ(findings.errors(), 0);
    std::map<std::string, std::string> covered;
    for (const LogEntry& entry : log->entries) {
      for (const Doc& change : At(entry.json, "records")) {
        covered[TextAt(change, "id")] = TextAt(change, "after");
      }
    }
    EXPECT_EQ(covered.size(), registry->records.size());
    for (const Record& record : registry->records) {
      EXPECT_EQ(covered[record.id()], TextAt(record.json, "record_digest"));
    }
  }

  // What the next command does: recovers, repairs where it is told to, and writes.
  static void ExpectRecovers(const Store& store, size_t before, std::map<size_t, int>& seen) {
    ASSERT_TRUE(Recover(store).ok());
    Findings findings;
    const Log log = LoadLog(store, findings).value();
    ASSERT_TRUE(log.fault.empty()) << log.fault;
    ASSERT_TRUE(log.entries.size() >= before) << "an entry was lost";
    ++seen[log.entries.size() - before];
    if (log.torn_bytes > 0) {
      const std::string sound = TextOf(store, kLogFile).substr(0, static_cast<size_t>(log.bytes));
      ASSERT_TRUE(RepairLog(store).ok());
      EXPECT_TRUE(TextOf(store, kLogFile).starts_with(sound));
    }
    ExpectSound(store);
    ASSERT_TRUE(ChangeRecords(store).ok());
    ExpectSound(store);
  }

  // Every operation of an action, with writes of nothing, a part and all of their bytes.
  int MeetAll(const Action& action, Fault fault, std::map<size_t, int>& seen) const {
    Findings ignored;
    const size_t before = LoadLog(base_, ignored)->entries.size();
    int most = 0;
    for (const int quarters : {0, 2, 4}) {
      for (int at = 0;; ++at) {
        const Store store = Copy(base_, "work");
        const bool met = Meet(store, action, {fault, at, quarters});
        ExpectRecovers(store, before, seen);
        if (testing::Test::HasFatalFailure()) {
          ADD_FAILURE() << "operation " << at << ", " << quarters << " quarters written";
          return most;
        }
        most = std::max(most, at);
        if (!met) break;
      }
    }
    return most;
  }

  std::string folder_;
  Store base_;
};

TEST_F(LogCrash, AKilledChangeIsThereOrNot) {
  ASSERT_TRUE(ChangeRecords(base_).ok());
  ASSERT_TRUE(ChangeRecords(base_).ok());
  std::map<size_t, int> seen;
  // The new registry, the line, HEAD and two renames, each flushed with its folder.
  EXPECT_GE(MeetAll(ChangeRecords, Fault::kKill, seen), 9);
  EXPECT_EQ(seen.size(), 2u);
  EXPECT_GT(seen[0], 6);
  EXPECT_GT(seen[1], 6);
}

TEST_F(LogCrash, AKilledEntryIsThereOrNot) {
  ASSERT_TRUE(ChangeRecords(base_).ok());
  std::map<size_t, int> seen;
  EXPECT_GE(MeetAll(OnlyAnEntry, Fault::kKill, seen), 5);
  EXPECT_EQ(seen.size(), 2u);
}

TEST_F(LogCrash, AKilledFirstChangeIsThereOrNot) {
  std::map<size_t, int> seen;
  EXPECT_GE(MeetAll(ChangeRecords, Fault::kKill, seen), 14);
  EXPECT_EQ(seen.size(), 3u);  // nothing, the genesis, both
}

TEST_F(LogCrash, AFullOrBrokenDiskLosesNothing) {
  ASSERT_TRUE(ChangeRecords(base_).ok());
  std::map<size_t, int> seen;
  EXPECT_GE(MeetAll(ChangeRecords, Fault::kFail, seen), 9);
  EXPECT_EQ(seen.size(), 2u);
}

TEST_F(LogCrash, AFullDiskDuringTheAppendTakesTheLineBack) {
  ASSERT_TRUE(ChangeRecords(base_).ok());
  const std::string log = TextOf(base_, kLogFile);
  // The only write of an entry without records is its line.
  const Store store = Copy(base_, "work");
  ASSERT_TRUE(Meet(store, OnlyAnEntry, {Fault::kFail, 0, 2}));
  EXPECT_EQ(TextOf(store, kLogFile), log);
}

TEST_F(LogCrash, AKilledRepairLosesNoByte) {
  ASSERT_TRUE(ChangeRecords(base_).ok());
  const std::string torn = "{\"actions\":[\"torn";
  const std::string sound = TextOf(base_, kLogFile);
  ASSERT_TRUE(WriteFileAtomically(base_.PathOf(kLogFile), sound + torn).ok());
  const Action repair = [](const Store& store) { return RepairLog(store).status(); };
  std::map<size_t, int> seen;
  EXPECT_GE(MeetAll(repair, Fault::kKill, seen), 8);
  for (int at = 0;; ++at) {
    const Store store = Copy(base_, "work");
    const bool met = Meet(store, repair, {Fault::kKill, at, 2});
    ASSERT_TRUE(TextOf(store, kLogFile).starts_with(sound));
    ASSERT_TRUE(RepairLog(store).ok());
    const std::string kept =
        TextOf(store, ("research/vortex_exact_attention/quarantine/" + DigestOfText(torn)).c_str());
    ASSERT_EQ(kept, torn) << at;
    if (!met) break;
  }
}

TEST_F(LogCrash, AKilledRecoveryIsRecovered) {
  ASSERT_TRUE(ChangeRecords(base_).ok());
  const Store first = Copy(base_, "first");
  const Action recover = [](const Store& store) { return Recover(store).status(); };
  std::map<size_t, int> seen;
  int kills = 0;
  for (int at = 0;; ++at) {
    const Store crashed = Copy(base_, "crashed");
    if (!Meet(crashed, ChangeRecords, {Fault::kKill, at, 2})) break;
    for (int then = 0;; ++then) {
      const Store store = Copy(crashed, "work");
      const bool met = Meet(store, recover, {Fault::kKill, then, 2});
      kills += met ? 1 : 0;
      ExpectRecovers(store, 2, seen);
      ASSERT_FALSE(testing::Test::HasFatalFailure()) << at << " then " << then;
      if (!met) break;
    }
  }
  EXPECT_GT(kills, 10);
  EXPECT_EQ(seen.size(), 2u);
}

}  // namespace
}  // namespace h3rt::lab
