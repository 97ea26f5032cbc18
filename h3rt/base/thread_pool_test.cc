#include "h3rt/base/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "h3rt/base/exec.h"

namespace h3rt {
namespace {

class ThreadPoolOf : public ::testing::TestWithParam<int> {
 protected:
  ThreadPool pool_{GetParam()};
};

TEST_P(ThreadPoolOf, EveryIndexRunsOnce) {
  EXPECT_EQ(pool_.threads(), GetParam());
  for (const int64_t n : {0, 1, 2, 7, 1000}) {
    std::vector<std::atomic<int>> ran(static_cast<size_t>(n));
    ASSERT_TRUE(pool_
                    .ParallelFor(n, nullptr,
                                 [&](int64_t i) {
                                   ran[static_cast<size_t>(i)].fetch_add(1);
                                   return absl::OkStatus();
                                 })
                    .ok());
    for (const auto& count : ran) ASSERT_EQ(count.load(), 1);
  }
  EXPECT_TRUE(pool_.ParallelFor(-3, nullptr, [](int64_t) { return Internal({}); }).ok());
}

TEST_P(ThreadPoolOf, AThousandLoopsInARowAllComplete) {
  std::atomic<int64_t> sum = 0;
  for (int loop = 0; loop < 1000; ++loop) {
    ASSERT_TRUE(pool_
                    .ParallelFor(17, nullptr,
                                 [&](int64_t i) {
                                   sum.fetch_add(i);
                                   return absl::OkStatus();
                                 })
                    .ok());
    ASSERT_EQ(sum.load(), (loop + 1) * 17 * 16 / 2) << "the loop had ended when it returned";
  }
}

TEST_P(ThreadPoolOf, TheErrorOfTheLowestIndexThatRanIsReturned) {
  for (int repeat = 0; repeat < 50; ++repeat) {
    std::atomic<int64_t> lowest = INT64_MAX;
    const absl::Status status = pool_.ParallelFor(200, nullptr, [&](int64_t i) {
      if (i % 10 != 3) return absl::OkStatus();
      int64_t seen = lowest.load();
      while (i < seen && !lowest.compare_exchange_weak(seen, i)) {
      }
      return InvalidArgument({.what = std::to_string(i)});
    });
    ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    ASSERT_EQ(MessageOf(status), std::to_string(lowest.load()));
    // Indices are handed out in order, so the first that can fail is always among those that ran.
    ASSERT_EQ(lowest.load(), 3);
  }
}

TEST_P(ThreadPoolOf, AnErrorStopsTasksThatHaveNotBegun) {
  std::atomic<int64_t> ran = 0;
  const absl::Status status = pool_.ParallelFor(1000000, nullptr, [&](int64_t i) {
    ran.fetch_add(1);
    return i == 5 ? DataLoss({.what = "five"}) : absl::OkStatus();
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_LT(ran.load(), 1000000);
  EXPECT_TRUE(pool_.ParallelFor(3, nullptr, [](int64_t) { return absl::OkStatus(); }).ok())
      << "the next loop starts clean";
}

TEST_P(ThreadPoolOf, CancelStopsTheLoopWithItsOwnCode) {
  CancelToken cancel;
  std::atomic<int64_t> ran = 0;
  const absl::Status status = pool_.ParallelFor(1000000, &cancel, [&](int64_t) {
    if (ran.fetch_add(1) == 10) cancel.Cancel();
    return absl::OkStatus();
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_GT(ran.load(), 10);
  EXPECT_LT(ran.load(), 1000000);
  std::atomic<int> after = 0;
  const auto count = [&](int64_t) {
    after.fetch_add(1);
    return absl::OkStatus();
  };
  EXPECT_EQ(pool_.ParallelFor(4, &cancel, count).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(pool_.ParallelFor(1, &cancel, count).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(after.load(), 0) << "already cancelled: nothing runs";
  cancel.Reset();
  EXPECT_TRUE(pool_.ParallelFor(4, &cancel, count).ok());
  EXPECT_EQ(after.load(), 4);
}

TEST_P(ThreadPoolOf, ALoopInsideATaskRunsOnThatThread) {
  std::vector<std::atomic<int>> ran(20 * 30);
  const absl::Status status = pool_.ParallelFor(20, nullptr, [&](int64_t i) {
    const std::thread::id outer = std::this_thread::get_id();
    const int worker = ThreadPool::CurrentWorker();
    return pool_.ParallelFor(30, nullptr, [&, i](int64_t j) {
      if (std::this_thread::get_id() != outer || ThreadPool::CurrentWorker() != worker) {
        return Internal({.what = "another thread"});
      }
      ran[static_cast<size_t>(i * 30 + j)].fetch_add(1);
      return absl::OkStatus();
    });
  });
  EXPECT_TRUE(status.ok()) << MessageOf(status);
  for (const auto& count : ran) ASSERT_EQ(count.load(), 1);
}

TEST_P(ThreadPoolOf, AnErrorInsideANestedLoopComesOut) {
  const absl::Status status = pool_.ParallelFor(8, nullptr, [&](int64_t) {
    return pool_.ParallelFor(8, nullptr, [](int64_t j) {
      return j == 2 ? NotFound({.what = "two"}) : absl::OkStatus();
    });
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
}

TEST_P(ThreadPoolOf, WorkersHaveIndicesBelowTheNumberOfThreads) {
  std::atomic<bool> good = true;
  ASSERT_TRUE(pool_
                  .ParallelFor(500, nullptr,
                               [&](int64_t) {
                                 const int worker = ThreadPool::CurrentWorker();
                                 if (worker < 0 || worker >= GetParam()) good = false;
                                 return absl::OkStatus();
                               })
                  .ok());
  EXPECT_TRUE(good.load());
  EXPECT_EQ(ThreadPool::CurrentWorker(), 0);
}

TEST_P(ThreadPoolOf, LoopsOfUnlikeThreadsQueueBehindEachOther) {
  std::atomic<int64_t> sum = 0;
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int loop = 0; loop < 50; ++loop) {
        const absl::Status status = pool_.ParallelFor(20, nullptr, [&](int64_t i) {
          sum.fetch_add(i + 1);
          return absl::OkStatus();
        });
        if (!status.ok()) sum.fetch_add(1000000);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum.load(), 4 * 50 * 20 * 21 / 2);
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolOf, ::testing::Values(1, 2, 3, 8));

TEST(ThreadPool, TasksRunOnSeveralThreadsAtOnce) {
  ThreadPool pool(3);
  // Three tasks that each wait for the other two can only end on three threads.
  std::atomic<int> arrived = 0;
  const absl::Status status = pool.ParallelFor(3, nullptr, [&](int64_t) {
    arrived.fetch_add(1);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (arrived.load() < 3) {
      if (std::chrono::steady_clock::now() > deadline) return Internal({.what = "alone"});
      std::this_thread::yield();
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << MessageOf(status);
}

TEST(ThreadPool, FewerThanOneThreadIsOne) {
  EXPECT_EQ(ThreadPool(0).threads(), 1);
  EXPECT_EQ(ThreadPool(-5).threads(), 1);
  EXPECT_GE(ThreadPool::HardwareThreads(), 1);
}

TEST(ExecContext, ImplementationsAreLookedUpByOp) {
  ThreadPool pool(1);
  ExecContext context{.pool = &pool};
  EXPECT_EQ(context.Impl("linear"), "");
  const ImplChoice impls = {{"linear", "ref"}};
  context.impls = &impls;
  EXPECT_EQ(context.Impl("linear"), "ref");
  EXPECT_EQ(context.Impl("conv"), "");
  CancelToken cancel;
  cancel.Cancel();
  context.cancel = &cancel;
  EXPECT_EQ(context.ParallelFor(2, [](int64_t) { return absl::OkStatus(); }).code(),
            absl::StatusCode::kCancelled);
}

TEST(ThreadPool, AnExceptionInATaskIsAnErrorOfTheLoop) {
  for (const int threads : {1, 4}) {
    ThreadPool pool(threads);
    const absl::Status memory = pool.ParallelFor(64, nullptr, [](int64_t i) -> absl::Status {
      if (i == 17) throw std::bad_alloc();
      return absl::OkStatus();
    });
    EXPECT_EQ(memory.code(), absl::StatusCode::kResourceExhausted) << threads;
    const absl::Status other = pool.ParallelFor(64, nullptr, [](int64_t i) -> absl::Status {
      if (i == 17) throw std::runtime_error("seventeen");
      return absl::OkStatus();
    });
    EXPECT_EQ(other.code(), absl::StatusCode::kInternal) << threads;
    EXPECT_NE(MessageOf(other).find("seventeen"), std::string::npos);
    int64_t ran = 0;
    std::mutex mutex;
    EXPECT_TRUE(pool.ParallelFor(64, nullptr,
                                 [&](int64_t) {
                                   const std::lock_guard<std::mutex> lock(mutex);
                                   ++ran;
                                   return absl::OkStatus();
                                 })
                    .ok());
    EXPECT_EQ(ran, 64) << "the pool works on after an exception";
  }
}

}  // namespace
}  // namespace h3rt
