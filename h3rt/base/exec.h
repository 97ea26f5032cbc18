// What an op needs to run on the host: threads, cancellation, and which implementation was asked
// for.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "h3rt/base/cancel.h"
#include "h3rt/base/thread_pool.h"

namespace h3rt {

// Explicit choices of implementations, op name -> implementation name (`--impl attention=ref`). An
// op without an entry uses the first candidate of its list that supports the problem.
using ImplChoice = std::map<std::string, std::string, std::less<>>;

// Borrowed pointers; the owner (a session or a test) outlives every call. `pool` is never null.
struct ExecContext {
  ThreadPool* pool = nullptr;
  const CancelToken* cancel = nullptr;  // null: cannot be cancelled
  const ImplChoice* impls = nullptr;    // null: no explicit choice

  // The implementation asked for by name, empty for none.
  std::string_view Impl(std::string_view op) const {
    if (impls == nullptr) return {};
    const auto it = impls->find(op);
    return it == impls->end() ? std::string_view() : std::string_view(it->second);
  }

  absl::Status ParallelFor(int64_t n, const std::function<absl::Status(int64_t)>& body) const {
    return pool->ParallelFor(n, cancel, body);
  }
};

}  // namespace h3rt
