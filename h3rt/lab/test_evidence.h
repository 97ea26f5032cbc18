// Evidence for tests: whole envelopes that the rules accept, to be broken one field at a time.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "h3rt/lab/gate.h"
#include "h3rt/lab/test_simulate.h"
#include "h3rt/ledger/store.h"

namespace h3rt::lab {

inline constexpr char kTestId[] = "elem-test-kernel";
inline constexpr char kTestKernel[] = "h3rt::TestKernel";
inline constexpr char kTestMangled[] = "_ZN4h3rt10TestKernelIfEEvPf";
inline const std::string kTestDigest(64, 'a');

inline Doc TestPolicy() {
  Findings findings;
  return LoadPolicy(Store{H3RT_SOURCE_DIR}, findings).value_or(Doc());
}

inline Doc TestEnvelope(const std::string& kind, const std::string& origin = "measured",
                        const std::string& word = "executed") {
  const Doc arm = {{"source_digest", kTestDigest},
                   {"source_paths", {"h3rt/lab/stats.cc"}},
                   {"build_digest", kTestDigest},
                   {"binary_sha256", kTestDigest},
                   {"kernels", {{{"symbol", kTestKernel}, {"code_sha256", nullptr}}}}};
  Doc subject = arm;
  subject["baseline"] = kind == "timing_pair" ? arm : Doc(nullptr);
  Doc envelope;
  envelope["schema"] = "lab.evidence/1";
  envelope["kind"] = kind;
  envelope["origin"] = origin;
  envelope["word"] = word.empty() ? Doc(nullptr) : Doc(word);
  envelope["experiment"] = kTestId;
  envelope["vid"] = "fused";
  envelope["target"] = "sm_90a";
  envelope["subject"] = subject;
  envelope["workload"] = nullptr;
  Doc device = {{"device", "NVIDIA H200"},
                {"capability", "9.0"},
                {"driver", "580"},
                {"runtime", "13.0"},
                {"toolkit", "13.0"},
                {"ecc", true},
                {"mig", false},
                {"os", "Linux"},
                {"cpu", "x"}};
  Doc instance = Doc::object();
  for (const char* key :
       {"boot_id_sha256", "uuid_sha256", "clock_before_mhz", "clock_after_mhz", "power_limit_mw",
        "temperature_before_c", "temperature_after_c", "throttle_before", "throttle_after",
        "other_memory_bytes", "load_milli", "cores", "hypervisor"}) {
    instance[key] = nullptr;
  }
  envelope["environment"] = {{"class", device}, {"instance", instance}};
  envelope["invocation"] = {{"argv", {"h3rt", "lab", "run"}},
                            {"start_us", 1'760'000'000'000'000'000 / 1000},
                            {"end_us", 1'760'000'000'900'000'000 / 1000},
                            {"exit_code", 0},
                            {"signal", nullptr},
                            {"peak_rss_bytes", nullptr},
                            {"peak_device_bytes", nullptr},
                            {"variables", Doc::object()}};
  envelope["harness"] = {{"version", "1"},
                         {"source_digest", kTestDigest},
                         {"commit", nullptr},
                         {"dirty_digest", nullptr},
                         {"policy_digest", kTestDigest}};
  envelope["plan"] = nullptr;
  envelope["body"] = Doc::object();
  envelope["blobs"] = Doc::array();
  return envelope;
}

inline Doc TestCompile(const std::string& outcome, const std::string& expected = "ok") {
  Doc envelope = TestEnvelope("compile", "compiled", "assembled");
  envelope["body"] = {{"outcome", outcome},
                      {"expected", expected},
                      {"diagnostics", outcome == "ok" ? Doc::array() : Doc({"not supported"})},
                      {"flags", "-O3"},
                      {"compiler", "nvcc 13.0"},
                      {"ptxas", "13.0.88"},
                      {"wall_ns", 5},
                      {"control", nullptr}};
  if (expected == "rejected") {
    envelope["body"]["control"] = {{"target", "sm_90a"}, {"outcome", "ok"}, {"expected", "ok"}};
  }
  return envelope;
}

inline Doc TestResource(int64_t spill = 0) {
  Doc envelope = TestEnvelope("resource", "compiled", "assembled");
  envelope["body"] = {{"compiler", "nvcc 13.0"},
                      {"ptxas", "13.0.88"},
                      {"flags", "-O3"},
                      {"kernels",
                       {{{"symbol", kTestMangled},
                         {"code_sha256", nullptr},
                         {"code_bytes", 100},
                         {"registers", 32},
                         {"stack_bytes", 0},
                         {"spill_store_bytes", spill},
                         {"spill_load_bytes", spill},
                         {"static_shared_bytes", 0},
                         {"constant_bytes", 352},
                         {"barriers", 1},
                         {"max_threads", 256},
                         {"ctas_per_sm", 8},
                         {"limiter", "registers"}}}}};
  return envelope;
}

inline Doc TestParity() {
  Doc envelope = TestEnvelope("parity");
  Doc cases = Doc::array();
  for (const char* level : {"toy", "aligned", "ragged"}) {
    cases.push_back({{"workload", std::string(level) + "-shape"},
                     {"level", level},
                     {"seed", 1},
                     {"checkpoint", nullptr},
                     {"elements", 1000},
                     {"mismatches", 0},
                     {"first_index", nullptr},
                     {"first_actual_bits", nullptr},
                     {"first_expected_bits", nullptr},
                     {"max_abs_e9", 0},
                     {"rel_l2_e9", 0},
                     {"max_ulp", 0},
                     {"nan_actual", 0},
                     {"nan_expected", 0},
                     {"unwritten", 0},
                     {"guard_faults", 0},
                     {"inputs_unchanged", true}});
  }
  envelope["body"] = {
      {"reference", "unfused"},
      {"mode", "bitwise"},
      {"bound_e9", nullptr},
      {"expected", "match"},
      {"cases", cases},
      {"repeat_exact", {{"workload", "toy-shape"}, {"launches", 1000}, {"distinct_digests", 1}}}};
  return envelope;
}

inline Doc TestSanitizer(const std::string& tool) {
  Doc envelope = TestEnvelope("sanitizer");
  const bool races = tool == "racecheck";
  envelope["body"] = {{"tool", tool},
                      {"version", "2025.3"},
                      {"errors", 0},
                      {"hazards_displayed", races ? Doc(0) : Doc(nullptr)},
                      {"hazards_total", races ? Doc(0) : Doc(nullptr)},
                      {"kernels", {{{"symbol", kTestMangled}, {"launches", 3}}}},
                      {"control", {{"planted", true}, {"found", true}}},
                      {"log", nullptr}};
  return envelope;
}

// Samples of six processes: a kernel of about `base_ps`, the candidate faster by `gain`.
inline std::vector<Sample> TestSamples(double gain, double process_sd = 0.0005,
                                       int64_t quads = 12) {
  SimulatedRun run;
  run.quads = quads;
  run.effect = gain;
  run.sample_sd = 0.002;
  run.process_sd = process_sd;
  return Simulate(run, 99);
}

inline Doc TestAudits() {
  return {{"same_input_ratio_e9", 1000000000},
          {"seed_ratio_e9", 1000000000},
          {"output_digests_ok", true},
          {"inputs_unchanged", true},
          {"poison_left", 0},
          {"wall_ns", 175000000},
          {"event_ns", 170000000}};
}

// A pair of 433 us calls, 60 % of the peak of memory, planned as entry 5 of the log.
inline Doc TestPair(const std::vector<Sample>& samples, int64_t log_seq = 5) {
  Doc envelope = TestEnvelope("timing_pair");
  const int64_t start = envelope["invocation"]["start_us"];
  Doc processes = Doc::array();
  for (int64_t i = 0; i < 6; ++i) {
    processes.push_back(
        {{"boot_id_sha256", kTestDigest}, {"pid", 100 + i}, {"start_us", start + i}});
  }
  envelope["workload"] = {{"id", "canonical-shape"},
                          {"level", "canonical"},
                          {"dims", {{"rows", 37808}}},
                          {"dtypes", {{"x", "bf16"}}},
                          {"generator", "splitmix64/1"},
                          {"seed", 7},
                          {"input_sha256", {{"x", kTestDigest}}},
                          {"calls", 50}};
  const PairStatistics statistics = AnalysePair(samples, 11);
  const int64_t quads = samples.empty() ? 1 : statistics.quads / 6;
  envelope["plan"] = {
      {"log_seq", log_seq}, {"entry_hash", kTestDigest}, {"gate", "isolated"}, {"processes", 6},
      {"quads", quads},     {"min_gain_ppm", 10000},     {"min_abs_ns", 20000}};
  envelope["body"] = {{"design", "abba"},
                      {"baseline", "unfused"},
                      {"candidate", "fused"},
                      {"processes", 6},
                      {"quads", quads},
                      {"mode", "single"},
                      {"batch", 1},
                      {"timer", "event"},
                      {"tick_ns", 32},
                      {"warmups", 10},
                      {"calls", 50},
                      {"bytes", 1'200'000'000},
                      {"operations", 1'000'000},
                      {"copy_bytes_per_s", 4'000'000'000'000},
                      {"peak_bytes_per_s", 4'800'000'000'000},
                      {"peak_ops_per_s", nullptr},
                      {"samples_blob", "samples.bin"},
                      {"process_ids", processes},
                      {"audits", TestAudits()},
                      {"statistics", PairStatisticsDoc(statistics)}};
  envelope["blobs"] = Doc::array({{{"name", "samples.bin"},
                                   {"sha256", kTestDigest},
                                   {"bytes", 1},
                                   {"raw_bytes", samples.size() * 16},
                                   {"encoding", "zlib"}}});
  return envelope;
}

inline Doc TestInspection() {
  Doc envelope = TestEnvelope("inspection", "inspected", "");
  envelope["body"] = {{"rule", "no copies between stages"},
                      {"boundary", nullptr},
                      {"document", "docs/lab.md"},
                      {"document_sha256", nullptr},
                      {"reviewer", nullptr}};
  return envelope;
}

inline Doc TestFailure(const Doc& retry) {
  Doc envelope = TestEnvelope("failure");
  envelope["body"] = {
      {"outcome", "device_oom"}, {"message", "out of memory"}, {"peak_bytes", 5}, {"retry", retry}};
  return envelope;
}

// A record with its evidence in memory, all of it fresh.
struct TestCase {
  Doc record;
  std::map<std::string, Evidence> evidence = {};
  std::map<std::string, Freshness> freshness = {};
  Doc policy = TestPolicy();
  Doc manifest = nullptr;
  Store store = Store{H3RT_SOURCE_DIR};

  TestCase() {
    record = {
        {"id", kTestId},
        {"kind", "candidate"},
        {"status", "incomplete"},
        {"decision", {{"text", "x"}, {"log_seq", nullptr}}},
        {"scope", {{"archs", {"sm_90a"}}, {"eligible", nullptr}, {"non_claims", Doc::array()}}},
        {"source", {{"state", "not_started"}, {"paths", Doc::array()}, {"digest", nullptr}}},
        {"evidence", Doc::array()},
        {"skipped", Doc::array()},
        {"gates", Doc::object()},
        {"retention", {{"dispatch", "none"}}},
        {"relations", {{"superseded_by", nullptr}}}};
  }
  std::string Add(const Doc& envelope, const std::string& role = "result") {
    const std::string digest = DigestOf(envelope);
    evidence[digest] = {digest, "benchmarks/x/" + digest + ".json", envelope};
    freshness[digest].stale = false;
    record["evidence"].push_back({{"sha256", digest},
                                  {"role", role},
                                  {"vid", nullptr},
                                  {"valid", true},
                                  {"invalid_reason", nullptr},
                                  {"invalid_log_seq", nullptr}});
    return digest;
  }
  void AddCorrect() {
    Add(TestParity());
    Add(TestSanitizer("memcheck"));
    Add(TestSanitizer("racecheck"));
  }
  Case Get() const { return {record, evidence, freshness, policy, manifest, store}; }
  GateResult Gate(const std::string& gate, const std::string& device = "sm_90a") const {
    return EvaluateGate(Get(), gate, device);
  }
  std::string Verdict(const std::string& gate, const std::string& device = "sm_90a") const {
    return TextAt(Gate(gate, device).verdict, "verdict", "not run");
  }
  std::string Reason(const std::string& gate, const std::string& device = "sm_90a") const {
    return TextAt(Gate(gate, device).verdict, "reason");
  }
};

// A store of its own in a fresh folder, removed at the end.
struct TestStore {
  Store store;
  explicit TestStore(const std::string& name) {
    store.root = testing::TempDir() + "h3rt_lab_" + name;
    std::filesystem::remove_all(store.root);
    std::filesystem::create_directories(store.root);
  }
  ~TestStore() {
    std::error_code error;
    std::filesystem::remove_all(store.root, error);
  }
  // Written and read again.
  Evidence Write(const Doc& envelope, const std::map<std::string, std::string>& blobs) const {
    NewEvidence made{envelope, blobs};
    made.envelope["blobs"] = Doc::array();
    const absl::StatusOr<std::string> digest = WriteEvidence(store, made);
    EXPECT_TRUE(digest.ok()) << digest.status();
    Findings findings;
    std::map<std::string, Evidence> all = LoadEvidence(store, findings);
    EXPECT_EQ(findings.errors(), 0);
    return digest.ok() ? all[*digest] : Evidence();
  }
};

}  // namespace h3rt::lab
