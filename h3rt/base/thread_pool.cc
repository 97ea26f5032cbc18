#include "h3rt/base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <system_error>

#include "h3rt/base/exceptions.h"

namespace h3rt {
namespace {

thread_local int current_worker = 0;
thread_local bool inside_task = false;

// A task that throws must not end the process from a thread that nobody watches.
absl::Status RunTask(const std::function<absl::Status(int64_t)>& body, int64_t i) {
  try {
    return body(i);
  } catch (...) {
    return StatusOfException("parallel task");
  }
}

absl::Status RunInline(int64_t n, const CancelToken* cancel,
                       const std::function<absl::Status(int64_t)>& body) {
  for (int64_t i = 0; i < n; ++i) {
    if (cancel != nullptr && cancel->cancelled()) return Cancelled("");
    H3RT_RETURN_IF_ERROR(RunTask(body, i));
  }
  return absl::OkStatus();
}

}  // namespace

struct ThreadPool::Loop {
  int64_t n = 0;
  const CancelToken* cancel = nullptr;
  const std::function<absl::Status(int64_t)>* body = nullptr;
  std::atomic<int64_t> next{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;  // guards the two below
  int64_t error_index = -1;
  absl::Status error;

  void Fail(int64_t index, absl::Status status) {
    stop.store(true, std::memory_order_relaxed);
    const std::lock_guard<std::mutex> lock(mutex);
    if (error_index >= 0 && error_index <= index) return;
    error_index = index;
    error = std::move(status);
  }
};

ThreadPool::ThreadPool(int threads) {
  const int extra = std::max(threads, 1) - 1;
  workers_.reserve(static_cast<size_t>(extra));
  try {
    for (int i = 0; i < extra; ++i) workers_.emplace_back([this, i] { WorkerMain(i + 1); });
  } catch (const std::system_error&) {
    // The system gives no more threads: those that there are do the work, with the same result.
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

int ThreadPool::CurrentWorker() { return current_worker; }

int ThreadPool::HardwareThreads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(CPU_COUNT(&set), 1);
  return std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
}

void ThreadPool::RunTasks(Loop& loop) {
  inside_task = true;
  while (!loop.stop.load(std::memory_order_relaxed)) {
    const int64_t i = loop.next.fetch_add(1, std::memory_order_relaxed);
    if (i >= loop.n) break;
    if (loop.cancel != nullptr && loop.cancel->cancelled()) {
      loop.Fail(i, Cancelled(""));
      break;
    }
    if (absl::Status status = RunTask(*loop.body, i); !status.ok()) loop.Fail(i, std::move(status));
  }
  inside_task = false;
}

void ThreadPool::WorkerMain(int worker) {
  current_worker = worker;
  uint64_t seen = 0;
  for (;;) {
    Loop* loop = nullptr;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      wake_.wait(lock, [&] { return stopping_ || generation_ != seen; });
      if (stopping_) return;
      seen = generation_;
      loop = loop_;
      if (loop == nullptr) continue;  // woke after the loop had ended
      ++active_;
    }
    RunTasks(*loop);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      --active_;
    }
    done_.notify_one();
  }
}

absl::Status ThreadPool::ParallelFor(int64_t n, const CancelToken* cancel,
                                     const std::function<absl::Status(int64_t)>& body) {
  if (n <= 0) return absl::OkStatus();
  if (inside_task || workers_.empty() || n == 1) return RunInline(n, cancel, body);
  const std::lock_guard<std::mutex> submit(submit_mutex_);
  Loop loop;
  loop.n = n;
  loop.cancel = cancel;
  loop.body = &body;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    loop_ = &loop;
    ++generation_;
  }
  wake_.notify_all();
  RunTasks(loop);
  std::unique_lock<std::mutex> lock(mutex_);
  loop_ = nullptr;  // a worker that wakes from here on finds nothing
  done_.wait(lock, [&] { return active_ == 0; });
  return loop.error;
}

}  // namespace h3rt
