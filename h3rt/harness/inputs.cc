#include "h3rt/harness/inputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "h3rt/base/check.h"
#include "h3rt/base/hash.h"
#include "h3rt/base/thread_pool.h"
#include "h3rt/harness/gpu.h"
#include "h3rt/num/bf16.h"
#include "h3rt/num/f16.h"

namespace h3rt::lab {
namespace {

using Type = ExperimentTensor::Type;

// Elements of a task; what is summed within one is summed in order, so results never vary.
constexpr int64_t kChunk = 1 << 20;

ThreadPool& Pool() {
  static ThreadPool pool(ThreadPool::HardwareThreads());
  return pool;
}

template <typename Body>
void ForChunks(int64_t n, const Body& body) {
  const absl::Status done =
      Pool().ParallelFor((n + kChunk - 1) / kChunk, nullptr, [&](int64_t chunk) {
        body(chunk, chunk * kChunk, std::min(n, (chunk + 1) * kChunk));
        return absl::OkStatus();
      });
  H3RT_CHECK(done.ok());
}

template <typename T>
void Put(std::span<std::byte> to, int64_t index, T value) {
  std::memcpy(to.data() + static_cast<size_t>(index) * sizeof(T), &value, sizeof(T));
}

uint64_t BitsAt(std::span<const std::byte> from, int64_t index, int bytes) {
  uint64_t bits = 0;
  std::memcpy(&bits, from.data() + index * bytes, static_cast<size_t>(bytes));
  return bits;
}

double ValueOf(Type type, uint64_t bits) {
  switch (type) {
    case Type::kBf16:
      return static_cast<double>(Bf16ToFloat(static_cast<uint16_t>(bits)));
    case Type::kF16:
      return static_cast<double>(F16ToFloat(static_cast<uint16_t>(bits)));
    case Type::kF32:
      return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    case Type::kI32:
      return static_cast<double>(static_cast<int32_t>(bits));
    case Type::kU8:
      break;
  }
  return static_cast<double>(bits);
}

// Neighbouring values are neighbouring numbers; both zeros are 0.
int64_t Ordered(Type type, uint64_t bits) {
  if (type == Type::kI32) return static_cast<int32_t>(bits);
  if (type == Type::kU8) return static_cast<int64_t>(bits);
  const uint64_t sign = type == Type::kF32 ? 0x80000000u : 0x8000u;
  const auto magnitude = static_cast<int64_t>(bits & (sign - 1));
  return (bits & sign) != 0 ? -magnitude : magnitude;
}

struct Part {
  OutputNumbers numbers;
  double squares = 0, expected_squares = 0;
};

void CompareElement(Type type, uint64_t a, uint64_t e, Part& part) {
  const double actual = ValueOf(type, a);
  const double expected = ValueOf(type, e);
  OutputNumbers& n = part.numbers;
  n.nan_actual += std::isnan(actual) ? 1 : 0;
  n.nan_expected += std::isnan(expected) ? 1 : 0;
  if (!std::isfinite(actual) || !std::isfinite(expected)) {
    if (a == e) return;
    n.max_abs = std::numeric_limits<double>::infinity();
    n.max_ulp = std::numeric_limits<int64_t>::max();
    part.squares = n.max_abs;
    return;
  }
  const double difference = actual - expected;
  part.squares += difference * difference;
  part.expected_squares += expected * expected;
  n.max_abs = std::max(n.max_abs, std::fabs(difference));
  n.max_ulp = std::max(n.max_ulp, std::abs(Ordered(type, a) - Ordered(type, e)));
}

void Merge(const Part& part, Part& total) {
  OutputNumbers& t = total.numbers;
  const OutputNumbers& p = part.numbers;
  if (t.first_index < 0 && p.first_index >= 0) {
    t.first_index = p.first_index;
    t.first_actual_bits = p.first_actual_bits;
    t.first_expected_bits = p.first_expected_bits;
  }
  t.mismatches += p.mismatches;
  t.max_abs = std::max(t.max_abs, p.max_abs);
  t.max_ulp = std::max(t.max_ulp, p.max_ulp);
  t.nan_actual += p.nan_actual;
  t.nan_expected += p.nan_expected;
  t.unwritten += p.unwritten;
  total.squares += part.squares;
  total.expected_squares += part.expected_squares;
}

// Parts per billion; null where there is no finite number, the largest where it does not fit.
Doc E9(double value) {
  if (!std::isfinite(value)) return {};
  return static_cast<int64_t>(std::min(value * 1e9 + 0.5, 9007199254740991.0));
}

std::string Hex(uint64_t bits) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (; bits != 0 || text.empty(); bits >>= 4) text.insert(text.begin(), kDigits[bits & 15]);
  return "0x" + text;
}

}  // namespace

