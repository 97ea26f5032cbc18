// A good record and a good piece of evidence, for tests and benchmarks.
#pragma once

#include <string>

#include "h3rt/lab/freshness.h"
#include "h3rt/lab/gate.h"
#include "h3rt/ledger/store.h"

namespace h3rt::lab {

// A record that needs no missing entry but those of its nulls.
inline Doc TestRecord(const std::string& id, const std::string& status = "incomplete") {
  const Doc none = Doc::array();
  Doc record = {
      {"id", id},
      {"name", "A record of tests"},
      {"group", "elementwise"},
      {"kind", "candidate"},
      {"status", status},
      {"imported_status", nullptr},
      {"decision", {{"text", "Kept for reference."}, {"log_seq", 1}}},
      {"boundary", nullptr},
      {"scope",
       {{"workloads", none}, {"archs", {"sm_90a"}}, {"eligible", nullptr}, {"non_claims", none}}},
      {"source",
       {{"state", "present"},
        {"paths", {"kernels/add.cu"}},
        {"digest", nullptr},
        {"entry", none},
        {"commit", nullptr},
        {"patch", nullptr}}},
      {"variants", none},
      {"baseline", nullptr},
      {"gates", Doc::object()},
      {"evidence", none},
      {"artifacts", none},
      {"missing", none},
      {"skipped", none},
      {"retention", {{"purpose", {"reference"}}, {"callable", true}, {"dispatch", "none"}}},
      {"closed", nullptr},
      {"relations",
       {{"supersedes", none},
        {"superseded_by", nullptr},
        {"duplicate_of", nullptr},
        {"shares_evidence_with", none},
        {"derived_from", none}}},
      {"provenance", {{"origin", "native"}, {"from", nullptr}}}};
  for (const char* gate : kGates) record["gates"][gate] = nullptr;
  for (const char* pointer : {"/boundary", "/scope/eligible", "/source/digest", "/source/commit",
                              "/source/patch", "/baseline"}) {
    record["missing"].push_back({{"pointer", pointer},
                                 {"what", "nothing of the kind"},
                                 {"why", "not_applicable"},
                                 {"blocker", false},
                                 {"note", nullptr}});
  }
  RefreshDigest(record);
  return record;
}

// A source that compiled for sm_90a.
inline Doc TestEnvelope(const Store& store, const std::string& experiment) {
  const Doc zeros = std::string(64, '0');
  Doc cls = Doc::object();
  for (const char* key :
       {"device", "capability", "driver", "runtime", "toolkit", "ecc", "mig", "os", "cpu"}) {
    cls[key] = nullptr;
  }
  Doc instance = Doc::object();
  for (const char* key :
       {"boot_id_sha256", "uuid_sha256", "clock_before_mhz", "clock_after_mhz", "power_limit_mw",
        "temperature_before_c", "temperature_after_c", "throttle_before", "throttle_after",
        "other_memory_bytes", "load_milli", "cores", "hypervisor"}) {
    instance[key] = nullptr;
  }
  return {{"schema", "lab.evidence/1"},
          {"kind", "compile"},
          {"origin", "compiled"},
          {"word", "assembled"},
          {"experiment", experiment},
          {"vid", nullptr},
          {"target", "sm_90a"},
          {"subject",
           {{"source_digest", ClosureDigest(store, {"kernels/add.cu"}).value_or("")},
            {"source_paths", {"kernels/add.cu"}},
            {"build_digest", nullptr},
            {"binary_sha256", nullptr},
            {"kernels", Doc::array()},
            {"baseline", nullptr}}},
          {"workload", nullptr},
          {"environment", {{"class", cls}, {"instance", instance}}},
          {"invocation",
           {{"argv", {"nvcc"}},
            {"start_us", 1'700'000'000'000'000},
            {"end_us", 1'700'000'000'000'005},
            {"exit_code", 0},
            {"signal", nullptr},
            {"peak_rss_bytes", nullptr},
            {"peak_device_bytes", nullptr},
            {"variables", Doc::object()}}},
          {"harness",
           {{"version", "1"},
            {"source_digest", zeros},
            {"commit", nullptr},
            {"dirty_digest", nullptr},
            {"policy_digest", zeros}}},
          {"plan", nullptr},
          {"body",
           {{"outcome", "ok"},
            {"expected", "ok"},
            {"diagnostics", Doc::array()},
            {"flags", "-O3"},
            {"compiler", "nvcc 13.0"},
            {"ptxas", "ptxas 13.0"},
            {"wall_ns", 5},
            {"control", nullptr}}},
          {"blobs", Doc::array()}};
}

inline Doc Cited(const std::string& digest) {
  return {{"sha256", digest}, {"role", "result"},          {"vid", nullptr},
          {"valid", true},    {"invalid_reason", nullptr}, {"invalid_log_seq", nullptr}};
}

}  // namespace h3rt::lab
