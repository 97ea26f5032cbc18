#include "h3rt/cuda/architecture_table.h"

#include <algorithm>
#include <array>
#include <string_view>

// The `cuda` preset states the targets as "90a,120a,121a".
#ifndef H3RT_CUDA_TARGETS
#define H3RT_CUDA_TARGETS ""
#endif

namespace h3rt {
namespace {

struct Entry {
  ComputeCapability capability;
  const char* products;
  const char* target;
  ExactAttention attention;
};

constexpr std::array<Entry, 5> kEntries = {{
    {{8, 9}, "GeForce RTX 40, L4, L40", "89", ExactAttention::kPathA16Thread},
    {{9, 0}, "H100, H200, GH200", "90a", ExactAttention::kPathBThread},
    {{10, 0}, "B200, GB200", "100a", ExactAttention::kNone},
    {{12, 0}, "GeForce RTX 50, RTX PRO Blackwell", "120a", ExactAttention::kPathA16Warp},
    {{12, 1}, "GB10 (DGX Spark)", "121a", ExactAttention::kPathA16Warp},
}};

std::string Joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::string NamesOfKnown() {
  std::string text;
  for (const Entry& entry : kEntries) {
    text += (text.empty() ? "" : ", ") + NameOf(entry.capability);
  }
  return text;
}

}  // namespace

const char* NameOf(ExactAttention attention) {
  switch (attention) {
    case ExactAttention::kNone:
      return "none";
    case ExactAttention::kPathA16Warp:
      return "path A16 per_warp";
    case ExactAttention::kPathA16Thread:
      return "path A16 per_thread";
    case ExactAttention::kPathBThread:
      return "path B per_thread";
  }
  return "none";
}

DeviceBuild ThisDeviceBuild() {
  DeviceBuild build;
  std::string_view rest = H3RT_CUDA_TARGETS;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    build.targets.emplace_back(rest.substr(0, comma));
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  }
  return build;
}

ArchitectureRow ArchitectureRowOf(const ComputeCapability& capability, const DeviceBuild& build) {
  ArchitectureRow row;
  row.capability = capability;
  const auto* const entry =
      std::find_if(kEntries.begin(), kEntries.end(),
                   [&](const Entry& candidate) { return candidate.capability == capability; });
  if (entry == kEntries.end()) {
    row.missing.push_back("an entry for compute capability " + NameOf(capability) +
                          " (the table knows " + NamesOfKnown() + ")");
    return row;
  }
  row.known = true;
  row.products = entry->products;
  row.target = entry->target;
  row.attention = entry->attention;
  row.built =
      std::find(build.targets.begin(), build.targets.end(), row.target) != build.targets.end();
  if (!row.built) {
    row.missing.push_back("device code for sm_" + row.target + " (this build has " +
                          (build.targets.empty() ? "no device code" : Joined(build.targets)) + ")");
  }
  if (row.attention == ExactAttention::kNone) {
    row.missing.push_back("an exact attention path for " + NameOf(capability) +
                          " (the public library dispatches none)");
    return row;
  }
  const bool has_kernel = std::find(build.attention.begin(), build.attention.end(),
                                    row.attention) != build.attention.end();
  if (!has_kernel) {
    row.missing.push_back("a kernel for attention " + std::string(NameOf(row.attention)));
  }
  row.runs_exact_attention = row.built && has_kernel;
  return row;
}

std::vector<ArchitectureRow> ArchitectureTable(const DeviceBuild& build) {
  std::vector<ArchitectureRow> rows;
  rows.reserve(kEntries.size());
  for (const Entry& entry : kEntries) rows.push_back(ArchitectureRowOf(entry.capability, build));
  return rows;
}

}  // namespace h3rt
