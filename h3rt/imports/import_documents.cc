// Documents, fixtures and logs of tools as evidence that nobody ran.
#include <algorithm>
#include <filesystem>

#include "h3rt/base/file.h"
#include "h3rt/base/hash.h"
#include "h3rt/base/process.h"
#include "h3rt/base/version.h"
#include "h3rt/imports/import.h"
#include "h3rt/io/safetensors.h"
#include "h3rt/lab/scan.h"
#include "h3rt/lab/tool_logs.h"

namespace h3rt::lab {
namespace {
namespace fs = std::filesystem;

// One sentence of what a reader found, or nothing.
std::optional<std::string> Summary(std::string_view form, std::string_view text,
                                   std::string_view file, Findings& findings) {
  if (form == "ptxas-log") {
    const auto kernels = ParsePtxasLog(text, file, findings);
    return std::to_string(kernels.size()) + " kernels in a ptxas report";
  }
  if (form == "sanitizer-log") {
    const auto log = ParseSanitizerLog(text, file, findings);
    if (!log) return std::nullopt;
    return std::to_string(log->errors) + " errors in a sanitizer's log";
  }
  const auto launches = ParseNcuCsv(text, file, findings);
  return std::to_string(launches.size()) + " launches in a profile";
}

// An envelope without a body, in which all that a run would tell is null.
Doc EnvelopeOf(const char* kind, const char* origin, const std::string& experiment) {
  const Doc none = nullptr;
  Doc machine = Doc::object(), instance = Doc::object();
  for (const char* key :
       {"device", "capability", "driver", "runtime", "toolkit", "ecc", "mig", "os", "cpu"}) {
    machine[key] = none;
  }
  for (const char* key :
       {"boot_id_sha256", "uuid_sha256", "clock_before_mhz", "clock_after_mhz", "power_limit_mw",
        "temperature_before_c", "temperature_after_c", "throttle_before", "throttle_after",
        "other_memory_bytes", "load_milli", "cores", "hypervisor"}) {
    instance[key] = none;
  }
  return {{"schema", "lab.evidence/1"},
          {"kind", kind},
          {"origin", origin},
          {"word", none},
          {"experiment", experiment},
          {"vid", none},
          {"target", "host"},
          {"subject",
           {{"source_digest", none},
            {"source_paths", Doc::array()},
            {"build_digest", none},
            {"binary_sha256", none},
            {"kernels", Doc::array()},
            {"baseline", none}}},
          {"workload", none},
          {"environment", {{"class", machine}, {"instance", instance}}},
          {"invocation",
           {{"argv", Doc::array()},
            {"start_us", none},
            {"end_us", none},
            {"exit_code", none},
            {"signal", none},
            {"peak_rss_bytes", none},
            {"peak_device_bytes", none},
            {"variables", Doc::object()}}},
          {"harness",
           {{"version", kVersion},
            {"source_digest", none},
            {"commit", none},
            {"dirty_digest", none},
            {"policy_digest", none}}},
          {"plan", none},
          {"blobs", Doc::array()}};
}

// As every piece of evidence comes in.
absl::StatusOr<int64_t> TakeIn(const Store& store, const NewEvidence& piece,
                               const std::string& name, Findings& findings,
                               const std::string& now) {
  H3RT_ASSIGN_OR_RETURN(const std::string bytes, PackBundle({piece}));
  H3RT_ASSIGN_OR_RETURN(const BundleResult result, ImportBundle(store, bytes, name, findings, now));
  return result.log_seq;
}

// The tensors of all .safetensors files of a folder, read from the files now.
absl::StatusOr<Doc> TensorsOf(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() == ".safetensors") files.push_back(at->path().string());
  }
  if (error) return ErrnoStatus(error.value(), "read", folder);
  if (files.empty()) return NotFound({.what = "no .safetensors file", .where = folder});
  std::sort(files.begin(), files.end());
  Doc tensors = Doc::array();
  for (const std::string& path : files) {
    H3RT_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
    const std::span<const std::byte> data =
        file.file()->bytes().subspan(file.header_bytes().size());
    for (const auto& [name, entry] : file.entries()) {
      const std::span<const int64_t> shape = entry.shape.dims();
      tensors.push_back(
          {{"name", (files.size() == 1 ? "" : fs::path(path).filename().string() + "/") + name},
           {"dtype", entry.dtype_name},
           {"shape", std::vector<int64_t>(shape.begin(), shape.end())},
           {"sha256", Sha256Hex(data.subspan(entry.begin, entry.end - entry.begin))}});
    }
  }
  return tensors;
}

