// h3rt lab attention-golden.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "apps/h3rt/lab.h"
#include "h3rt/base/utc.h"
#include "h3rt/harness/attention_corner.h"
#include "h3rt/harness/attention_golden.h"
#include "h3rt/imports/import.h"

namespace h3rt::cli {
namespace {

struct GoldenOptions {
  lab::GoldenRequest request;
  std::string bundle;
  bool corner = false;
  bool large = false;
};

absl::StatusOr<Outcome> Corners(const LabOptions& options, const Invocation& invocation,
                                const GoldenOptions& golden) {
  const lab::CornerRequest request{golden.request.case_name, golden.request.path, golden.large};
  const auto on_row = [&](const lab::CornerRow& row) {
    Say(options, invocation, row.Text() + "\n");
  };
  const int64_t start = NowNs() / 1000;
  H3RT_ASSIGN_OR_RETURN(const std::vector<lab::CornerRow> rows,
                        lab::RunAttentionCorners(request, GlobalCancel(), on_row));
  Outcome outcome{.json = {{"compared", rows.size()}, {"rows", Json::array()}}};
  int64_t failed = 0;
  for (const lab::CornerRow& row : rows) {
    failed += row.faults.empty() ? 0 : 1;
    outcome.json["rows"].push_back({{"case", row.name}, {"key", row.key}, {"faults", row.faults}});
  }
  outcome.json["failed"] = failed;
  Say(options, invocation, fmt::format("{} compared, {} failed\n", rows.size(), failed));
  if (!golden.bundle.empty()) {
    H3RT_ASSIGN_OR_RETURN(
        const std::vector<lab::NewEvidence> evidence,
        lab::CornerEvidence(golden.request, golden.large, rows, start, NowNs() / 1000));
    H3RT_RETURN_IF_ERROR(lab::WriteBundle(golden.bundle, evidence));
    Say(options, invocation,
        fmt::format("{} pieces of evidence in {}\n", evidence.size(), golden.bundle));
    outcome.json["bundle"] = golden.bundle;
    outcome.json["evidence"] = evidence.size();
  }
  if (failed > 0) outcome.code = ExitCode::kAnswerIsNo;
  return outcome;
}

// The table of corners has no use for the other flags.
absl::Status CheckCornerFlags(const GoldenOptions& golden) {
  const lab::GoldenRequest& request = golden.request;
  if (golden.corner && golden.large) {
    return InvalidArgument(
        {.what = "--corner and --large", .got = "both", .wanted = "one of them"});
  }
  for (const auto& [other, given] : {std::pair{"an index", !request.index.empty()},
                                     {"--impl", request.impl != "sage2_public"},
                                     {"--granularity", !request.granularity.empty()},
                                     {"--repeat", request.repeat >= 0},
                                     {"--time", request.time > 0},
                                     {"--checkpoints", request.checkpoints}}) {
    if (!given) continue;
    return InvalidArgument({.what = "--corner and --large",
                            .got = std::string(other) + " beside them",
                            .wanted = "--case, --path, --bundle and --experiment alone"});
  }
  return absl::OkStatus();
}

// Before the work: what was measured would be lost with the file.
absl::Status CheckBundlePath(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!folder.empty() && !std::filesystem::is_directory(folder, error)) {
    return NotFound({.what = "no folder for the bundle",
                     .got = path,
                     .wanted = "a file in a folder that exists",
                     .where = "--bundle"});
  }
  if (std::filesystem::is_directory(path, error)) {
    return InvalidArgument(
        {.what = "--bundle", .got = "a folder, " + path, .wanted = "a file to write"});
  }
  return absl::OkStatus();
}

absl::StatusOr<Outcome> Golden(const LabOptions& options, const Invocation& invocation,
                               GoldenOptions golden) {
  lab::GoldenRequest& request = golden.request;
  // A machine without the laboratory's files goes without the policy.
  lab::Findings ignored;
  if (const auto policy = lab::LoadPolicy(options.store(), ignored)) {
    request.policy_digest = lab::DigestOf(*policy);
  }
  if (golden.corner || golden.large) {
    H3RT_RETURN_IF_ERROR(CheckCornerFlags(golden));
    if (!golden.bundle.empty()) H3RT_RETURN_IF_ERROR(CheckBundlePath(golden.bundle));
    return Corners(options, invocation, golden);
  }
  if (request.index.empty()) {
    return InvalidArgument({.what = "index", .got = "none", .wanted = "a file, or --corner"});
  }
  request.cpu = CpuAttention();
  request.evidence = !golden.bundle.empty();
  if (request.evidence && request.impl != "sage2_public") {
    return InvalidArgument({.what = "--bundle",
                            .got = "--impl " + request.impl,
                            .wanted = "sage2_public: what the host gives is compared by value"});
  }
  if (request.evidence) H3RT_RETURN_IF_ERROR(CheckBundlePath(golden.bundle));
  const auto on_row = [&](const lab::GoldenRow& row) {
    Say(options, invocation, row.Text() + "\n");
    std::fflush(stdout);
  };
  H3RT_ASSIGN_OR_RETURN(const lab::GoldenReport report,
                        lab::RunAttentionGolden(request, GlobalCancel(), on_row));
  Say(options, invocation,
      fmt::format("{} compared, {} failed, {} skipped\n", report.compared(), report.failed(),
                  static_cast<int64_t>(report.rows.size()) - report.compared()));
  Outcome outcome{.json = report.ToJson()};
  if (!golden.bundle.empty()) {
    H3RT_RETURN_IF_ERROR(lab::WriteBundle(golden.bundle, report.evidence));
    Say(options, invocation,
        fmt::format("{} pieces of evidence in {}\n", report.evidence.size(), golden.bundle));
    outcome.json["bundle"] = golden.bundle;
    outcome.json["evidence"] = report.evidence.size();
  }
  if (report.failed() > 0) {
    outcome.code = ExitCode::kAnswerIsNo;
  } else if (report.compared() == 0) {
    std::fprintf(stderr, "h3rt: nothing was compared\n");
    outcome.code = ExitCode::kNothingCompared;
  }
  return outcome;
}

}  // namespace

