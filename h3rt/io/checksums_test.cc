#include "h3rt/io/checksums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cctype>
#include <filesystem>

#include "h3rt/base/hash.h"
#include "h3rt/io/random_checkpoint.h"
#include "h3rt/io/test_files.h"

namespace h3rt {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// SHA-256 of "abc", from FIPS 180.
constexpr const char* kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

class Checksums : public ::testing::Test {
 protected:
  void SetUp() override {
    MakeFolder(folder_ / "part");
    WriteText(folder_ / "part/a", "abc");
    WriteText(folder_ / "b c", "abcd");
  }
  void List(const std::string& text) { WriteText(folder_ / kChecksumsFile, text); }
  absl::StatusOr<ChecksumReport> Verify(uint64_t limit = UINT64_MAX) {
    return VerifyChecksums(folder_.path(), limit);
  }
  TempFolder folder_;
};

TEST_F(Checksums, FolderWithoutAListPromisesNothing) {
  const absl::StatusOr<ChecksumReport> report = Verify();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(report->listed);
  EXPECT_TRUE(report->checked.empty());
}

TEST_F(Checksums, SortsFilesIntoEqualOtherAndTooLarge) {
  const std::string abc(kAbc);
  // Text and binary mode, "./" in front, capitals, a comment, a name with a blank, no last newline.
  std::string capitals = abc;
  for (char& c : capitals) c = static_cast<char>(std::toupper(c));
  List("# made by hand\n" + capitals + " *./part/a\n" + abc + "  b c");
  absl::StatusOr<ChecksumReport> report = Verify();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->listed);
  EXPECT_THAT(report->checked, ElementsAre("part/a"));
  EXPECT_TRUE(report->skipped.empty());
  ASSERT_EQ(report->mismatched.size(), 1u);
  EXPECT_EQ(report->mismatched[0].file, "b c");
  EXPECT_EQ(report->mismatched[0].wanted, abc);
  EXPECT_EQ(report->mismatched[0].got, Sha256OfFile(folder_ / "b c").value());
  const absl::Status status = report->ToStatus(folder_.path());
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("b c"), HasSubstr(abc)));
  // The file of 4 bytes is over the limit now, that of 3 is not.
  report = Verify(3);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->checked, ElementsAre("part/a"));
  EXPECT_THAT(report->skipped, ElementsAre("b c"));
  EXPECT_TRUE(report->ToStatus(folder_.path()).ok());
}

TEST_F(Checksums, MalformedListsAreDataLoss) {
  const std::string abc(kAbc);
  const std::string lists[] = {
      "",
      "# nothing\n",
      "\n" + abc + "  part/a\n",
      abc + "\n",
      abc + " part/a\n",
      abc + "  \n",
      abc.substr(1) + "  part/a\n",
      abc.substr(1) + "g  part/a\n",
      abc + "  part/a\r\n",
      abc + "  /etc/hostname\n",
      abc + "  ../part/a\n",
      abc + "  part/../part/a\n",
      abc + "  part//a\n",
      abc + "  part/\n",
      abc + "  ..\n",
      abc + "  part/a\n" + abc + "  ./part/a\n",
      "\\" + abc + "  part\\\\a\n",
      abc + std::string("  part/a\0b\n", 11),
  };
  for (const std::string& list : lists) {
    List(list);
    const absl::Status status = Verify().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << list << status;
    EXPECT_THAT(MessageOf(status), HasSubstr(folder_ / kChecksumsFile)) << list;
  }
}

TEST_F(Checksums, MissingAndOddFilesAreDataLossByName) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  for (const std::string name : {"gone", "part/gone", "part/a/gone", "part", "pipe"}) {
    List(std::string(kAbc) + "  part/a\n" + kAbc + "  " + name + "\n");
    // Also where nothing would be read.
    for (const uint64_t limit : {uint64_t{0}, UINT64_MAX}) {
      const absl::Status status = Verify(limit).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << name << status;
      EXPECT_THAT(MessageOf(status), HasSubstr(folder_ / name));
    }
  }
}

TEST_F(Checksums, ProgressEndsAtTheTotalAndCanStop) {
  WriteText(folder_ / "large", std::string(3'000'000, 'x'));
  List(std::string(kAbc) + "  part/a\n" + kAbc + "  large\n");
  uint64_t last = 0;
  absl::StatusOr<ChecksumReport> report =
      VerifyChecksums(folder_.path(), UINT64_MAX, [&](uint64_t done, uint64_t total) {
        EXPECT_GT(done, last);
        EXPECT_EQ(total, 3'000'003u);
        last = done;
        return absl::OkStatus();
      });
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(last, 3'000'003u);
  report = VerifyChecksums(folder_.path(), UINT64_MAX,
                           [](uint64_t, uint64_t) { return Cancelled("test"); });
  EXPECT_EQ(report.status().code(), absl::StatusCode::kCancelled);
}

// A file of the right size whose bytes are wrong has a good header: only its hash tells.
TEST(RandomModelChecksums, ListEveryFileAndCatchOneFlippedBit) {
  const TempFolder folder;
  const std::string model = folder / "model";
  ModelConfigs configs = TinyConfigs();
  configs.transformer.layers = 1;
  ASSERT_TRUE(WriteRandomModel(model, configs, {.seed = 3}).ok());
  absl::StatusOr<ChecksumReport> report = VerifyChecksums(model);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->listed);
  EXPECT_TRUE(report->ToStatus(model).ok());
  size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(model)) {
    if (entry.is_regular_file()) ++files;
  }
  EXPECT_EQ(files, 11u);
  EXPECT_EQ(report->checked.size(), files - 1);  // all but the list itself
  for (const std::string part : {"transformer", "vae", "audio_vae"}) {
    const std::string name = part + "/diffusion_pytorch_model.safetensors";
    const std::string good = ReadText(model + "/" + name);
    std::string bad = good;
    bad[bad.size() - 5] = static_cast<char>(bad[bad.size() - 5] ^ 1);
    WriteText(model + "/" + name, bad);
    report = VerifyChecksums(model);
    ASSERT_TRUE(report.ok()) << report.status();
    const absl::Status status = report->ToStatus(model);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(MessageOf(status), HasSubstr(name));
    EXPECT_EQ(report->mismatched.size(), 1u);
    WriteText(model + "/" + name, good);
  }
}

}  // namespace
}  // namespace h3rt
