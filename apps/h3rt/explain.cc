// h3rt explain: what would run a problem of an op, in order of preference, and why the others not.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "apps/h3rt/lab.h"
#include "h3rt/cuda/architecture_table.h"
#include "h3rt/cuda/device_info.h"
#include "h3rt/harness/attention_compare.h"
#include "h3rt/kernels/attention/attention.h"
#include "h3rt/kernels/attention/exact/check.h"
#include "h3rt/kernels/attention/exact/type16.h"

namespace h3rt::cli {
namespace {

constexpr char kRecordPrefix[] = "vortex-exact-sage2-public-";

struct AttentionOptions {
  std::string shape;
  std::string dtype = "bf16";
  std::string device;  // "sm_90a"; empty: the first device there is
  std::string root = ".";
  bool causal = false;
};

struct AttentionShape {
  int64_t batch = 0, q_len = 0, k_len = 0, q_heads = 0, k_heads = 0, head_dim = 0;
};

absl::StatusOr<AttentionShape> ParseShape(const std::string& text) {
  AttentionShape shape;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  int64_t* const fields[] = {&shape.batch,   &shape.q_len,   &shape.k_len,
                             &shape.q_heads, &shape.k_heads, &shape.head_dim};
  bool good = true;
  for (size_t i = 0; i < std::size(fields) && good; ++i) {
    const auto [next, error] = std::from_chars(at, end, *fields[i]);
    good = error == std::errc() && *fields[i] >= 0 && *fields[i] <= (int64_t{1} << 40) &&
           (i == 5 ? next == end : next != end && *next == ',');
    at = next + 1;
  }
  if (!good) {
    return InvalidArgument({.what = "--shape",
                            .got = text,
                            .wanted = "B,NQ,NK,HQ,HK,D: six whole numbers, as "
                                      "1,37808,37808,56,56,128"});
  }
  for (const auto& [len, heads] :
       {std::pair{shape.q_len, shape.q_heads}, std::pair{shape.k_len, shape.k_heads}}) {
    int64_t elements = 1;
    for (const int64_t extent : {shape.batch, len, heads, shape.head_dim}) {
      if (extent > 0 && elements > kMostExactElements / extent) {
        return InvalidArgument(
            {.what = "--shape", .got = text, .wanted = "at most 2^59 elements of q and of k"});
      }
      elements *= std::max<int64_t>(extent, 1);
    }
  }
  return shape;
}

struct Entry {
  std::string name;
  std::string path;    // of sage2_public
  std::string reason;  // why not; empty: it takes the problem
  std::string record;  // id in the registry
};

// Why no path of exact attention takes the shape, whatever the device.
std::string WhyNotShape(const AttentionShape& shape, const std::string& dtype) {
  if (dtype != "bf16" && dtype != "f16") return "takes bf16 and f16, not " + dtype;
  if (shape.head_dim < 1 || shape.head_dim > 128) {
    return fmt::format("head_dim {} is outside 1 to 128", shape.head_dim);
  }
  if (shape.k_heads < 1 || shape.q_heads % shape.k_heads != 0) {
    return fmt::format("{} query heads are no multiple of {} key heads", shape.q_heads,
                       shape.k_heads);
  }
  return {};
}

struct Place {
  std::string target;  // "sm_90a", empty: no device
  std::string reason;  // why there is none
};

absl::StatusOr<Place> PlaceOf(const AttentionOptions& options, const DeviceBuild& build) {
  if (!options.device.empty()) {
    std::string known;
    for (const ArchitectureRow& row : ArchitectureTable(build)) {
      if (options.device == "sm_" + row.target) return Place{options.device, {}};
      known += (known.empty() ? "sm_" : ", sm_") + row.target;
    }
    return InvalidArgument(
        {.what = "--device", .got = options.device, .wanted = "one of " + known});
  }
  const absl::StatusOr<DeviceList> list = ListDevices();
  if (absl::IsInvalidArgument(list.status())) return list.status();
  if (!list.ok()) return Place{{}, "no GPU: " + MessageOf(list.status())};
  if (list->devices.empty()) return Place{{}, "no GPU: " + list->reason};
  const ArchitectureRow row = ArchitectureRowOf(list->devices[0].capability, build);
  if (!row.known) {
    return Place{{}, "compute capability " + NameOf(row.capability) + " is not in the table"};
  }
  return Place{"sm_" + row.target, {}};
}

std::string WhyNotPath(const std::string& path, const Place& place, const DeviceBuild& build) {
  if (build.targets.empty()) return "this build holds no device code (configure -DH3RT_CUDA=ON)";
  if (place.target.empty()) return place.reason;
  if (path == "b" && place.target != "sm_90a") {
    return "path B is wgmma, which sm_90a has and " + place.target + " has not";
  }
  std::string built;
  for (const std::string& target : build.targets) {
    if ("sm_" + target == place.target) return {};
    built += (built.empty() ? "sm_" : ", sm_") + target;
  }
  return "no code for " + place.target + " in this build, which has " + built;
}

std::vector<Entry> EntriesOf(const AttentionShape& shape, const AttentionOptions& options,
                             const Place& place, const DeviceBuild& build) {
  const std::string shape_reason = WhyNotShape(shape, options.dtype);
  std::vector<Entry> entries;
  for (const std::string path : {"b", "a16", "a32", "a1"}) {
    entries.push_back({"sage2_public", path,
                       shape_reason.empty() ? WhyNotPath(path, place, build) : shape_reason,
                       kRecordPrefix + path});
  }
  const bool divides = shape.k_heads > 0 && shape.q_heads % shape.k_heads == 0;
  std::string host;
  if (shape.head_dim < 1) {
    host = "its head dimension is over 0";
  } else if (shape.q_heads > 0 && !divides) {
    host =
        fmt::format("{} query heads are no multiple of {} key heads", shape.q_heads, shape.k_heads);
  }
  if (host.empty() && options.causal && shape.q_len != shape.k_len) {
    host = "its causal mask is aligned at the last key, the exact one at the first";
  }
  entries.push_back({"cpu", "", host, ""});
  entries.push_back({"ref", "", host, ""});
  return entries;
}

// What the laboratory has decided about a record, as far as its files are here.
struct Decided {
  Json status;    // null: no such record
  Json manifest;  // null: no entry
};

class Laboratory {
 public:
  explicit Laboratory(const std::string& root) {
    lab::Findings findings;
    const lab::Store store{root};
    registry_ = lab::LoadRegistry(store, findings);
    if (const auto text = lab::ReadText(store, lab::kManifestFile, findings)) {
      manifest_ = lab::ParseDocument(*text, lab::kManifestFile, 1, findings);
    }
  }
  Decided Of(const std::string& id) const {
    Decided decided;
    if (registry_) {
      if (const lab::Record* record = registry_->Find(id)) {
        decided.status = lab::TextAt(record->json, "status");
      }
    }
    if (manifest_) {
      if (const lab::Doc* entry = lab::FindBy(lab::At(*manifest_, "entries"), "id", id)) {
        decided.manifest = ToJson(*entry);
      }
    }
    return decided;
  }
  std::string RecordText(const Decided& decided) const {
    if (!registry_) return "no registry here";
    return decided.status.is_null() ? "not in the registry" : decided.status.get<std::string>();
  }
  std::string ManifestText(const Decided& decided) const {
    if (!manifest_) return "no manifest here: nothing is preferred";
    return decided.manifest.is_null() ? "not in the manifest: not preferred"
                                      : "preferred for " + decided.manifest["class"].dump();
  }

