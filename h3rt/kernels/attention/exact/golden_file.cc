#include "h3rt/kernels/attention/exact/golden_file.h"

#include <array>
#include <set>

#include "h3rt/base/file.h"
#include "h3rt/base/json.h"

namespace h3rt {
namespace {

constexpr int64_t kMostExtent = int64_t{1} << 31;
// 16 GiB a tensor: inputs are made in memory.
constexpr int64_t kMostElements = int64_t{1} << 33;
constexpr std::string_view kHashEnd = "_sha256";

struct PathName {
  ExactPath path;
  std::string_view name;
};
constexpr std::array<PathName, 4> kPaths = {{{ExactPath::kA16, "sm89.fp32+fp16"},
                                             {ExactPath::kA32, "sm89.fp32+fp32"},
                                             {ExactPath::kA1, "sm89.fp32"},
                                             {ExactPath::kB, "sm90.fp32+fp32"}}};

std::string_view NameOf(ExactGranularity granularity) {
  return granularity == ExactGranularity::kPerWarp ? "per_warp" : "per_thread";
}

bool IsHash(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

absl::Status NotAHash(std::string_view key, std::string_view got, std::string_view where) {
  return InvalidArgument({.what = "key \"" + std::string(key) + "\"",
                          .got = "\"" + std::string(got.substr(0, 80)) + "\"",
                          .wanted = "64 lower-case hex digits",
                          .where = std::string(where)});
}

absl::StatusOr<std::string> Hash(const Json& object, std::string_view key, std::string_view where) {
  H3RT_ASSIGN_OR_RETURN(std::string text, JsonString(object, key, where));
  if (!IsHash(text)) return NotAHash(key, text, where);
  return text;
}

absl::StatusOr<int64_t> Extent(const Json& object, std::string_view key, std::string_view where) {
  H3RT_ASSIGN_OR_RETURN(const int64_t value, JsonInt(object, key, where));
  if (value < 1 || value > kMostExtent) {
    return InvalidArgument({.what = "key \"" + std::string(key) + "\"",
                            .got = std::to_string(value),
                            .wanted = "1 to " + std::to_string(kMostExtent),
                            .where = std::string(where)});
  }
  return value;
}

absl::StatusOr<bool> Flag(const Json& object, std::string_view key, std::string_view where) {
  const auto it = object.find(std::string(key));
  if (it == object.end() || !it->is_boolean()) {
    return InvalidArgument({.what = "key \"" + std::string(key) + "\"",
                            .got = it == object.end() ? "nothing" : JsonSnippet(*it),
                            .wanted = "true or false",
                            .where = std::string(where)});
  }
  return it->get<bool>();
}

absl::Status CheckElements(std::initializer_list<int64_t> extents, std::string_view what,
                           std::string_view where) {
  int64_t elements = 1;
  for (const int64_t extent : extents) {
    if (extent > kMostElements / elements) {
      return InvalidArgument({.what = "elements of " + std::string(what),
                              .got = "over " + std::to_string(kMostElements),
                              .wanted = "at most that",
                              .where = std::string(where)});
    }
    elements *= extent;
  }
  return absl::OkStatus();
}

absl::StatusOr<ExactInputSpec> ParseInputs(const Json& json, std::string_view where) {
  ExactInputSpec spec;
  H3RT_ASSIGN_OR_RETURN(spec.batch, Extent(json, "B", where));
  H3RT_ASSIGN_OR_RETURN(spec.q_len, Extent(json, "Nq", where));
  H3RT_ASSIGN_OR_RETURN(spec.k_len, Extent(json, "Nk", where));
  H3RT_ASSIGN_OR_RETURN(spec.q_heads, Extent(json, "Hq", where));
  H3RT_ASSIGN_OR_RETURN(spec.k_heads, Extent(json, "Hk", where));
  H3RT_ASSIGN_OR_RETURN(spec.head_dim, Extent(json, "D", where));
  if (spec.q_heads % spec.k_heads != 0) {
    return InvalidArgument({.what = "key \"Hq\"",
                            .got = std::to_string(spec.q_heads),
                            .wanted = "a multiple of Hk = " + std::to_string(spec.k_heads),
                            .where = std::string(where)});
  }
  H3RT_RETURN_IF_ERROR(
      CheckElements({spec.batch, spec.q_len, spec.q_heads, spec.head_dim}, "q", where));
  H3RT_RETURN_IF_ERROR(
      CheckElements({spec.batch, spec.k_len, spec.k_heads, spec.head_dim}, "k", where));
  H3RT_ASSIGN_OR_RETURN(const int64_t seed, JsonInt(json, "seed", where));
  spec.seed = static_cast<uint64_t>(seed);
  H3RT_ASSIGN_OR_RETURN(const std::string dtype, JsonString(json, "dtype", where));
  if (dtype != "bf16" && dtype != "fp16") {
    return InvalidArgument({.what = "key \"dtype\"",
                            .got = dtype,
                            .wanted = "bf16 or fp16",
                            .where = std::string(where)});
  }
  spec.type = dtype == "bf16" ? ExactType::kBf16 : ExactType::kF16;
  if (json.contains("bias")) {
    H3RT_ASSIGN_OR_RETURN(spec.bias, JsonDouble(json, "bias", where));
  }
  if (json.contains("flat")) {
    H3RT_ASSIGN_OR_RETURN(spec.flat, Flag(json, "flat", where));
  }
  return spec;
}

absl::StatusOr<GoldenOutput> ParseOutput(const std::string& key, const Json& json, int64_t heads,
                                         std::string_view where) {
  GoldenOutput output;
  output.key = key;
  bool known = false;
  for (const PathName& path : kPaths) {
    for (const auto granularity : {ExactGranularity::kPerWarp, ExactGranularity::kPerThread}) {
      if (key != GoldenKey(path.path, granularity)) continue;
      output.path = path.path;
      output.granularity = granularity;
      known = true;
    }
  }
  if (!known) {
    return InvalidArgument({.what = "path and granularity",
                            .got = key.substr(0, 80),
                            .wanted = "such as \"sm90.fp32+fp32.per_warp\"",
                            .where = std::string(where)});
  }
  const std::string place = std::string(where) + ", " + key;
  H3RT_ASSIGN_OR_RETURN(output.o_sha256, Hash(json, "o_sha256", place));
  H3RT_ASSIGN_OR_RETURN(output.lse_sha256, Hash(json, "lse_sha256", place));
  H3RT_ASSIGN_OR_RETURN(output.lse_raw_sha256, Hash(json, "lse_raw_sha256", place));
  const auto per_head = json.find("per_head_sha256");
  if (per_head == json.end() || !per_head->is_array() ||
      per_head->size() != static_cast<size_t>(heads)) {
    return InvalidArgument({.what = "key \"per_head_sha256\"",
                            .got = per_head == json.end() ? "nothing" : JsonSnippet(*per_head),
                            .wanted = "a list of " + std::to_string(heads) + " hashes",
                            .where = place});
  }
  for (const Json& hash : *per_head) {
    const std::string text = hash.is_string() ? hash.get<std::string>() : JsonSnippet(hash);
    if (!hash.is_string() || !IsHash(text)) return NotAHash("per_head_sha256", text, place);
    output.per_head_sha256.push_back(text);
  }
  if (json.contains("rel_l2_vs_f32")) {
    H3RT_ASSIGN_OR_RETURN(output.rel_l2, JsonDouble(json, "rel_l2_vs_f32", place));
    if (*output.rel_l2 < 0) {
      return InvalidArgument({.what = "key \"rel_l2_vs_f32\"",
                              .got = JsonSnippet(json["rel_l2_vs_f32"]),
                              .wanted = "0 or more",
                              .where = place});
    }
  }
  return output;
}

// A name of a case is also that of a file beside the index, and is printed.
absl::Status CheckName(const std::string& name, std::string_view where) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  if (!name.empty() && name.size() <= 80 && name[0] != '.' &&
      name.find_first_not_of(kLetters) == name.npos) {
    return absl::OkStatus();
  }
  return InvalidArgument({.what = "key \"name\"",
                          .got = JsonSnippet(Json(name)),
                          .wanted = "1 to 80 letters, digits, _, - and ., the first not a .",
                          .where = std::string(where)});
}

absl::StatusOr<GoldenCase> ParseCase(const std::string& section, const Json& json,
                                     std::string_view source) {
  GoldenCase golden;
  golden.section = section;
  H3RT_ASSIGN_OR_RETURN(golden.name, JsonString(json, "name", source));
  H3RT_RETURN_IF_ERROR(CheckName(golden.name, source));
  const std::string where = std::string(source) + ", case " + golden.name;
  H3RT_ASSIGN_OR_RETURN(golden.inputs, ParseInputs(json, where));
  H3RT_ASSIGN_OR_RETURN(golden.causal, Flag(json, "causal", where));
  H3RT_ASSIGN_OR_RETURN(golden.q_sha256, Hash(json, "q_sha256", where));
  H3RT_ASSIGN_OR_RETURN(golden.k_sha256, Hash(json, "k_sha256", where));
  H3RT_ASSIGN_OR_RETURN(golden.v_sha256, Hash(json, "v_sha256", where));
  H3RT_ASSIGN_OR_RETURN(golden.k_mean_sha256, Hash(json, "k_mean_sha256", where));
  for (const auto& [key, value] : json.items()) {
    const std::string_view view = key;
    // "sm90.per_warp.q_int8_sha256": the hashes of the inputs have no dot.
    if (view.find('.') == view.npos || view.size() <= kHashEnd.size() ||
        view.substr(view.size() - kHashEnd.size()) != kHashEnd) {
      continue;
    }
    H3RT_ASSIGN_OR_RETURN(std::string hash, Hash(json, key, where));
    golden.prepared.emplace(view.substr(0, view.size() - kHashEnd.size()), std::move(hash));
  }
  const auto out = json.find("out");
  if (out == json.end() || !out->is_object()) {
    return InvalidArgument({.what = "key \"out\"",
                            .got = out == json.end() ? "nothing" : JsonSnippet(*out),
                            .wanted = "an object",
                            .where = where});
  }
  for (const auto& [key, value] : out->items()) {
    H3RT_ASSIGN_OR_RETURN(GoldenOutput output,
                          ParseOutput(key, value, golden.inputs.q_heads, where));
    golden.outputs.push_back(std::move(output));
  }
  return golden;
}

}  // namespace

const GoldenCase* GoldenIndex::Find(std::string_view name) const {
  for (const GoldenCase& golden : cases) {
    if (golden.name == name) return &golden;
  }
  return nullptr;
}

std::string GoldenKey(ExactPath path, ExactGranularity granularity) {
  for (const PathName& entry : kPaths) {
    if (entry.path == path) return std::string(entry.name) + "." + std::string(NameOf(granularity));
  }
  return "";
}

absl::StatusOr<GoldenIndex> ParseGoldenIndex(std::string_view text, std::string_view where) {
  H3RT_ASSIGN_OR_RETURN(const Json json, ParseJson(text, where));
  GoldenIndex index;
  H3RT_ASSIGN_OR_RETURN(index.device, JsonString(json, "device", where));
  const auto sections = json.find("cases");
  if (sections == json.end() || !sections->is_object()) {
    return InvalidArgument({.what = "key \"cases\"",
                            .got = sections == json.end() ? "nothing" : JsonSnippet(*sections),
                            .wanted = "an object of lists of cases",
                            .where = std::string(where)});
  }
  std::set<std::string> names;
  for (const auto& [section, list] : sections->items()) {
    if (!list.is_array()) {
      return InvalidArgument({.what = "cases." + section.substr(0, 80),
                              .got = JsonSnippet(list),
                              .wanted = "a list of cases",
                              .where = std::string(where)});
    }
    for (const Json& item : list) {
      H3RT_ASSIGN_OR_RETURN(GoldenCase golden, ParseCase(section, item, where));
      if (!names.insert(golden.name).second) {
        return InvalidArgument({.what = "two cases of one name",
                                .got = golden.name.substr(0, 80),
                                .where = std::string(where)});
      }
      index.cases.push_back(std::move(golden));
    }
  }
  return index;
}

absl::StatusOr<GoldenIndex> ReadGoldenIndex(const std::string& path) {
  H3RT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, 64ull << 20));
  return ParseGoldenIndex(text, path);
}

ExactProblem GoldenProblem(const GoldenCase& golden, ExactPath path, ExactGranularity granularity) {
  ExactProblem problem = DenseProblem(golden.inputs, path, granularity);
  problem.causal = golden.causal;
  problem.zero_v_nan = true;
  return problem;
}

}  // namespace h3rt
