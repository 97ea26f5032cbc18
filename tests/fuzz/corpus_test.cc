// Every file of the corpus through the body of its fuzz target, in every build.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "h3rt/base/file.h"
#include "tests/fuzz/entries.h"
#include "tests/fuzz/lab_entries.h"

namespace h3rt {
namespace {

using Entry = std::function<bool(std::span<const std::byte>)>;

// Files whose names begin with "good" are accepted, all others refused.
void RunCorpus(const std::string& name, const Entry& entry, size_t at_least) {
  const std::string folder = std::string(H3RT_SOURCE_DIR) + "/tests/fuzz/corpus/" + name;
  size_t count = 0;
  size_t good = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(file.path().string());
    const absl::StatusOr<std::string> content = ReadFile(file.path().string());
    ASSERT_TRUE(content.ok()) << content.status();
    const bool accepted = entry(std::as_bytes(std::span(content->data(), content->size())));
    const bool expected = file.path().filename().string().starts_with("good");
    EXPECT_EQ(accepted, expected);
    ++count;
    good += expected ? 1 : 0;
  }
  EXPECT_GE(count, at_least);
  EXPECT_GT(good, 0u);
}

TEST(FuzzCorpus, Safetensors) { RunCorpus("safetensors", FuzzSafetensors, 30); }

TEST(FuzzCorpus, Config) { RunCorpus("config", FuzzConfig, 20); }

TEST(FuzzCorpus, PtxasLog) { RunCorpus("lab_ptxaslog", FuzzPtxasLog, 8); }

TEST(FuzzCorpus, SanitizerLog) { RunCorpus("lab_sanitizerlog", FuzzSanitizerLog, 8); }

TEST(FuzzCorpus, NcuCsv) { RunCorpus("lab_ncucsv", FuzzNcuCsv, 8); }

TEST(FuzzCorpus, Bundle) { RunCorpus("lab_bundle", FuzzBundle, 8); }

TEST(FuzzCorpus, LabLog) { RunCorpus("lab_log", FuzzLog, 20); }

TEST(FuzzCorpus, SeedPage) { RunCorpus("lab_seedpage", FuzzSeedPage, 14); }

TEST(FuzzCorpus, SeedLog) { RunCorpus("lab_seedlog", FuzzSeedLog, 8); }

TEST(FuzzCorpus, LabJson) { RunCorpus("lab_labjson", FuzzLabJson, 20); }

TEST(FuzzCorpus, Cubin) { RunCorpus("lab_cubin", FuzzCubin, 5); }

}  // namespace
}  // namespace h3rt
