// A fixed set of threads that runs index loops. The split of a loop into tasks is the caller's and
// never depends on the number of threads, so results do not either.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "h3rt/base/cancel.h"
#include "h3rt/base/status.h"

namespace h3rt {

class ThreadPool {
 public:
  // `threads` counts the calling thread; values below 1 are taken as 1. Where the system refuses so
  // many, there are fewer; threads() tells.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Runs body(i) for i in [0, n), in any order, and returns when all are done. The first error (by
  // lowest index among those that ran) is returned and stops tasks that have not begun; so does
  // `cancel`, with kCancelled. Called from inside a task it runs the loop inline on that thread.
  // One loop at a time: calls from different threads queue behind each other.
  absl::Status ParallelFor(int64_t n, const CancelToken* cancel,
                           const std::function<absl::Status(int64_t)>& body);

  // The index of the current thread in its pool, 0 for the calling thread: for scratch buffers.
  static int CurrentWorker();

  // Hardware threads this process may use, at least 1.
  static int HardwareThreads();

 private:
  struct Loop;
  void WorkerMain(int worker);
  static void RunTasks(Loop& loop);

  std::vector<std::thread> workers_;
  std::mutex submit_mutex_;  // one loop at a time
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  Loop* loop_ = nullptr;
  uint64_t generation_ = 0;
  int active_ = 0;
  bool stopping_ = false;
};

}  // namespace h3rt
