// The named weights of one network under their canonical names, whatever the file called them.
//
// Canonical names are those of the diffusers layout, except where that would force a copy:
//   X.attn.to_q|to_k|to_v.weight   [inner, hidden], or [heads, head_dim, hidden] with a row stride
//                                  when the file interleaves heads (Linear takes both); .bias
//                                  likewise, [inner] or [heads, head_dim]
//   X.ff.gate.weight, X.ff.value.weight   the two halves of the fused first FFN layer (and .bias in
//                                  the video VAE, whose "up" half is the value)
//   audio VAE: weight-norm pairs are folded, `X.weight_g` + `X.weight_v` -> `X.weight`, in double,
//                                  rounded once to F32
// X is transformer_blocks.I, token_refiner.refiner_blocks.I or decoder.transformer_blocks.I. A
// pruned transformer has adaln_t_table [1025, rank] instead of time_embedder.*.
// Not kept: rope.inv_freq (compared with theta^(-j/n)), decoder.mask_token (with zeros), and the
// audio file's latents_mean and latents_std, which go into the configuration.
//
// Dtypes: transformer and video VAE F32, BF16 or F16, tensor by tensor as stored (the F32 islands
// of the release are F32 there; a repack may have narrowed them); adaln_t_table and the audio VAE
// F32. Quantised matrices are F32 or BF16, see LoadOptions. Every view is aligned to its elements.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "h3rt/base/status.h"
#include "h3rt/tensor/tensor.h"
#include "h3rt/tensor/view.h"

namespace h3rt {

class MappedFile;

class WeightStore {
 public:
  WeightStore() = default;
  WeightStore(WeightStore&&) = default;
  WeightStore& operator=(WeightStore&&) = default;

  bool Has(std::string_view name) const { return entries_.find(name) != entries_.end(); }
  // The weight, its element count checked: `shape` is compared after [g, r, ...] is read as
  // [g * r, ...]. kDataLoss when it is missing or has another shape.
  absl::StatusOr<ConstTensorView> Get(std::string_view name, const Shape& shape) const;
  const std::map<std::string, ConstTensorView, std::less<>>& entries() const { return entries_; }

  // Bytes that lie in mapped files, and bytes that loading had to make (dequantised, folded).
  uint64_t mapped_bytes() const;
  uint64_t owned_bytes() const;

  // For loaders.
  void AddView(std::string name, const ConstTensorView& view);
  absl::Status AddOwned(std::string name, Tensor tensor);
  void KeepAlive(std::shared_ptr<const MappedFile> file);
  // Keeps memory that several views share (a dequantised fused matrix) and returns all of it.
  ConstTensorView AddBacking(Tensor tensor);

  // Gives the resident pages of the mapped files back to the system; views stay valid.
  void ReleasePages() const;

 private:
  std::map<std::string, ConstTensorView, std::less<>> entries_;
  std::vector<Tensor> owned_;
  std::vector<std::shared_ptr<const MappedFile>> files_;
};

}  // namespace h3rt
