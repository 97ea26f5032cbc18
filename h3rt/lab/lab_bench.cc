// How long a check takes as a registry grows: N records with ten references each. The time a record
// must stay flat, and 2,000 records take less than 1 s and 200 MB.
#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "h3rt/base/check.h"
#include "h3rt/base/file.h"
#include "h3rt/lab/test_documents.h"
#include "h3rt/lab/validate.h"
#include "h3rt/ledger/log.h"

namespace h3rt::lab {
namespace {

namespace fs = std::filesystem;

constexpr int kReferences = 10;

void WriteFast(const Store& store, const std::string& relative, const std::string& text) {
  const std::string path = store.PathOf(relative);
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream out(path, std::ios::binary);
  out << text;
  H3RT_CHECK(out.good());
}

// A piece of evidence a record, which nine other records cite as a reference.
void Generate(const Store& store, int records) {
  WriteFast(store, "kernels/add.cu", "int add = 1;\n");
  WriteFast(store, kReadmeFile, "# h3rt\n");
  Doc policy = Doc::parse(ReadFile(std::string(H3RT_SOURCE_DIR) + "/research/policy.json").value());
  policy["required_ids"] = Doc::array();
  WriteFast(store, kPolicyFile, policy.dump());
  std::vector<std::string> ids, digests;
  Doc envelope = TestEnvelope(store, "any");
  for (int i = 0; i < records; ++i) {
    ids.push_back("record-" + std::to_string(100000 + i));
    envelope["experiment"] = ids.back();
    const std::string text = CanonicalText(envelope);
    digests.push_back(DigestOfText(text));
    WriteFast(store, "benchmarks/nvcc/" + ids.back() + "/" + digests.back() + ".json", text);
  }
  constexpr int kAtOnce = 200;  // a log line holds 64 KiB
  for (int begin = 0; begin < records; begin += kAtOnce) {
    Change change{.entry = EmptyEntry("entry", "More records")};
    for (int i = begin; i < std::min(begin + kAtOnce, records); ++i) {
      Doc record = TestRecord(ids[static_cast<size_t>(i)], "research_retained");
      record["scope"]["non_claims"] = {"No speed is claimed."};
      for (int k = 0; k < kReferences; ++k) {
        Doc cited = Cited(digests[static_cast<size_t>((i + k * 7) % records)]);
        if (k > 0) cited["role"] = "reference";
        record["evidence"].push_back(cited);
      }
      change.records.push_back(record);
    }
    const auto seq = Commit(store, [&](const Registry&, const Log&, int64_t) { return change; });
    H3RT_CHECK(seq.ok());
  }
}

struct Used {
  double seconds = 0;     // of the processor
  double peak_bytes = 0;  // resident
};

// Runs in a child, so that time and memory are those of a command that starts afresh.
template <typename F>
Used InChild(const F& f) {
  const pid_t child = ::fork();
  H3RT_CHECK(child >= 0);
  if (child == 0) {
    f();
    ::_exit(0);
  }
  int status = 0;
  struct rusage usage = {};
  H3RT_CHECK(::wait4(child, &status, 0, &usage) == child && status == 0);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return {.seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime),
          .peak_bytes = static_cast<double>(usage.ru_maxrss) * 1024};
}

void ValidateOnce(const Store& store) {
  Findings findings;
  Validate(store, {}, findings);
  for (const Finding& finding : findings.Sorted()) {
    std::fprintf(stderr, "%s\n", Findings::ToText(finding).c_str());
  }
  H3RT_CHECK(findings.errors() + findings.warnings() == 0);
}

void BM_Validate(benchmark::State& state) {
  const auto records = static_cast<int>(state.range(0));
  Store store{.root = fs::temp_directory_path() / ("lab-bench-" + std::to_string(::getpid()))};
  fs::remove_all(store.root);
  InChild([&] { Generate(store, records); });
  double peak = 0;
  for (auto _ : state) {
    const Used used = InChild([&] { ValidateOnce(store); });
    state.SetIterationTime(used.seconds);
    peak = std::max(peak, used.peak_bytes);
  }
  state.counters["time_a_record"] = benchmark::Counter(
      static_cast<double>(records),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.counters["peak_bytes"] = peak;
  state.counters["registry_bytes"] =
      static_cast<double>(fs::file_size(store.PathOf(kRegistryFile)));
  fs::remove_all(store.root);
}
BENCHMARK(BM_Validate)
    ->Arg(100)
    ->Arg(500)
    ->Arg(2000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace h3rt::lab

BENCHMARK_MAIN();
