// One run against the index: bytes by their hashes, and what they were where tensors are at hand.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "h3rt/base/hash.h"
#include "h3rt/harness/attention_compare.h"
#include "h3rt/harness/attention_golden.h"
#include "h3rt/harness/inputs.h"
#include "h3rt/io/safetensors.h"

namespace h3rt::lab {
namespace {

using Type = ExperimentTensor::Type;

std::span<const std::byte> Bytes(const auto& values) { return std::as_bytes(std::span(values)); }

// One case of a parity body. Without the tensor beside the index an output of another hash counts
// as different in `differing` elements, those of the parts whose hash differs: bits are not known.
void AddCase(const GoldenComparison& c, const char* checkpoint, Type type,
             std::span<const std::byte> actual, std::span<const std::byte> again, bool equal,
             int64_t differing, std::span<const std::byte> expected, Doc& cases) {
  const bool known = !equal && expected.size() == actual.size();
  OutputNumbers numbers =
      CompareOutputs(type, actual, again, known ? expected : actual, kFirstPoison, kSecondPoison);
  if (!equal && !known) {
    numbers.mismatches = std::max<int64_t>(differing, 1);
    numbers.rel_l2 = std::numeric_limits<double>::infinity();
    numbers.max_abs = std::numeric_limits<double>::infinity();
    numbers.max_ulp = INT64_MAX;
  }
  ExperimentWorkload workload = GoldenWorkload(c.golden);
  Doc one = ParityCase(workload, checkpoint, numbers, c.run.guard_faults, c.run.inputs_unchanged);
  one["workload"] = (c.golden.name + "/" + c.output.key).substr(0, 80);
  cases.push_back(std::move(one));
}

void CompareOutput(const GoldenComparison& c, GoldenRow& row, Doc& cases) {
  const OutputHashes hashes = HashOutput(c.problem, c.run.o, c.pool);
  row.o_equal = hashes.whole == c.output.o_sha256;
  for (size_t h = 0; h < hashes.heads.size(); ++h) {
    if (hashes.heads[h] != c.output.per_head_sha256[h]) {
      row.heads_that_differ.push_back(static_cast<int64_t>(h));
    }
  }
  std::vector<std::byte> wanted;
  if (!row.o_equal) wanted = c.fixtures.Read(c.golden.name, c.output.key + ".o");
  const int64_t head = c.problem.batch * c.problem.q_len * c.problem.head_dim;
  AddCase(c, "o", c.problem.type == ExactType::kBf16 ? Type::kBf16 : Type::kF16, Bytes(c.run.o),
          Bytes(c.run.o_again), row.o_equal,
          head * static_cast<int64_t>(row.heads_that_differ.size()), wanted, cases);
  const Doc& one = cases.back();
  if (!row.o_equal || !row.heads_that_differ.empty()) {
    row.faults.push_back(fmt::format("o differs, heads {} of {}, {} elements, the first {}",
                                     row.heads_that_differ.size(), hashes.heads.size(),
                                     At(one, "mismatches").dump(), At(one, "first_index").dump()));
  } else if (IntAt(one, "mismatches") > 0) {
    row.faults.emplace_back("a second run gave another o");
  }
}

void CompareLogarithms(const GoldenComparison& c, GoldenRow& row, Doc& cases) {
  row.lse_raw_equal = Sha256Hex(Bytes(c.run.lse_raw)) == c.output.lse_raw_sha256;
  std::vector<std::byte> wanted;
  if (!row.lse_raw_equal) wanted = c.fixtures.Read(c.golden.name, c.output.key + ".lse_raw");
  AddCase(c, "lse_raw", Type::kF32, Bytes(c.run.lse_raw), Bytes(c.run.lse_raw_again),
          row.lse_raw_equal, static_cast<int64_t>(c.run.lse_raw.size()), wanted, cases);
  if (IntAt(cases.back(), "mismatches") > 0) row.faults.emplace_back("lse_raw differs");
  if (Bytes(c.run.lse).size() != Bytes(c.run.lse_again).size() ||
      std::memcmp(c.run.lse.data(), c.run.lse_again.data(), Bytes(c.run.lse).size()) != 0) {
    row.faults.emplace_back("a second run gave another lse");
  }
  row.lse_equal = Sha256Hex(Bytes(c.run.lse)) == c.output.lse_sha256;
  if (row.lse_equal) return;
  // The correction is a product of a library that is not correctly rounded everywhere.
  std::vector<float> library;
  const std::vector<std::byte> bytes = c.fixtures.Read(c.golden.name, c.output.key + ".lse");
  if (bytes.size() == Bytes(c.run.lse).size()) {
    library.resize(c.run.lse.size());
    std::memcpy(library.data(), bytes.data(), bytes.size());
  }
  const ExactPrepared prepared =
      PreparedIn(c.problem, const_cast<std::byte*>(c.run.workspace.data()));
  const LseDifference difference =
      CompareLse(c.problem, prepared.k_mean, c.run.lse_raw, c.run.lse, library, c.pool);
  row.notes.push_back(
      fmt::format("lse differs by bytes; by value against {}: {} of {} rows, at most {:.3g}, {} "
                  "beyond one unit "
                  "of the correction",
                  library.empty() ? "the host's own" : "the library", difference.differing,
                  difference.elements, difference.max_difference, difference.beyond_unit));
  if (difference.beyond_unit > 0) row.faults.emplace_back("lse is wrong by value");
}

}  // namespace

void ComparePrepared(const GoldenCase& golden, const ExactProblem& problem,
                     const ExactPrepared& prepared, const FixtureTensors& fixtures, bool exact,
                     GoldenRow& row) {
  const auto compare = [&](const std::string& key, const std::string& tensor,
                           const std::string& wanted) {
    const auto bytes = PreparedBytes(problem, prepared, tensor);
    ++row.prepared_compared;
    if (bytes.ok() && Sha256Hex(*bytes) == wanted) return;
    std::string text = "prepared " + key + " differs";
    const std::vector<std::byte> library = fixtures.Read(golden.name, key);
    if (bytes.ok() && library.size() == bytes->size()) {
      size_t differing = 0;
      for (size_t i = 0; i < library.size(); ++i) differing += library[i] != (*bytes)[i] ? 1 : 0;
      text += fmt::format(", {} of {} bytes", differing, library.size());
    }
    (exact ? row.faults : row.notes).push_back(text);
  };
  if (problem.smooth_k) compare("k_mean", "k_mean", golden.k_mean_sha256);
  for (const auto& [key, tensor] : PreparedKeys(problem)) {
    if (const auto hash = golden.prepared.find(key); hash != golden.prepared.end()) {
      compare(key, tensor, hash->second);
    } else if (const auto bytes = fixtures.Read("per_thread_quant", golden.name + "." + key);
               !bytes.empty()) {
      compare(key, tensor, Sha256Hex(bytes));
    }
  }
}

void CompareGolden(const GoldenComparison& c, GoldenRow& row, Doc& cases) {
  row.by_bytes = true;
  CompareOutput(c, row, cases);
  CompareLogarithms(c, row, cases);
  const ExactPrepared prepared =
      PreparedIn(c.problem, const_cast<std::byte*>(c.run.workspace.data()));
  ComparePrepared(c.golden, c.problem, prepared, c.fixtures, /*exact=*/true, row);
  row.launches = c.run.launches;
  row.distinct_digests = c.run.distinct_digests;
  if (c.run.launches > 0 && c.run.distinct_digests != 1) {
    row.faults.push_back(
        fmt::format("{} results in {} launches", c.run.distinct_digests, c.run.launches));
  }
  if (c.run.guard_faults > 0) row.faults.emplace_back("it wrote outside its buffers");
  if (!c.run.inputs_unchanged) row.faults.emplace_back("it wrote its inputs");
  for (const Doc& one : cases) {
    if (IntAt(one, "unwritten") > 0) {
      row.faults.push_back(fmt::format("{} elements of {} were not written",
                                       IntAt(one, "unwritten"), TextAt(one, "checkpoint")));
    }
  }
}

std::vector<std::byte> FixtureTensors::Read(const std::string& file, const std::string& key) const {
  const auto opened =
      SafetensorsFile::Open((folder_.empty() ? "" : folder_ + "/") + file + ".safetensors");
  if (!opened.ok()) return {};
  const auto entry = opened->entries().find(key);
  if (entry == opened->entries().end()) return {};
  const std::span<const std::byte> data =
      opened->file()->bytes().subspan(opened->header_bytes().size());
  const auto part = data.subspan(static_cast<size_t>(entry->second.begin),
                                 static_cast<size_t>(entry->second.end - entry->second.begin));
  return {part.begin(), part.end()};
}

}  // namespace h3rt::lab