int64_t ElementsOf(const ExperimentTensor& tensor) {
  int64_t n = 1;
  for (const int64_t extent : tensor.shape) n *= extent;
  return n;
}

int ElementBytes(Type type) {
  return type == Type::kU8 ? 1 : type == Type::kF32 || type == Type::kI32 ? 4 : 2;
}

const char* NameOf(Type type) {
  constexpr const char* kNames[] = {"bf16", "f32", "f16", "i32", "u8"};
  return kNames[static_cast<size_t>(type)];
}

const char* NameOf(ExperimentWorkload::Level level) {
  constexpr const char* kNames[] = {"toy", "aligned", "ragged", "canonical"};
  return kNames[static_cast<size_t>(level)];
}

InputStream StreamOf(const ExperimentTensor& tensor, size_t index, uint64_t seed) {
  static_assert(static_cast<int>(Type::kU8) == static_cast<int>(InputType::kU8) &&
                static_cast<int>(ExperimentTensor::Fill::kEdge) ==
                    static_cast<int>(InputFill::kEdge));
  return {static_cast<InputType>(tensor.type), static_cast<InputFill>(tensor.fill),
          static_cast<float>(tensor.scale), InputState(seed, index)};
}

void GenerateInput(const ExperimentTensor& tensor, size_t index, uint64_t seed,
                   std::span<std::byte> to) {
  const InputStream stream = StreamOf(tensor, index, seed);
  const int64_t n = ElementsOf(tensor);
  H3RT_CHECK(to.size() == static_cast<size_t>(n * ElementBytes(tensor.type)));
  ForChunks(n, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      switch (tensor.type) {
        case Type::kBf16:
          Put(to, i, FloatToBf16(FloatInput(stream, i)));
          break;
        case Type::kF16:
          Put(to, i, FloatToF16(FloatInput(stream, i)));
          break;
        case Type::kF32:
          Put(to, i, FloatInput(stream, i));
          break;
        case Type::kI32:
          Put(to, i, IntInput(stream, i));
          break;
        case Type::kU8:
          Put(to, i, static_cast<uint8_t>(IntInput(stream, i)));
          break;
      }
    }
  });
}

absl::StatusOr<Doc> InputDigests(const Experiment& experiment, const ExperimentWorkload& workload) {
  Doc digests = Doc::object();
  const std::vector<ExperimentTensor> tensors = experiment.tensors(workload.dims);
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].role != ExperimentTensor::Role::kInput) continue;
    const auto bytes = static_cast<size_t>(ElementsOf(tensors[i]) * ElementBytes(tensors[i].type));
    std::vector<std::byte> held(bytes);
    GenerateInput(tensors[i], i, workload.seed, held);
    digests[tensors[i].name] = Sha256Hex(held);
  }
  return digests;
}

OutputNumbers CompareOutputs(Type type, std::span<const std::byte> actual,
                             std::span<const std::byte> again, std::span<const std::byte> expected,
                             uint8_t first_poison, uint8_t second_poison) {
  const int bytes = ElementBytes(type);
  H3RT_CHECK(actual.size() == expected.size() && actual.size() == again.size());
  const auto n = static_cast<int64_t>(actual.size()) / bytes;
  const uint64_t mask = (uint64_t{1} << (8 * bytes)) - 1;
  const uint64_t first = 0x0101010101010101ull * first_poison & mask;
  const uint64_t second = 0x0101010101010101ull * second_poison & mask;
  std::vector<Part> parts(static_cast<size_t>((n + kChunk - 1) / kChunk));
  ForChunks(n, [&](int64_t chunk, int64_t begin, int64_t end) {
    Part& part = parts[static_cast<size_t>(chunk)];
    for (int64_t i = begin; i < end; ++i) {
      const uint64_t a = BitsAt(actual, i, bytes);
      const uint64_t b = BitsAt(again, i, bytes);
      const uint64_t e = BitsAt(expected, i, bytes);
      part.numbers.unwritten += a == first && b == second ? 1 : 0;
      if (a != e || b != a) {
        ++part.numbers.mismatches;
        if (part.numbers.first_index < 0) {
          part.numbers.first_index = i;
          part.numbers.first_actual_bits = a != e ? a : b;
          part.numbers.first_expected_bits = e;
        }
      }
      CompareElement(type, a, e, part);
    }
  });
  Part total;
  for (const Part& part : parts) Merge(part, total);
  total.numbers.elements = n;
  total.numbers.rel_l2 = total.squares == 0 ? 0.0
                         : total.expected_squares == 0
                             ? std::numeric_limits<double>::infinity()
                             : std::sqrt(total.squares / total.expected_squares);
  return total.numbers;
}

