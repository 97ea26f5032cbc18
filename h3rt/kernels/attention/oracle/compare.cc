#include "h3rt/kernels/attention/oracle/compare.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <tuple>

namespace h3rt {
namespace {

// How an observable is laid out after [BH, Nq].
enum class Layout : uint8_t {
  kKeys,    // [Nk]
  kEpochs,  // [E, width]
  kEnd,     // [width]
};

struct Observable {
  const char* name;
  Layout layout;
  int64_t width;  // elements an epoch, or at the end
  int64_t bytes;  // of an element
  const void* got;
  const void* wanted;
};

struct Extents {
  exact::Geometry geometry;
  int64_t rows = 0;  // over batches and heads
  int64_t epochs = 0;
  int64_t steps = 0;
  int64_t dim = 0;
};

Extents ExtentsOf(const ExactProblem& problem) {
  Extents e;
  e.geometry = exact::GeometryOf(problem.path);
  e.rows = problem.batch * problem.q_heads * problem.q_len;
  if (problem.q_len > 0) {
    e.epochs = exact::Epochs(e.geometry, (problem.q_len - 1) / e.geometry.cta_q, problem.k_len,
                             problem.causal);
  }
  e.steps = e.geometry.cta_k / kStepKeys;
  e.dim = problem.padded_dim();
  return e;
}

// In the order in which a kernel forms them.
std::array<Observable, 15> InTime(const Extents& e, const ExactCheckpoints& got,
                                  const ExactCheckpoints& wanted) {
  return {{{"qk", Layout::kKeys, 1, 4, got.qk, wanted.qk},
           {"dq", Layout::kEpochs, 4, 4, got.dq, wanted.dq},
           {"s", Layout::kEpochs, 4, 4, got.s, wanted.s},
           {"x", Layout::kKeys, 1, 4, got.x, wanted.x},
           {"m", Layout::kEpochs, 1, 4, got.m, wanted.m},
           {"a", Layout::kEpochs, 1, 4, got.a, wanted.a},
           {"p", Layout::kKeys, 1, 4, got.p, wanted.p},
           {"d_lane", Layout::kEpochs, 4, 4, got.d_lane, wanted.d_lane},
           {"p8", Layout::kKeys, 1, 1, got.p8, wanted.p8},
           {"u", Layout::kEpochs, e.steps * e.dim, 4, got.u, wanted.u},
           {"ro", Layout::kEpochs, e.dim, 4, got.ro, wanted.ro},
           {"d", Layout::kEnd, 1, 4, got.d, wanted.d},
           {"r", Layout::kEnd, 1, 4, got.r, wanted.r},
           {"out32", Layout::kEnd, e.dim, 4, got.out32, wanted.out32},
           {"lse2", Layout::kEnd, 1, 4, got.lse2, wanted.lse2}}};
}

uint64_t BitsAt(const void* data, int64_t index, int64_t bytes) {
  uint64_t bits = 0;  // little-endian: the low bytes
  std::memcpy(&bits, static_cast<const char*>(data) + index * bytes, static_cast<size_t>(bytes));
  return bits;
}

// The first difference of one observable, by epoch, head, row, place; epoch -1 where all is equal
// or the observable is of the end.
class Scan {
 public:
  Scan(const ExactProblem& problem, const Extents& extents, const Observable& observable)
      : problem_(problem), extents_(extents), observable_(observable) {}

  void Run() {
    for (int64_t at = 0; at < extents_.rows; ++at) Row(at);
    first_.differing = differing_;
    first_.observable = observable_.name;
  }
  int64_t compared() const { return compared_; }
  bool differs() const { return differing_ > 0; }
  const CheckpointDifference& first() const { return first_; }

 private:
  void Row(int64_t at) {
    const int64_t row = at % problem_.q_len;
    const int64_t keys = extents_.geometry.cta_k;
    const int64_t epochs = exact::Epochs(extents_.geometry, row / extents_.geometry.cta_q,
                                         problem_.k_len, problem_.causal);
    switch (observable_.layout) {
      case Layout::kKeys:
        for (int64_t key = 0; key < std::min(problem_.k_len, epochs * keys); ++key) {
          Element(at, key / keys, key, at * problem_.k_len + key);
        }
        break;
      case Layout::kEpochs:
        for (int64_t epoch = 0; epoch < epochs; ++epoch) {
          for (int64_t i = 0; i < observable_.width; ++i) {
            Element(at, epoch, i, (at * extents_.epochs + epoch) * observable_.width + i);
          }
        }
        break;
      case Layout::kEnd:
        for (int64_t i = 0; i < observable_.width; ++i) {
          Element(at, -1, i, at * observable_.width + i);
        }
        break;
    }
  }

