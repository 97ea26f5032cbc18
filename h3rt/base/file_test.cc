#include "h3rt/base/file.h"

#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "h3rt/base/hash.h"

namespace h3rt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A fresh folder that goes away with everything in it.
class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/h3rt-file-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    for (const std::string& name : Names()) {
      const std::string path = Path(name);
      if (::unlink(path.c_str()) != 0) ::rmdir(path.c_str());
    }
    ::rmdir(folder_.c_str());
  }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  // Everything in the folder, hidden files too.
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    DIR* dir = ::opendir(folder_.c_str());
    if (dir == nullptr) return names;
    while (const dirent* entry = ::readdir(dir)) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
    }
    ::closedir(dir);
    std::sort(names.begin(), names.end());
    return names;
  }
  std::string folder_;
};

std::span<const std::byte> Bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST_F(FileTest, WhatIsWrittenIsReadBack) {
  const std::string content("a\0b\n\xff", 5);
  ASSERT_TRUE(WriteFileAtomically(Path("x"), content).ok());
  EXPECT_EQ(ReadFile(Path("x")).value(), content);
  ASSERT_TRUE(WriteFileAtomically(Path("x"), "").ok()) << "replaces";
  EXPECT_EQ(ReadFile(Path("x")).value(), "");
  EXPECT_THAT(Names(), ElementsAre("x"));
}

TEST_F(FileTest, TheNameAppearsOnlyWithCommit) {
  auto file = PendingFile::Create(Path("x"));
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->Write("half").ok());
  EXPECT_THAT(Names(), ::testing::SizeIs(1));
  EXPECT_NE(Names()[0], "x");
  EXPECT_EQ(Path(Names()[0]), file->temporary_path());
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_THAT(Names(), ElementsAre("x"));
  EXPECT_FALSE(file->Commit().ok()) << "only once";
  EXPECT_EQ(ReadFile(Path("x")).value(), "half");
}

TEST_F(FileTest, WithoutCommitNothingIsLeftAndTheOldFileStays) {
  ASSERT_TRUE(WriteFileAtomically(Path("x"), "old").ok());
  {
    auto file = PendingFile::Create(Path("x"));
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->Write("new").ok());
  }
  EXPECT_THAT(Names(), ElementsAre("x"));
  EXPECT_EQ(ReadFile(Path("x")).value(), "old");
}

TEST_F(FileTest, MovingKeepsOneOwner) {
  auto file = PendingFile::Create(Path("x"));
  ASSERT_TRUE(file.ok());
  PendingFile other = std::move(*file);
  ASSERT_TRUE(other.Write("1").ok());
  auto second = PendingFile::Create(Path("y"));
  ASSERT_TRUE(second.ok());
  other = std::move(*second);  // discards x
  EXPECT_THAT(Names(), ::testing::SizeIs(1));
  ASSERT_TRUE(other.Commit().ok());
  EXPECT_THAT(Names(), ElementsAre("y"));
}

TEST_F(FileTest, PiecesMayBeWrittenInAnyOrder) {
  auto file = PendingFile::Create(Path("x"));
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->WriteAt(6, Bytes("world")).ok());
  ASSERT_TRUE(file->WriteAt(0, Bytes("hello ")).ok());
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(ReadFile(Path("x")).value(), "hello world");
}