 private:
  std::optional<lab::Registry> registry_;
  std::optional<lab::Doc> manifest_;
};

absl::StatusOr<Outcome> ExplainAttention(const AttentionOptions& options, bool json) {
  H3RT_ASSIGN_OR_RETURN(const AttentionShape shape, ParseShape(options.shape));
  const DeviceBuild build = ThisDeviceBuild();
  H3RT_ASSIGN_OR_RETURN(const Place place, PlaceOf(options, build));
  const Laboratory laboratory(options.root);
  std::string text = fmt::format("attention of {}, {}{}, on {}\n", options.shape, options.dtype,
                                 options.causal ? ", causal" : "",
                                 place.target.empty() ? place.reason : place.target);
  Json list = Json::array();
  std::string first;
  for (const Entry& entry : EntriesOf(shape, options, place, build)) {
    const std::string name = entry.path.empty() ? entry.name : entry.name + " " + entry.path;
    if (first.empty() && entry.reason.empty()) first = name;
    Json item = {{"name", entry.name},
                 {"path", entry.path.empty() ? Json() : Json(entry.path)},
                 {"takes_it", entry.reason.empty()},
                 {"reason", entry.reason.empty() ? Json() : Json(entry.reason)}};
    text +=
        fmt::format("  {:<17} {}\n", name, entry.reason.empty() ? "yes" : "no: " + entry.reason);
    if (!entry.record.empty()) {
      const Decided decided = laboratory.Of(entry.record);
      item["record"] = entry.record;
      item["status"] = decided.status;
      item["manifest"] = decided.manifest;
      text += fmt::format("  {:<17} record {}: {}; {}\n", "", entry.record,
                          laboratory.RecordText(decided), laboratory.ManifestText(decided));
    }
    list.push_back(std::move(item));
  }
  text +=
      first.empty() ? "nothing takes this problem\n" : "the first that takes it: " + first + "\n";
  if (!json) std::fputs(text.c_str(), stdout);
  Outcome outcome{.json = {{"op", "attention"},
                           {"device", place.target.empty() ? Json() : Json(place.target)},
                           {"first", first.empty() ? Json() : Json(first)},
                           {"implementations", list}}};
  if (first.empty()) outcome.code = ExitCode::kAnswerIsNo;
  return outcome;
}

// One batch of one float32 attention on the host.
absl::Status CpuBatch(const ExactProblem& p, int64_t batch, const ExecContext& context) {
  const auto widen = [&](const ExactInput& from, int64_t len, int64_t heads) {
    const auto* const data = static_cast<const uint16_t*>(from.data) + batch * from.batch_stride;
    std::vector<float> to(static_cast<size_t>(len * heads * p.head_dim));
    size_t at = 0;
    for (int64_t n = 0; n < len; ++n) {
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t d = 0; d < p.head_dim; ++d) {
          to[at++] = WidenExact(p.type, data[n * from.row_stride + h * from.head_stride + d]);
        }
      }
    }
    return to;
  };
  std::vector<float> q = widen(p.q, p.q_len, p.q_heads);
  std::vector<float> k = widen(p.k, p.k_len, p.k_heads);
  std::vector<float> v = widen(p.v, p.k_len, p.k_heads);
  std::vector<float> o(q.size());
  AttentionParams params;
  params.q = TensorView::Of(q.data(), {p.q_len, p.q_heads, p.head_dim});
  params.k = TensorView::Of(k.data(), {p.k_len, p.k_heads, p.head_dim});
  params.v = TensorView::Of(v.data(), {p.k_len, p.k_heads, p.head_dim});
  params.o = TensorView::Of(o.data(), {p.q_len, p.q_heads, p.head_dim});
  params.scale = p.sm_scale;
  params.causal = p.causal;
  H3RT_RETURN_IF_ERROR(Attention(params, context));
  auto* to = static_cast<uint16_t*>(p.o.data) + batch * p.o.batch_stride;
  size_t at = 0;
  for (int64_t n = 0; n < p.q_len; ++n) {
    for (int64_t h = 0; h < p.q_heads; ++h) {
      for (int64_t d = 0; d < p.head_dim; ++d) {
        to[n * p.o.row_stride + h * p.o.head_stride + d] = NarrowExact(p.type, o[at++]);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

lab::HostAttention CpuAttention() {
  return [](const ExactProblem& problem, ThreadPool& pool) -> absl::Status {
    if (problem.causal && problem.q_len != problem.k_len) {
      return Unimplemented({.what = "causal attention of unequal lengths by cpu"});
    }
    const ExecContext context = {.pool = &pool, .cancel = &GlobalCancel(), .impls = nullptr};
    for (int64_t b = 0; b < problem.batch; ++b) {
      H3RT_RETURN_IF_ERROR(CpuBatch(problem, b, context));
    }
    return absl::OkStatus();
  };
}

void AddExplain(CLI::App& app, Invocation& invocation) {
  CLI::App* explain = app.add_subcommand(
      "explain", "Say what would run a problem of an op, and why not the others");
  explain->require_subcommand(1);
  auto options = std::make_shared<AttentionOptions>();
  CLI::App* command = explain->add_subcommand("attention", "Attention");
  command
      ->add_option("--shape", options->shape,
                   "B,NQ,NK,HQ,HK,D: batch, queries, keys, heads of both, head dimension")
      ->required();
  command->add_option("--dtype", options->dtype, "bf16, f16 or f32")
      ->check(CLI::IsMember({"bf16", "f16", "f32"}))
      ->capture_default_str();
  command->add_flag("--causal", options->causal, "A query sees no later key");
  command->add_option("--device", options->device,
                      "An architecture, as sm_90a; default: that of the first GPU");
  command->add_option("--root", options->root, "Folder with research/")->capture_default_str();
  AddJsonFlag(*command, invocation);
  RefuseEmptyValues(*command);
  explain->footer(
      "The list in order of preference, each no with its reason; for each path of exact attention\n"
      "the status of its record in the registry and what the production manifest says. Exit 1 "
      "when\n"
      "nothing takes the problem.");
  command->callback([options, &invocation] {
    invocation.run = [options, &invocation] { return ExplainAttention(*options, invocation.json); };
  });
}

}  // namespace h3rt::cli