Doc GitUser(const Store& store) {
  const auto git =
      RunProgram({"git", "-C", store.root, "config", "user.name"}, {.timeout_ms = 10000});
  if (!git.ok() || !git->ok()) return nullptr;
  const std::string name = Printable(git->out.substr(0, git->out.find('\n')), 200);
  return name.empty() ? Doc() : Doc(name);
}

Doc TextOrNull(const std::string& text) { return text.empty() ? Doc() : Doc(text); }

}  // namespace

absl::StatusOr<int64_t> ImportLogFile(const Store& store, std::string_view form,
                                      const std::string& path, const std::string& experiment,
                                      Findings& findings, const std::string& now) {
  if (form != "ptxas-log" && form != "sanitizer-log" && form != "ncu-csv") {
    return InvalidArgument({.what = "form of a log",
                            .got = std::string(form),
                            .wanted = "ptxas-log, sanitizer-log or ncu-csv"});
  }
  H3RT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, uint64_t{64} << 20));
  const std::string name = fs::path(path).filename().string();
  const std::optional<std::string> summary = Summary(form, text, name, findings);
  if (!summary || findings.errors() > 0) {
    return DataLoss({.what = "log refused, nothing was imported", .where = name});
  }
  NewEvidence piece{EnvelopeOf("inspection", "imported", experiment), {{"log", text}}};
  piece.envelope["body"] = {{"rule", *summary},
                            {"boundary", nullptr},
                            {"document", name},
                            {"document_sha256", DigestOfText(text)},
                            {"reviewer", nullptr}};
  return TakeIn(store, piece, name, findings, now);
}

absl::StatusOr<int64_t> ImportFixture(const Store& store, const std::string& folder,
                                      const std::string& experiment, Findings& findings,
                                      const std::string& now) {
  H3RT_ASSIGN_OR_RETURN(const Doc tensors, TensorsOf(folder));
  H3RT_ASSIGN_OR_RETURN(const Doc again, TensorsOf(folder));
  if (tensors != again) {
    return DataLoss({.what = "a fixture that reads differently the second time", .where = folder});
  }
  NewEvidence piece{EnvelopeOf("fixture", "inspected", experiment), {}};
  piece.envelope["body"] = {{"tensors", tensors}, {"reload_ok", true}, {"generator", nullptr}};
  return TakeIn(store, piece, fs::path(folder).filename().string(), findings, now);
}

absl::StatusOr<int64_t> ImportInspection(const Store& store, const InspectionRequest& request,
                                         Findings& findings, const std::string& now) {
  if (request.rule.empty() && request.boundary.empty()) {
    return InvalidArgument({.what = "an inspection",
                            .got = "neither rule nor boundary",
                            .wanted = "--rule or --boundary",
                            .where = request.document});
  }
  if (!CheckPath(store, request.document, request.document, 0, "", findings)) {
    return InvalidArgument({.what = "document of an inspection",
                            .got = request.document,
                            .wanted = "a path relative to the root"});
  }
  H3RT_ASSIGN_OR_RETURN(const std::string digest, Sha256OfFile(store.PathOf(request.document)));
  NewEvidence piece{EnvelopeOf("inspection", "inspected", request.experiment), {}};
  piece.envelope["body"] = {{"rule", TextOrNull(request.rule)},
                            {"boundary", TextOrNull(request.boundary)},
                            {"document", request.document},
                            {"document_sha256", digest},
                            {"reviewer", GitUser(store)}};
  return TakeIn(store, piece, request.document, findings, now);
}

}  // namespace h3rt::lab