  // Rows come in order of head and row, so only an earlier epoch replaces what was found.
  void Element(int64_t at, int64_t epoch, int64_t place, int64_t index) {
    ++compared_;
    const uint64_t got = BitsAt(observable_.got, index, observable_.bytes);
    const uint64_t wanted = BitsAt(observable_.wanted, index, observable_.bytes);
    if (got == wanted) return;
    if (differing_++ > 0 && epoch >= first_.epoch) return;
    first_.epoch = epoch;
    first_.row = at % problem_.q_len;
    first_.head = at / problem_.q_len;
    first_.place = place;
    first_.got = got;
    first_.wanted = wanted;
  }

  const ExactProblem& problem_;
  const Extents& extents_;
  const Observable& observable_;
  int64_t compared_ = 0;
  int64_t differing_ = 0;
  CheckpointDifference first_;
};

// Whether `a`, whose observable comes before that of `b`, is later in time all the same.
bool Later(const CheckpointDifference& a, const CheckpointDifference& b) {
  return b.epoch >= 0 && (a.epoch < 0 || a.epoch > b.epoch);
}

constexpr int64_t kAlign = 256;

}  // namespace

std::string CheckpointDifference::Text() const {
  std::string text = epoch < 0 ? "end" : "epoch " + std::to_string(epoch);
  text += ", row " + std::to_string(row) + ", head " + std::to_string(head) + ": " + observable;
  const bool one = observable == "m" || observable == "a" || observable == "d" ||
                   observable == "r" || observable == "lse2";
  if (!one) text += "[" + std::to_string(place) + "]";
  std::array<char, 96> values{};
  std::snprintf(values.data(), values.size(), ": got 0x%llx, wanted 0x%llx (%lld differ)",
                static_cast<unsigned long long>(got), static_cast<unsigned long long>(wanted),
                static_cast<long long>(differing));
  return text + values.data();
}

CheckpointComparison CompareCheckpoints(const ExactProblem& problem, const ExactCheckpoints& got,
                                        const ExactCheckpoints& wanted) {
  CheckpointComparison result;
  const Extents extents = ExtentsOf(problem);
  for (const Observable& observable : InTime(extents, got, wanted)) {
    if (observable.got == nullptr || observable.wanted == nullptr) continue;
    Scan scan(problem, extents, observable);
    scan.Run();
    result.compared += scan.compared();
    if (!scan.differs()) continue;
    if (result.first.empty()) {
      result.first.push_back(scan.first());
    } else if (Later(result.first[0], scan.first())) {
      result.first[0] = scan.first();
    }
  }
  return result;
}

CheckpointSizes SizesOfCheckpoints(const ExactProblem& problem) {
  const Extents e = ExtentsOf(problem);
  CheckpointSizes sizes;
  sizes.qk = sizes.x = sizes.p = sizes.p8 = e.rows * problem.k_len;
  sizes.dq = sizes.s = sizes.d_lane = e.rows * e.epochs * 4;
  sizes.m = sizes.a = e.rows * e.epochs;
  sizes.u = e.rows * e.epochs * e.steps * e.dim;
  sizes.ro = e.rows * e.epochs * e.dim;
  sizes.d = sizes.r = sizes.lse2 = e.rows;
  sizes.out32 = e.rows * e.dim;
  return sizes;
}

namespace {

// Cuts `memory` into the observables, or counts from null.
int64_t Cut(const ExactProblem& problem, char* memory, ExactCheckpoints& to) {
  const CheckpointSizes n = SizesOfCheckpoints(problem);
  int64_t offset = 0;
  const auto take = [&](auto*& pointer, int64_t elements) {
    using Element = std::remove_reference_t<decltype(*pointer)>;
    if (memory != nullptr) pointer = reinterpret_cast<Element*>(memory + offset);
    offset += exact::RoundUp(elements * static_cast<int64_t>(sizeof(Element)), kAlign);
  };
  take(to.qk, n.qk);
  take(to.dq, n.dq);
  take(to.s, n.s);
  take(to.x, n.x);
  take(to.p, n.p);
  take(to.p8, n.p8);
  take(to.m, n.m);
  take(to.a, n.a);
  take(to.d_lane, n.d_lane);
  take(to.u, n.u);
  take(to.ro, n.ro);
  take(to.d, n.d);
  take(to.r, n.r);
  take(to.out32, n.out32);
  take(to.lse2, n.lse2);
  return offset;
}

}  // namespace

int64_t CheckpointBytes(const ExactProblem& problem) {
  ExactCheckpoints unused;
  return Cut(problem, nullptr, unused);
}

ExactCheckpoints CheckpointsIn(const ExactProblem& problem, void* memory) {
  ExactCheckpoints checkpoints;
  Cut(problem, static_cast<char*>(memory), checkpoints);
  return checkpoints;
}

}  // namespace h3rt
