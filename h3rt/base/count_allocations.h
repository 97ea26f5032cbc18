// Counts the heap of a test program, to compare what a plan promised with what was held. Include in
// exactly one source file of the program: it takes the place of malloc and its family. Where that
// is not possible (another libc, a sanitizer's own malloc) kCountsAllocations is false.
#pragma once

#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define H3RT_FOREIGN_MALLOC 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define H3RT_FOREIGN_MALLOC 1
#endif

namespace h3rt {

inline std::atomic<int64_t> allocated_now{0};
inline std::atomic<int64_t> allocated_most{0};

// Most bytes held at once since the object was made, beyond those that were held then.
class AllocationPeak {
 public:
  AllocationPeak() : before_(allocated_now.load()) { allocated_most.store(before_); }
  int64_t bytes() const { return allocated_most.load() - before_; }

 private:
  int64_t before_;
};

inline void CountAllocation(void* p, int64_t sign) {
  if (p == nullptr) return;
  const int64_t now = allocated_now += sign * static_cast<int64_t>(malloc_usable_size(p));
  int64_t most = allocated_most.load();
  while (now > most && !allocated_most.compare_exchange_weak(most, now)) {
  }
}

#ifdef H3RT_FOREIGN_MALLOC
inline constexpr bool kCountsAllocations = false;
#else
inline constexpr bool kCountsAllocations = true;
#endif

}  // namespace h3rt

#ifndef H3RT_FOREIGN_MALLOC
extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier): glibc's names of the functions that are replaced
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* p, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* p);

void* malloc(size_t size) {
  void* p = __libc_malloc(size);
  h3rt::CountAllocation(p, 1);
  return p;
}

void* calloc(size_t count, size_t size) {
  void* p = __libc_calloc(count, size);
  h3rt::CountAllocation(p, 1);
  return p;
}

void* realloc(void* p, size_t size) {
  h3rt::CountAllocation(p, -1);
  void* moved = __libc_realloc(p, size);
  if (moved != nullptr || size == 0) {
    h3rt::CountAllocation(moved, 1);
  } else {
    h3rt::CountAllocation(p, 1);
  }
  return moved;
}

void* aligned_alloc(size_t alignment, size_t size) {
  void* p = __libc_memalign(alignment, size);
  h3rt::CountAllocation(p, 1);
  return p;
}

void* memalign(size_t alignment, size_t size) { return aligned_alloc(alignment, size); }

int posix_memalign(void** out, size_t alignment, size_t size) {
  void* p = aligned_alloc(alignment, size);
  if (p == nullptr) return ENOMEM;
  *out = p;
  return 0;
}

void free(void* p) {
  h3rt::CountAllocation(p, -1);
  __libc_free(p);
}
// NOLINTEND(bugprone-reserved-identifier)

}  // extern "C"
#endif
