// Cooperative cancellation, checked between tasks of every parallel loop.
#pragma once

#include <atomic>

namespace h3rt {

// Safe to Cancel() from a signal handler or another thread.
class CancelToken {
 public:
  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  void Reset() { cancelled_.store(false, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> cancelled_{false};
  static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");
};

}  // namespace h3rt
