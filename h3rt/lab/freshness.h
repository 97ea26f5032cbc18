// Whether evidence still speaks of the sources as they are.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "h3rt/ledger/store.h"

namespace h3rt::lab {

// The files that a set of sources reaches by #include "...", inside the project, themselves
// included; sorted, relative. System headers are left out: the compiler's build string stands for
// them. A missing root or a missing project include is kNotFound.
absl::StatusOr<std::vector<std::string>> ClosureOf(const Store& store,
                                                   const std::vector<std::string>& roots);
// SHA-256 over the sorted lines "<sha256>  <path>\n" of the closure.
absl::StatusOr<std::string> ClosureDigest(const Store& store,
                                          const std::vector<std::string>& roots);

enum class Cell { kSame, kChanged, kUnknown };

struct Freshness {
  // source, build, binary, inputs, harness, environment, policy, baseline.
  std::map<std::string, Cell> cells;
  bool stale = true;
  std::string reason;  // the dimension that made it stale, or how it was rescued
};

// What a machine with a compiler can add; both may be empty. `recompile` builds the subject's
// sources and returns the code digest of each kernel: without it a changed source is stale.
// `build_digest` gives what `subject.build_digest` would be with the flags and compilers at hand.
using Recompile =
    std::function<absl::StatusOr<std::map<std::string, std::string>>(const Doc& envelope)>;
struct Toolchain {
  Recompile recompile = {};
  std::function<std::string(const std::string& source_digest)> build_digest = {};
};
// Compares a piece of evidence with the tree.
Freshness FreshnessOf(const Store& store, const Evidence& evidence, const Doc& policy,
                      const Toolchain& toolchain = {});
// The digest of the sources that time: a change makes timings stale.
absl::StatusOr<std::string> HarnessDigest(const Store& store);

}  // namespace h3rt::lab
