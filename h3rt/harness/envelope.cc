#include "h3rt/harness/envelope.h"

#include <filesystem>
#include <optional>

#include "h3rt/base/env.h"
#include "h3rt/base/hash.h"
#include "h3rt/base/version.h"
#include "h3rt/harness/cubin.h"
#include "h3rt/harness/environment.h"
#include "h3rt/harness/harness.h"

namespace h3rt::lab {
namespace {

Doc TextOrNull(const std::string& text) { return text.empty() ? Doc() : Doc(text); }

// Read once: the file of a running program does not change.
const std::string& DigestOfThisProgram() {
  static const auto* const digest = new std::string(Sha256OfFile(PathOfThisProgram()).value_or(""));
  return *digest;
}

}  // namespace

std::string PathOfThisProgram() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string() : path.string();
}

Doc SubjectOf(const ExperimentArm& arm, const std::string& target) {
  const std::vector<std::string> roots(arm.sources.begin(), arm.sources.end());
  const std::optional<std::string> source = StampedClosure(roots);
  const BuildStamp& stamp = Stamp();
  // The machine code that ran, so that a later change of the sources that leaves it alone leaves
  // the evidence current.
  const KernelCode code = KernelsOfProgram("/proc/self/exe", target).value_or(KernelCode());
  Doc kernels = Doc::array();
  for (const char* name : arm.kernels) {
    const auto found = code.find(name);
    kernels.push_back(
        {{"symbol", name}, {"code_sha256", found == code.end() ? Doc() : Doc(found->second)}});
  }
  // The stamp knows the flags of device code only.
  const bool device = target != "host";
  return {{"source_digest", source ? Doc(*source) : Doc()},
          {"source_paths", roots},
          {"build_digest", source && device ? Doc(BuildDigest(*source, stamp.flags, stamp.toolkit,
                                                              stamp.host_compiler))
                                            : Doc()},
          {"binary_sha256", TextOrNull(DigestOfThisProgram())},
          {"kernels", kernels}};
}

Doc EnvelopeOf(const MeasuredRun& run) {
  Doc subject = SubjectOf(*run.arm, run.target);
  subject["baseline"] = nullptr;
  Doc variables = Doc::object();
  for (const EnvEntry& entry : EnvTable()) {
    if (const auto value = GetEnv(entry.var)) variables[entry.name] = *value;
  }
  const BuildStamp& stamp = Stamp();
  const bool host = run.target == "host";
  return {{"schema", "lab.evidence/1"},
          {"kind", run.kind},
          {"origin", "measured"},
          {"word", "executed"},
          {"experiment", run.experiment},
          {"vid", run.arm->vid},
          {"target", run.target},
          {"subject", subject},
          {"workload", nullptr},
          {"environment", run.environment.is_object() ? run.environment : HostEnvironment()},
          {"invocation",
           {{"argv", run.argv},
            {"start_us", run.start_us},
            {"end_us", run.end_us},
            {"exit_code", run.signal == 0 ? Doc(run.exit_code) : Doc()},
            {"signal", run.signal == 0 ? Doc() : Doc(run.signal)},
            {"peak_rss_bytes", run.peak_rss_bytes},
            {"peak_device_bytes", nullptr},
            {"variables", variables}}},
          {"harness",
           {{"version", kVersion},
            {"source_digest", TextOrNull(host ? stamp.host_harness_digest : stamp.harness_digest)},
            {"commit", TextOrNull(stamp.commit)},
            {"dirty_digest", TextOrNull(stamp.dirty_digest)},
            {"policy_digest", TextOrNull(run.policy_digest)}}},
          {"plan", nullptr},
          {"blobs", Doc::array()}};
}

}  // namespace h3rt::lab
