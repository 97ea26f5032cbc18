// What the tests of this folder share: fixtures, one call of the model, comparisons.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "h3rt/base/check.h"
#include "h3rt/io/checkpoint.h"
#include "h3rt/io/safetensors.h"
#include "h3rt/model/dit/dit.h"
#include "h3rt/num/bf16.h"
#include "h3rt/num/compare.h"

namespace h3rt::dit_testing {

inline SafetensorsFile OpenFixture(const std::string& model, const std::string& file) {
  return SafetensorsFile::Open(H3RT_TEST_DATA "/h3/" + model + "/" + file + ".safetensors").value();
}

template <typename T>
std::vector<T> Values(const SafetensorsFile& file, const std::string& key) {
  const ConstTensorView view = file.Get(key).value();
  H3RT_CHECK(HoldsDType<T>(view.dtype()));
  std::vector<T> values(static_cast<size_t>(view.elements()));
  std::memcpy(values.data(), view.data(), values.size() * sizeof(T));
  return values;
}

// F32 values, or BF16 values widened.
inline std::vector<float> Floats(const SafetensorsFile& file, const std::string& key) {
  if (file.Get(key).value().dtype() == DType::kF32) return Values<float>(file, key);
  std::vector<float> floats;
  for (const uint16_t bits : Values<uint16_t>(file, key)) floats.push_back(Bf16ToFloat(bits));
  return floats;
}

inline std::vector<int32_t> Ints(const SafetensorsFile& file, const std::string& key) {
  const std::vector<int64_t> values = Values<int64_t>(file, key);
  return {values.begin(), values.end()};
}

// Everything one forward reads. The vectors own what the DitSequence borrows.
struct Inputs {
  std::vector<double> positions;
  std::vector<int32_t> tags;
  std::vector<int64_t> text_indices, audio_indices, video_indices;
  std::vector<float> timesteps;
  std::vector<int32_t> row_timestep;
  std::vector<float> text, audio, video;