TEST_F(FileTest, TheModeFollowsTheUmask) {
  const mode_t before = ::umask(027);
  const bool written = WriteFileAtomically(Path("x"), "1").ok();
  ::umask(before);
  ASSERT_TRUE(written);
  struct stat info = {};
  ASSERT_EQ(::stat(Path("x").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0640u);
}

TEST_F(FileTest, PlacesThatCannotBeWrittenAreRefusedBeforeAnyWork) {
  EXPECT_EQ(PendingFile::Create(Path("no/such/x")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(PendingFile::Create(folder_).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(PendingFile::Create("").status().code(), absl::StatusCode::kUnavailable);
  ASSERT_TRUE(WriteFileAtomically(Path("file"), "1").ok());
  EXPECT_EQ(PendingFile::Create(Path("file/x")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Names(), ElementsAre("file"));
}

TEST_F(FileTest, ADeviceOrPipeIsNeverReplacedByAFile) {
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  const auto file = PendingFile::Create(Path("pipe"));
  EXPECT_EQ(file.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(file.status()), HasSubstr("not a regular file"));
  EXPECT_EQ(PendingFile::Create("/dev/null").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Names(), ElementsAre("pipe"));
}

TEST_F(FileTest, ReadsOfMissingOrLargeFilesAndFoldersAreTyped) {
  EXPECT_EQ(ReadFile(Path("none")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadFile(folder_).status().code(), absl::StatusCode::kUnavailable);
  ASSERT_TRUE(WriteFileAtomically(Path("x"), "12345").ok());
  EXPECT_TRUE(ReadFile(Path("x"), 5).ok());
  EXPECT_EQ(ReadFile(Path("x"), 4).status().code(), absl::StatusCode::kInvalidArgument);
  // A device never ends, and a pipe that nobody writes to would be waited for.
  EXPECT_EQ(ReadFile("/dev/zero", 1 << 20).status().code(), absl::StatusCode::kUnavailable);
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(ReadFile(Path("pipe")).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(FileTest, ALinkKeepsPointingAtTheFileThatIsWritten) {
  ASSERT_TRUE(WriteFileAtomically(Path("target"), "old").ok());
  ASSERT_EQ(::symlink(Path("target").c_str(), Path("link").c_str()), 0);
  ASSERT_TRUE(WriteFileAtomically(Path("link"), "new").ok());
  EXPECT_EQ(*ReadFile(Path("target")), "new");
  EXPECT_THAT(Names(), ElementsAre("link", "target"));
}

TEST_F(FileTest, ALinkToNowhereIsFollowedForWritingAndRefusedForReading) {
  ASSERT_EQ(::symlink("later", Path("link").c_str()), 0);
  EXPECT_EQ(FollowLinks(Path("link")), Path("later"));
  EXPECT_EQ(ReadFile(Path("link")).status().code(), absl::StatusCode::kUnavailable);
  ASSERT_TRUE(WriteFileAtomically(Path("link"), "now").ok());
  EXPECT_EQ(*ReadFile(Path("later")), "now");
  EXPECT_THAT(Names(), ElementsAre("later", "link"));
  ASSERT_EQ(::symlink("loop", Path("loop").c_str()), 0);
  EXPECT_EQ(PendingFile::Create(Path("loop")).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(PendingFile::Create(Path(std::string(300, 'a').c_str())).ok());
}

// Runs in a child whose files may not grow over 64 KiB, as on a disk that fills up while writing.
void WriteUntilFull(const std::string& path) {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit = {65536, 65536};
  if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) std::_Exit(1);
  const std::string block(50000, 'x');
  auto file = PendingFile::Create(path);
  if (!file.ok()) std::_Exit(2);
  if (!file->Write(block).ok()) std::_Exit(3);
  if (file->Write(block).code() != absl::StatusCode::kResourceExhausted) std::_Exit(4);
  if (file->WriteAt(70000, Bytes("x")).code() != absl::StatusCode::kResourceExhausted)
    std::_Exit(5);
  { const PendingFile gone = *std::move(file); }
  const std::string content(200000, 'x');
  if (WriteFileAtomically(path, content).code() != absl::StatusCode::kResourceExhausted) {
    std::_Exit(6);
  }
  std::_Exit(0);
}

TEST_F(FileTest, AFullDiskIsResourceExhaustedAndLeavesNoPartialFile) {
  ASSERT_TRUE(WriteFileAtomically(Path("old"), "old").ok());
  EXPECT_EXIT(WriteUntilFull(Path("x")), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(WriteUntilFull(Path("old")), ::testing::ExitedWithCode(0), "");
  EXPECT_THAT(Names(), ElementsAre("old"));
  EXPECT_EQ(ReadFile(Path("old")).value(), "old");
}

// The known answers of FIPS 180-4.
TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(Sha256Hex({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex(Bytes("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Hex(Bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  Sha256 million;
  for (int i = 0; i < 1000; ++i) million.Update(std::string(1000, 'a'));
  EXPECT_EQ(million.Finish(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_F(FileTest, TheHashOfAFileIsThatOfItsBytes) {
  std::string content;
  for (int i = 0; i < 200001; ++i) content += static_cast<char>(i * 31 % 251);
  ASSERT_TRUE(WriteFileAtomically(Path("x"), content).ok());
  EXPECT_EQ(Sha256OfFile(Path("x")).value(), Sha256Hex(Bytes(content)));
  ASSERT_TRUE(WriteFileAtomically(Path("empty"), "").ok());
  EXPECT_EQ(Sha256OfFile(Path("empty")).value(), Sha256Hex({}));
  EXPECT_EQ(Sha256OfFile(Path("none")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Sha256OfFile(folder_).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(FileTest, AFlushedReplacementLeavesNothingBeside) {
  ASSERT_TRUE(ReplaceFlushed(Path("a"), "one").ok());
  ASSERT_TRUE(ReplaceFlushed(Path("a"), "two").ok());
  EXPECT_EQ(ReadFile(Path("a")).value(), "two");
  EXPECT_THAT(Names(), ElementsAre("a"));
  EXPECT_FALSE(WriteFlushed(Path("no/a"), "x").ok());
  EXPECT_FALSE(RenameFlushed(Path("b"), Path("a")).ok());
  EXPECT_FALSE(MakeFoldersOf(Path("a/b/c")).ok()) << "a is a file";
}

TEST_F(FileTest, ALockIsHadByOne) {
  {
    const absl::StatusOr<FileLock> lock = FileLock::Take(Path("lock"));
    ASSERT_TRUE(lock.ok()) << lock.status();
    EXPECT_EQ(FileLock::Take(Path("lock")).status().code(), absl::StatusCode::kAborted);
  }
  EXPECT_TRUE(FileLock::Take(Path("lock")).ok());
  EXPECT_FALSE(FileLock::Take(Path("no/lock")).ok());
}

}  // namespace
}  // namespace h3rt