Doc ParityCase(const ExperimentWorkload& workload, const char* checkpoint, const OutputNumbers& n,
               int64_t guard_faults, bool inputs_unchanged) {
  const bool first = n.first_index >= 0;
  return {{"workload", workload.id},
          {"level", NameOf(workload.level)},
          {"seed", static_cast<int64_t>(workload.seed)},
          {"checkpoint", checkpoint},
          {"elements", n.elements},
          {"mismatches", n.mismatches},
          {"first_index", first ? Doc(n.first_index) : Doc()},
          {"first_actual_bits", first ? Doc(Hex(n.first_actual_bits)) : Doc()},
          {"first_expected_bits", first ? Doc(Hex(n.first_expected_bits)) : Doc()},
          {"max_abs_e9", E9(n.max_abs)},
          {"rel_l2_e9", E9(n.rel_l2)},
          {"max_ulp", n.max_ulp == INT64_MAX ? Doc() : Doc(n.max_ulp)},
          {"nan_actual", n.nan_actual},
          {"nan_expected", n.nan_expected},
          {"unwritten", n.unwritten},
          {"guard_faults", guard_faults},
          {"inputs_unchanged", inputs_unchanged}};
}

absl::StatusOr<Doc> ParityBody(const ExperimentCheck& check, const Doc& cases, const Doc& repeat) {
  const Doc self_test = ComparatorSelfTest();
  for (const auto& [what, seen] : self_test.items()) {
    if (seen != true) {
      return Internal({.what = "the comparator does not see a planted difference", .got = what});
    }
  }
  const bool bitwise = check.mode == ExperimentCheck::Mode::kBitwise;
  return Doc{{"reference", check.against},
             {"mode", bitwise ? "bitwise" : "tolerance"},
             {"bound_e9", bitwise ? Doc() : E9(check.rel_l2_bound)},
             {"expected", "match"},
             {"cases", cases},
             {"repeat_exact", repeat},
             {"comparator_selftest", self_test}};
}

Doc ComparatorSelfTest() {
  Doc seen = {{"flipped_bit", true}, {"nan", true}, {"unstable", true}, {"unwritten", true}};
  const auto require = [&](const char* what, bool holds) {
    if (!holds) seen[what] = false;
  };
  for (const Type type : {Type::kBf16, Type::kF32, Type::kF16, Type::kI32, Type::kU8}) {
    ExperimentTensor tensor;
    tensor.type = type;
    tensor.shape = {kChunk + 37};
    const int64_t at = kChunk + 36;  // the last element of the last chunk
    const int bytes = ElementBytes(type);
    std::vector<std::byte> expected(static_cast<size_t>((kChunk + 37) * bytes));
    GenerateInput(tensor, 0, 1, expected);
    // The changes below must change something whatever the generator made.
    const auto put = [&](std::vector<std::byte>& in, uint64_t bits) {
      std::memcpy(in.data() + at * bytes, &bits, static_cast<size_t>(bytes));
    };
    put(expected, 0x11111111u);
    const auto compare = [&](uint64_t one, uint64_t two) {
      std::vector<std::byte> actual = expected;
      std::vector<std::byte> again = expected;
      put(actual, one);
      put(again, two);
      return CompareOutputs(type, actual, again, expected, 0xff, 0x5a);
    };
    const OutputNumbers flipped = compare(0x11111110u, 0x11111110u);
    require("flipped_bit", flipped.mismatches == 1 && flipped.first_index == at &&
                               flipped.unwritten == 0 && flipped.max_ulp == 1);
    const OutputNumbers unwritten = compare(~uint64_t{0}, 0x5a5a5a5a5a5a5a5aull);
    require("unwritten", unwritten.mismatches == 1 && unwritten.unwritten == 1);
    const OutputNumbers unstable = compare(0x11111111u, 0x11111113u);
    require("unstable", unstable.mismatches == 1 && unstable.first_index == at);
    if (type == Type::kI32 || type == Type::kU8) continue;
    const uint64_t quiet = type == Type::kF32   ? 0x7fc00000u
                           : type == Type::kF16 ? 0x7e00u
                                                : 0x7fc0u;
    const OutputNumbers nan = compare(quiet, quiet);
    require("nan", nan.mismatches == 1 && nan.nan_actual == 1 && nan.nan_expected == 0 &&
                       !std::isfinite(nan.rel_l2) && !std::isfinite(nan.max_abs));
  }
  return seen;
}

}  // namespace h3rt::lab