  int64_t rows() const { return static_cast<int64_t>(tags.size()); }
  DitSequence sequence() const {
    return {.rows = rows(),
            .position_ids = positions,
            .token_tags = tags,
            .text_indices = text_indices,
            .audio_indices = audio_indices,
            .video_indices = video_indices};
  }
};

inline Inputs FixtureInputs(const std::string& model) {
  const SafetensorsFile file = OpenFixture(model, "transformer_forward_f32");
  return {.positions = Values<double>(file, "in.position_ids"),
          .tags = Ints(file, "in.token_tags"),
          .text_indices = Values<int64_t>(file, "in.text_indices"),
          .audio_indices = Values<int64_t>(file, "in.audio_indices"),
          .video_indices = Values<int64_t>(file, "in.video_indices"),
          .timesteps = Values<float>(file, "in.timestep"),
          .row_timestep = Ints(file, "in.timestep_indices"),
          .text = Values<float>(file, "in.text"),
          .audio = Values<float>(file, "in.audio"),
          .video = Values<float>(file, "in.video")};
}

inline TransformerCheckpoint OpenModel(const std::string& model) {
  return OpenTransformer(H3RT_TEST_DATA "/h3/" + model + "/transformer").value();
}

// Named results: the taps, and "video" and "audio".
using Results = std::map<std::string, std::vector<float>>;

inline DitTap Record(Results& results) {
  return [&results](std::string_view name, const ConstTensorView& value) {
    H3RT_CHECK(value.contiguous());
    results[std::string(name)].assign(value.as<float>(), value.as<float>() + value.elements());
  };
}

inline ConstTensorView Matrix(const std::vector<float>& values, int64_t width) {
  return ConstTensorView::Of(values.data(), {static_cast<int64_t>(values.size()) / width, width});
}
inline TensorView Matrix(std::vector<float>& values, int64_t width) {
  return TensorView::Of(values.data(), {static_cast<int64_t>(values.size()) / width, width});
}

struct RunOptions {
  Precision precision = Precision::kFp32;
  int threads = 2;
  int64_t video_rows = -1;  // outputs; -1: all
  int64_t audio_rows = -1;
  bool tap = true;
};

// One whole call: AdaLN, Prepare, Forward. Outputs are poisoned first.
inline absl::StatusOr<Results> RunModel(const Dit& dit, const Inputs& in,
                                        const RunOptions& options = {}) {
  const DitConfig& c = dit.config();
  ThreadPool pool(options.threads);
  const ExecContext context{.pool = &pool};
  Results results;
  const DitTap tap = options.tap ? Record(results) : DitTap();
  H3RT_ASSIGN_OR_RETURN(const AdaLnTable table,
                        dit.MakeAdaLn(in.timesteps, options.precision, context, tap));
  H3RT_ASSIGN_OR_RETURN(DitRequest request, dit.Prepare(in.sequence(), Matrix(in.text, c.text_dim),
                                                        options.precision, context, tap));
  const auto count = [](int64_t asked, size_t all) {
    return asked < 0 ? all : static_cast<size_t>(asked);
  };
  std::vector<float>& video = results["video"];
  std::vector<float>& audio = results["audio"];
  video.assign(
      count(options.video_rows, in.video_indices.size()) * static_cast<size_t>(c.video_row()),
      1e30f);
  audio.assign(
      count(options.audio_rows, in.audio_indices.size()) * static_cast<size_t>(c.audio_in_channels),
      1e30f);
  H3RT_RETURN_IF_ERROR(dit.Forward(request, table, in.row_timestep, Matrix(in.video, c.video_row()),
                                   Matrix(in.audio, c.audio_in_channels),
                                   Matrix(video, c.video_row()), Matrix(audio, c.audio_in_channels),
                                   context, tap));
  return results;
}

inline double RelativeL2(const std::vector<float>& actual, const std::vector<float>& expected) {
  return CompareFloats(actual, expected).relative_l2;
}

inline bool SameBytes(const std::vector<float>& a, const std::vector<float>& b) {
  return Identical(CompareFloats(a, b));
}

// A store with views of everything in `base` that `changed` does not have, and with `changed`.
// `base` stays alive.
inline WeightStore Replace(const WeightStore& base, std::map<std::string, Tensor> changed) {
  WeightStore store;
  for (const auto& [name, view] : base.entries()) {
    if (changed.find(name) == changed.end()) store.AddView(name, view);
  }
  for (auto& [name, tensor] : changed) {
    H3RT_CHECK(store.AddOwned(name, std::move(tensor)).ok());
  }
  return store;
}

// A fixture model with its AdaLN replaced by the pruned fixture's curve. `store` has views of the
// other two.
struct PrunedModel {
  TransformerCheckpoint checkpoint;
  SafetensorsFile file;
  WeightStore store;
  DitConfig config;
};

inline PrunedModel OpenPruned(const std::string& model) {
  PrunedModel pruned = {OpenModel(model), OpenFixture(model, "pruned_f32"), WeightStore(), {}};
  for (const auto& [name, view] : pruned.checkpoint.weights.entries()) {
    const bool replaced = name.find("adaln_proj") != std::string::npos ||
                          name.find("norm_out.linear") != std::string::npos ||
                          name.find("time_embedder") != std::string::npos;
    if (!replaced) pruned.store.AddView(name, view);
  }
  for (const auto& [name, entry] : pruned.file.entries()) {
    std::string target = name;
    if (name.rfind("blocks.", 0) == 0) target = "transformer_" + name;
    const std::string final_layer = "final_layer.adaln_proj.linear";
    if (name.rfind(final_layer, 0) == 0) {
      target = "norm_out.linear" + name.substr(final_layer.size());
    }
    if (name.rfind("out.", 0) != 0) pruned.store.AddView(target, pruned.file.Get(name).value());
  }
  pruned.config = pruned.checkpoint.config;
  pruned.config.adaln_rank = 8;
  return pruned;
}

// A contiguous F32 copy of a weight.
inline Tensor Widened(const WeightStore& store, const std::string& name) {
  Tensor copy = Tensor::Copy(store.entries().at(name)).value();
  if (copy.dtype() == DType::kF32) return copy;
  H3RT_CHECK(copy.dtype() == DType::kBF16);
  Tensor wide = Tensor::Create(DType::kF32, copy.shape()).value();
  WidenBf16(copy.as<uint16_t>(), wide.as<float>(), copy.elements());
  return wide;
}

}  // namespace h3rt::dit_testing