void AddLabAttention(CLI::App& lab, LabOptions& options, Invocation& invocation) {
  auto golden = std::make_shared<GoldenOptions>();
  golden->request.experiment = "vortex-exact-sage2-public";
  lab::GoldenRequest& request = golden->request;
  CLI::App* command = AddLabCommand(lab, "attention-golden",
                                    "Compare attention with recorded cases of the public library",
                                    options, invocation);
  command->add_option("index", request.index, "An index of golden cases, index.json");
  command
      ->add_option("--impl", request.impl,
                   "sage2_public on the GPU, by bytes; oracle, cpu, ref on the host, by value")
      ->capture_default_str();
  command->add_option("--case", request.case_name, "Only this case");
  command->add_option("--path", request.path, "Only this path: a16, a32, a1, b");
  command->add_option("--granularity", request.granularity, "Only per_warp or per_thread");
  command
      ->add_option("--repeat", request.repeat,
                   "Launches whose outputs must agree; default: 1000, or 20 for large cases")
      ->check(CLI::Range(int64_t{0}, int64_t{1000000}));
  command
      ->add_option("--time", request.time,
                   "Also time preparation, attention, LSE and all of it, so many samples of each "
                   "of two equal arms")
      ->check(CLI::Range(int64_t{1}, int64_t{100000}));
  command->add_flag("--checkpoints", request.checkpoints,
                    "Also compare every checkpoint of small cases with the oracle");
  command->add_flag("--corner", golden->corner,
                    "Instead of an index, the table of strides, lengths and bad input, with the "
                    "oracle as judge");
  command->add_flag("--large", golden->large,
                    "Instead of an index, problems whose offsets pass 2^31 and 2^32 elements");
  command->add_option("--bundle", golden->bundle,
                      "Write evidence of what was compared and timed (`lab import bundle`)");
  command
      ->add_option("--experiment", request.experiment,
                   "The records that the evidence is of: this and -a16, -a32, -a1, -b")
      ->capture_default_str();
  command->footer(
      "Makes the inputs again, runs the implementation and compares SHA-256 of the output, whole "
      "and\n"
      "per head, of the prepared tensors and of the logarithms with the index; tensors beside it "
      "say\n"
      "where bytes differ. The corrected lse may differ by one unit of its correction. Exit 1 when "
      "a row\n"
      "fails, 4 without a GPU, 7 when the inputs come out otherwise, 10 when nothing was "
      "compared.");
  command->callback([=, &options, &invocation] {
    invocation.run = [=, &options, &invocation] { return Golden(options, invocation, *golden); };
  });
}

}  // namespace h3rt::cli
