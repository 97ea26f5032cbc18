// Random numbers and number formats.
#include <charconv>
#include <vector>

#include "h3rt/num/bf16.h"
#include "h3rt/num/e4m3.h"
#include "h3rt/num/int8_convrot.h"
#include "h3rt/num/nvfp4.h"
#include "h3rt/num/torch_rng.h"
#include "h3rt/parity/parity_internal.h"
#include "h3rt/tensor/tensor.h"

namespace h3rt::parity {
namespace {

constexpr uint64_t kSequenceSeed = 42;  // of the draws seq.*, in the order of their names

// "randn.SEED.SHAPE" -> SEED.
absl::StatusOr<uint64_t> SeedOf(const std::string& name) {
  uint64_t seed = 0;
  const char* begin = name.data() + std::string_view("randn.").size();
  const auto [end, error] = std::from_chars(begin, name.data() + name.size(), seed);
  if (error != std::errc() || *end != '.') {
    return DataLoss({.what = "tensor name", .got = name, .wanted = "randn.SEED.SHAPE"});
  }
  return seed;
}

template <typename T>
TensorView ViewOf(std::vector<T>& values, DType dtype, const Shape& shape) {
  return TensorView(reinterpret_cast<std::byte*>(values.data()), dtype, shape);
}

absl::Status RunE4m3(Recorder& recorder, const SafetensorsFile& file) {
  H3RT_ASSIGN_OR_RETURN(const Tensor in, ReadTensor(file, "e4m3.in", DType::kF32));
  H3RT_ASSIGN_OR_RETURN(const Tensor want, ReadTensor(file, "e4m3.torch_bytes", DType::kU8));
  std::vector<uint8_t> got(static_cast<size_t>(in.elements()));
  for (size_t i = 0; i < got.size(); ++i) got[i] = FloatToE4m3Saturating(in.as<float>()[i]);
  recorder.Compare("formats.e4m3", ViewOf(got, DType::kU8, in.shape()), want.view(),
                   ParityMetric::kBits, 0);
  return absl::OkStatus();
}

absl::Status RunNvfp4(Recorder& recorder, const SafetensorsFile& file,
                      const std::vector<float>& weights, const Shape& shape) {
  H3RT_ASSIGN_OR_RETURN(Nvfp4Tensor made,
                        QuantizeNvfp4(weights, shape[0], shape[1], NibbleOrder::kHighFirst));
  H3RT_ASSIGN_OR_RETURN(const Tensor packed,
                        ReadTensor(file, "nvfp4.packed_hi_first", DType::kU8, 2));
  H3RT_ASSIGN_OR_RETURN(const Tensor scales,
                        ReadTensor(file, "nvfp4.block_scale_swizzled", DType::kU8, 2));
  H3RT_ASSIGN_OR_RETURN(const Tensor scale2, ReadTensor(file, "nvfp4.scale2", DType::kF32, 1));
  H3RT_ASSIGN_OR_RETURN(const Tensor dequantized,
                        ReadTensor(file, "nvfp4.dequant_f32", DType::kF32, 2));
  std::vector<float> made_scale2 = {made.tensor_scale};
  recorder.Compare("formats.nvfp4.scale2", ViewOf(made_scale2, DType::kF32, {1}), scale2.view(),
                   ParityMetric::kBits, 0);
  recorder.Compare("formats.nvfp4.block_scales",
                   ViewOf(made.block_scales, DType::kU8,
                          {Nvfp4ScaleRows(made.rows), Nvfp4ScaleCols(made.cols / kNvfp4Block)}),
                   scales.view(), ParityMetric::kBits, 0);
  recorder.Compare("formats.nvfp4.codes",
                   ViewOf(made.packed, DType::kU8, {made.rows, made.cols / 2}), packed.view(),
                   ParityMetric::kBits, 0);
  // Dequantised from the public bytes, so that a fault above does not hide one here.
  const Nvfp4View stored = {
      .rows = packed.shape()[0],
      .cols = 2 * packed.shape()[1],
      .packed = {packed.as<uint8_t>(), static_cast<size_t>(packed.elements())},
      .block_scales = {scales.as<uint8_t>(), static_cast<size_t>(scales.elements())},
      .tensor_scale = scale2.as<float>()[0],
      .order = NibbleOrder::kHighFirst,
      .pre_quant_scale = {}};
  std::vector<float> got(weights.size());
  H3RT_RETURN_IF_ERROR(DequantizeNvfp4(stored, 0, shape[0], shape[1], got));
  recorder.Compare("formats.nvfp4.dequantized", ViewOf(got, DType::kF32, shape), dequantized.view(),
                   ParityMetric::kBits, 0);
  return absl::OkStatus();
}

absl::Status RunConvRot(Recorder& recorder, const SafetensorsFile& file,
                        const std::vector<float>& weights, const Shape& shape) {
  constexpr int64_t kGroup = 256;  // of the fixture
  H3RT_ASSIGN_OR_RETURN(const Tensor codes, ReadTensor(file, "convrot.q", DType::kI8, 2));
  H3RT_ASSIGN_OR_RETURN(const Tensor scale, ReadTensor(file, "convrot.scale", DType::kF32));
  H3RT_ASSIGN_OR_RETURN(const Tensor dequantized,
                        ReadTensor(file, "convrot.dequant", DType::kF32, 2));
  std::vector<float> got(weights.size());
  H3RT_RETURN_IF_ERROR(DequantizeConvRot(
      {codes.as<int8_t>(), static_cast<size_t>(codes.elements())}, shape[0], shape[1], kGroup,
      {scale.as<float>(), static_cast<size_t>(scale.elements())}, got));
  recorder.Compare("formats.convrot.dequantized", ViewOf(got, DType::kF32, shape),
                   dequantized.view(), ParityMetric::kRelativeL2, kConvRot);
  H3RT_ASSIGN_OR_RETURN(ConvRotTensor made, QuantizeConvRot(weights, shape[0], shape[1], kGroup));
  recorder.Compare("formats.convrot.scales", ViewOf(made.scales, DType::kF32, {shape[0], 1}),
                   scale.view(), ParityMetric::kRelativeL2, kConvRot);
  return absl::OkStatus();
}

}  // namespace

absl::Status RunRng(Recorder& recorder) {
  H3RT_ASSIGN_OR_RETURN(const std::optional<SafetensorsFile> file,
                        recorder.Open("rng.safetensors"));
  if (!file) return absl::OkStatus();
  TorchGenerator sequence(kSequenceSeed);
  for (const auto& [name, entry] : file->entries()) {
    const bool in_sequence = name.rfind("seq.", 0) == 0;
    if (!in_sequence && name.rfind("randn.", 0) != 0) continue;
    H3RT_ASSIGN_OR_RETURN(const ConstTensorView want, file->Get(name));
    std::vector<float> got(static_cast<size_t>(want.elements()));
    if (in_sequence) {
      sequence.Randn(got);
    } else {
      H3RT_ASSIGN_OR_RETURN(const uint64_t seed, SeedOf(name));
      TorchGenerator(seed).Randn(got);
    }
    recorder.Compare("rng." + name, ViewOf(got, DType::kF32, want.shape()), want,
                     ParityMetric::kBits, 0);
  }
  return absl::OkStatus();
}

absl::Status RunFormats(Recorder& recorder) {
  H3RT_ASSIGN_OR_RETURN(const std::optional<SafetensorsFile> file,
                        recorder.Open("formats.safetensors"));
  if (!file) return absl::OkStatus();
  if (file->Has("e4m3.in")) H3RT_RETURN_IF_ERROR(RunE4m3(recorder, *file));
  if (!file->Has("nvfp4.w")) return absl::OkStatus();
  H3RT_ASSIGN_OR_RETURN(const Tensor bits, ReadTensor(*file, "nvfp4.w", DType::kBF16, 2));
  std::vector<float> weights(static_cast<size_t>(bits.elements()));
  WidenBf16(bits.as<uint16_t>(), weights.data(), bits.elements());
  H3RT_RETURN_IF_ERROR(RunNvfp4(recorder, *file, weights, bits.shape()));
  if (file->Has("convrot.q")) {
    H3RT_RETURN_IF_ERROR(RunConvRot(recorder, *file, weights, bits.shape()));
  }
  return absl::OkStatus();
}

}  // namespace h3rt::parity
