#include "h3rt/io/weight_store.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "h3rt/base/check.h"
#include "h3rt/io/mapped_file.h"

namespace h3rt {
namespace {

// [g, r, ...] is read as [g * r, ...] where the wanted shape has one dimension less.
bool SameShape(const Shape& have, const Shape& want) {
  if (have == want) return true;
  if (have.rank() != want.rank() + 1 || want.rank() < 1) return false;
  if (have[0] * have[1] != want[0]) return false;
  return std::equal(have.dims().begin() + 2, have.dims().end(), want.dims().begin() + 1);
}

}  // namespace

absl::StatusOr<ConstTensorView> WeightStore::Get(std::string_view name, const Shape& shape) const {
  const auto it = entries_.find(name);
  if (it == entries_.end()) {
    return DataLoss({.what = "weight " + std::string(name),
                     .got = "nothing",
                     .wanted = shape.ToString(),
                     .where = "checkpoint"});
  }
  if (!SameShape(it->second.shape(), shape)) {
    return DataLoss({.what = "weight " + std::string(name),
                     .got = it->second.shape().ToString(),
                     .wanted = shape.ToString(),
                     .where = "checkpoint"});
  }
  return it->second;
}

uint64_t WeightStore::mapped_bytes() const {
  uint64_t total = 0;
  for (const auto& entry : entries_) {
    const ConstTensorView& view = entry.second;
    const auto in_file = [&view](const std::shared_ptr<const MappedFile>& file) {
      return file->Contains(view.data());
    };
    if (std::any_of(files_.begin(), files_.end(), in_file)) {
      total += static_cast<uint64_t>(view.bytes());
    }
  }
  return total;
}

uint64_t WeightStore::owned_bytes() const {
  uint64_t total = 0;
  for (const Tensor& tensor : owned_) total += static_cast<uint64_t>(tensor.bytes());
  return total;
}

void WeightStore::AddView(std::string name, const ConstTensorView& view) {
  const bool fresh = entries_.emplace(std::move(name), view).second;
  H3RT_CHECK(fresh);
}

ConstTensorView WeightStore::AddBacking(Tensor tensor) {
  owned_.push_back(std::move(tensor));
  return std::as_const(owned_.back()).view();
}

absl::Status WeightStore::AddOwned(std::string name, Tensor tensor) {
  if (Has(name)) return Internal({.what = "weight " + name + " is added twice"});
  AddView(std::move(name), AddBacking(std::move(tensor)));
  return absl::OkStatus();
}

void WeightStore::KeepAlive(std::shared_ptr<const MappedFile> file) {
  files_.push_back(std::move(file));
}

void WeightStore::ReleasePages() const {
  for (const std::shared_ptr<const MappedFile>& file : files_) file->Release();
}

}  // namespace h3rt
