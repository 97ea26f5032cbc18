#include "h3rt/runtime/dispatch.h"

#include <algorithm>
#include <string_view>

namespace h3rt {
namespace {

std::string Join(const std::vector<const char*>& names) {
  std::string out;
  for (const char* name : names) out += (out.empty() ? "" : ", ") + std::string(name);
  return out;
}

}  // namespace

// A copy of the ops' own lists, held to them by a test that runs every entry.
std::span<const OpImplementations> OpTable() {
  static const std::vector<OpImplementations> table = {
      {"activation", {"cpu", "ref"}}, {"attention", {"cpu", "ref"}}, {"conv", {"onednn", "ref"}},
      {"linear", {"onednn", "ref"}},  {"modulate", {"cpu", "ref"}},  {"norm", {"cpu", "ref"}},
      {"rope", {"cpu", "ref"}}};
  return table;
}

absl::StatusOr<ImplChoice> ParseImplChoice(const std::vector<std::string>& entries) {
  ImplChoice choice;
  for (const std::string& entry : entries) {
    const size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == entry.size()) {
      return InvalidArgument({.what = "--impl", .got = entry, .wanted = "OP=NAME"});
    }
    const std::string op = entry.substr(0, equals);
    const std::string name = entry.substr(equals + 1);
    const auto row = std::find_if(OpTable().begin(), OpTable().end(),
                                  [&](const OpImplementations& r) { return op == r.op; });
    if (row == OpTable().end()) {
      std::vector<const char*> ops;
      for (const OpImplementations& r : OpTable()) ops.push_back(r.op);
      return InvalidArgument({.what = "op of --impl", .got = op, .wanted = "one of " + Join(ops)});
    }
    if (std::find(row->names.begin(), row->names.end(), std::string_view(name)) ==
        row->names.end()) {
      return InvalidArgument(
          {.what = "implementation of " + op, .got = name, .wanted = "one of " + Join(row->names)});
    }
    if (!choice.emplace(op, name).second) {
      return InvalidArgument({.what = "--impl names an op twice", .got = op});
    }
  }
  return choice;
}

}  // namespace h3rt
