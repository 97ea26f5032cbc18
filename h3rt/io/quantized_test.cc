// Quantised single files, built with the codecs of num from a fixture, against the codecs' values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "h3rt/io/checkpoint.h"
#include "h3rt/io/test_files.h"
#include "h3rt/num/bf16.h"
#include "h3rt/num/e4m3.h"
#include "h3rt/num/int8_convrot.h"
#include "h3rt/num/nvfp4.h"

namespace h3rt {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Tensor Scalar(float value) { return FloatTensor({}, {value}); }

Tensor TextTensor(const std::string& text) {
  return ByteTensor(DType::kU8, {static_cast<int64_t>(text.size())}, text);
}

template <typename T>
Tensor CodeTensor(DType dtype, const Shape& shape, const std::vector<T>& codes) {
  return ByteTensor(dtype, shape,
                    {reinterpret_cast<const char*>(codes.data()), codes.size() * sizeof(T)});
}

// mini's transformer as an original single file; `quantise` replaces X.weight of the four linears
// of every block and returns the float32 values that loading has to give.
class Quantised : public ::testing::Test {
 protected:
  using Quantiser = std::function<std::vector<float>(TensorMap&, const std::string& layer)>;

  void Build(const Quantiser& quantise, const SafetensorsWriter::Metadata& metadata = {}) {
    tensors_ = OriginalTransformer(
        ReadTensors(FixturePath("mini/transformer/diffusion_pytorch_model.safetensors")), 4, false);
    for (const std::string block : {"blocks.0.", "blocks.1."}) {
      for (const char* name : {"attn.qkv_proj", "attn.out_proj", "mlp.fc1", "mlp.fc2"}) {
        values_[block + name] = quantise(tensors_, block + name);
      }
    }
    Save(metadata);
  }
  void Save(const SafetensorsWriter::Metadata& metadata = {}) {
    WriteTensors(folder_ / "model.safetensors", tensors_, metadata);
  }
  absl::StatusOr<TransformerCheckpoint> Open(DType dtype = DType::kF32) {
    return OpenTransformer(folder_ / "model.safetensors", {.dequantized = dtype});
  }

  // The piece of the fused matrix at `offset` rows has the codec's values, rounded once.
  void ExpectPiece(const WeightStore& weights, const std::string& name, const std::string& layer,
                   int64_t offset, DType dtype) {
    ASSERT_TRUE(weights.Has(name)) << name;
    const ConstTensorView view = weights.entries().find(name)->second;
    ASSERT_EQ(view.dtype(), dtype) << name;
    const std::vector<float> got = Floats(view);
    const std::vector<float>& all = values_.at(layer);
    const auto begin = static_cast<size_t>(offset * view.dim(view.rank() - 1));
    ASSERT_LE(begin + got.size(), all.size());
    for (size_t i = 0; i < got.size(); ++i) {
      const float want = dtype == DType::kF32 ? all[begin + i] : RoundToBf16(all[begin + i]);
      ASSERT_EQ(std::memcmp(&got[i], &want, sizeof(float)), 0) << name << " element " << i;
    }
  }

  void ExpectValues() {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      const absl::StatusOr<TransformerCheckpoint> opened = Open(dtype);
      ASSERT_TRUE(opened.ok()) << opened.status();
      EXPECT_EQ(opened->layout, CheckpointLayout::kOriginalContiguous);
      const WeightStore& w = opened->weights;
      const std::string to = "transformer_blocks.1.";
      const std::string from = "blocks.1.";
      ExpectPiece(w, to + "attn.to_q.weight", from + "attn.qkv_proj", 0, dtype);
      ExpectPiece(w, to + "attn.to_k.weight", from + "attn.qkv_proj", 512, dtype);
      ExpectPiece(w, to + "attn.to_v.weight", from + "attn.qkv_proj", 1024, dtype);
      ExpectPiece(w, to + "attn.to_out.0.weight", from + "attn.out_proj", 0, dtype);
      ExpectPiece(w, to + "ff.gate.weight", from + "mlp.fc1", 0, dtype);
      ExpectPiece(w, to + "ff.value.weight", from + "mlp.fc1", 768, dtype);
      ExpectPiece(w, to + "ff.net.2.weight", from + "mlp.fc2", 0, dtype);
      const uint64_t elements = 2ull * (1536 * 256 + 256 * 512 + 1536 * 256 + 256 * 768);
      EXPECT_EQ(w.owned_bytes(), elements * static_cast<uint64_t>(SizeOf(dtype)));
    }
  }

  static std::vector<float> Fp8(TensorMap& tensors, const std::string& layer,
                                const char* scale_key) {
    const Tensor weight = CopyOf(tensors.at(layer + ".weight"));
    const float scale = 0.000123f;
    std::vector<uint8_t> codes;
    std::vector<float> values;
    for (const float value : Floats(weight.view())) {
      codes.push_back(FloatToE4m3Saturating(value / scale));
      values.push_back(E4m3ToFloat(codes.back()) * scale);
    }
    tensors[layer + ".weight"] = CodeTensor(DType::kE4M3, weight.shape(), codes);
    tensors[layer + scale_key] = Scalar(scale);
    return values;
  }

  static std::vector<float> Fp8Comfy(TensorMap& tensors, const std::string& layer) {
    tensors[layer + ".comfy_quant"] = TextTensor(R"({"format": "float8_e4m3fn"})");
    return Fp8(tensors, layer, ".weight_scale");
  }

  static std::vector<float> Nvfp4(TensorMap& tensors, const std::string& layer) {
    const Tensor weight = CopyOf(tensors.at(layer + ".weight"));
    const int64_t rows = weight.shape()[0];
    const int64_t cols = weight.shape()[1];
    const Nvfp4Tensor q =
        QuantizeNvfp4(Floats(weight.view()), rows, cols, NibbleOrder::kHighFirst).value();
    tensors[layer + ".weight"] = CodeTensor(DType::kU8, {rows, cols / 2}, q.packed);
    tensors[layer + ".weight_scale"] =
        CodeTensor(DType::kE4M3, {Nvfp4ScaleRows(rows), Nvfp4ScaleCols(cols / 16)}, q.block_scales);
    tensors[layer + ".weight_scale_2"] = Scalar(q.tensor_scale);
    tensors[layer + ".input_scale"] = Scalar(1.0f);
    tensors[layer + ".comfy_quant"] = TextTensor(R"({"format": "nvfp4"})");
    Nvfp4View view = q.view();
    std::vector<float> factors;
    if (layer.ends_with("out_proj")) {  // AWQ on one of the layers
      for (int64_t i = 0; i < cols; ++i) factors.push_back(0.5f + static_cast<float>(i) / 256.0f);
      tensors[layer + ".pre_quant_scale"] = FloatTensor({cols}, factors);
      view.pre_quant_scale = factors;
    }
    std::vector<float> values(static_cast<size_t>(rows * cols));
    EXPECT_TRUE(DequantizeNvfp4(view, 0, rows, cols, values).ok());
    return values;
  }

  static std::vector<float> Int8(TensorMap& tensors, const std::string& layer, int64_t group,
                                 const std::string& description) {
    const Tensor weight = CopyOf(tensors.at(layer + ".weight"));
    const int64_t rows = weight.shape()[0];
    const int64_t cols = weight.shape()[1];
    const ConvRotTensor q = QuantizeConvRot(Floats(weight.view()), rows, cols, group).value();
    tensors[layer + ".weight"] = CodeTensor(DType::kI8, {rows, cols}, q.codes);
    tensors[layer + ".weight_scale"] = FloatTensor({rows, 1}, q.scales);
    tensors[layer + ".comfy_quant"] = TextTensor(description);
    std::vector<float> values(static_cast<size_t>(rows * cols));
    EXPECT_TRUE(DequantizeConvRot(q.codes, rows, cols, group, q.scales, values).ok());
    return values;
  }

  TempFolder folder_;
  TensorMap tensors_;
  std::map<std::string, std::vector<float>> values_;
};

TEST_F(Quantised, Fp8ScaledIsDequantised) {
  Build(Fp8Comfy);
  ExpectValues();
}

TEST_F(Quantised, Fp8E5M2IsDequantised) {
  Build([](TensorMap& tensors, const std::string& layer) {
    const Tensor weight = CopyOf(tensors.at(layer + ".weight"));
    std::vector<uint8_t> codes;
    std::vector<float> values;
    for (int64_t i = 0; i < weight.elements(); ++i) {
      codes.push_back(static_cast<uint8_t>((i * 37 % 0x7c) | (i % 2 << 7)));
      values.push_back(E5m2ToFloat(codes.back()) * 0.25f);
    }
    tensors[layer + ".weight"] = CodeTensor(DType::kE5M2, weight.shape(), codes);
    tensors[layer + ".weight_scale"] = FloatTensor({1}, {0.25f});
    tensors[layer + ".comfy_quant"] = TextTensor(R"({"format": "float8_e5m2"})");
    return values;
  });
  ExpectValues();
}

TEST_F(Quantised, LegacyScaledFp8IsDequantised) {
  Build([](TensorMap& tensors, const std::string& layer) {
    tensors["scaled_fp8"] = ByteTensor(DType::kE4M3, {2}, std::string(2, '\0'));
    tensors[layer + ".scale_input"] = Scalar(1.0f);
    return Fp8(tensors, layer, ".scale_weight");
  });
  ExpectValues();
}

TEST_F(Quantised, MetadataDescribesLayersToo) {
  std::string layers;
  for (const char* block : {"blocks.0.", "blocks.1."}) {
    for (const char* name : {"attn.qkv_proj", "attn.out_proj", "mlp.fc1", "mlp.fc2"}) {
      layers += (layers.empty() ? "\"" : ",\"") + std::string(block) + name +
                "\":{\"format\":\"float8_e4m3fn\"}";
    }
  }
  Build([](TensorMap& tensors,
           const std::string& layer) { return Fp8(tensors, layer, ".weight_scale"); },
        {{"_quantization_metadata", "{\"format_version\":\"1.0\",\"layers\":{" + layers + "}}"}});
  ExpectValues();
  // A layer that does not exist is not skipped in silence.
  Save({{"_quantization_metadata",
         "{\"layers\":{" + layers + ",\"blocks.9.fc\":{\"format\":\"nvfp4\"}}}"}});
  const absl::Status status = Open().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status), HasSubstr("blocks.9.fc"));
  Save({{"_quantization_metadata", "[1"}});
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(Quantised, Nvfp4WithAndWithoutPreQuantScaleIsDequantised) {
  Build(Nvfp4);
  ExpectValues();
}

TEST_F(Quantised, Int8ConvRotIsDequantised) {
  Build([](TensorMap& tensors, const std::string& layer) {
    return Int8(tensors, layer, 256,
                R"({"format": "int8_tensorwise", "convrot": true, "convrot_groupsize": 256})");
  });
  ExpectValues();
}

TEST_F(Quantised, Int8WithoutRotationIsDequantised) {
  Build([](TensorMap& tensors, const std::string& layer) {
    return Int8(tensors, layer, 1,
                R"({"format": "int8_tensorwise", "full_precision_matrix_mult": true})");
  });
  ExpectValues();
}

TEST_F(Quantised, UnknownFormatsAreRefusedByName) {
  for (const char* format : {"mxfp8", "convrot_w4a4", "asym_w4a8_int8", "q5_k"}) {
    Build(Fp8Comfy);
    tensors_["blocks.1.mlp.fc1.comfy_quant"] =
        TextTensor("{\"format\": \"" + std::string(format) + "\"}");
    tensors_["blocks.1.mlp.fc1.weight_codebook"] = FloatTensor({16}, std::vector<float>(16));
    Save();
    const absl::Status status = Open().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    EXPECT_THAT(MessageOf(status), AllOf(HasSubstr(format), HasSubstr("blocks.1.mlp.fc1"),
                                         HasSubstr("model.safetensors")));
  }
}

TEST_F(Quantised, UnknownOptionIsRefusedByName) {
  Build(Fp8Comfy);
  tensors_["blocks.0.mlp.fc2.comfy_quant"] =
      TextTensor(R"({"format": "float8_e4m3fn", "per_channel": true})");
  Save();
  const absl::Status status = Open().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("per_channel"), HasSubstr("blocks.0.mlp.fc2")));
}

// Nobody publishes quantised VAEs. The linear layers of the video decoder are read like those of a
// transformer; convolutions and the audio VAE, for which no format is defined, are refused by name.
class QuantisedVae : public Quantised {
 protected:
  void SetUp() override {
    const std::string part = FixturePath("mini/vae");
    const VideoVaeCheckpoint vae = OpenVideoVae(part).value();
    heads_ = vae.config.decoder_heads;
    width_ = vae.config.decoder_width();
    tensors_ = OriginalVideoVae(ReadTensors(part + "/diffusion_pytorch_model.safetensors"), heads_);
    CopyFile(part + "/config.json", folder_ / "config.json");
  }
  int64_t heads_ = 0;
  int64_t width_ = 0;
};

TEST_F(QuantisedVae, LinearLayersOfTheVideoDecoderAreDequantised) {
  const std::string block = "decoder.transformer_blocks.1.";
  const std::vector<float> qkv = Fp8Comfy(tensors_, block + "attn.to_qkv");
  const std::vector<float> w2 = Fp8Comfy(tensors_, block + "ff.w2");
  Save();
  const absl::StatusOr<VideoVaeCheckpoint> opened = OpenVideoVae(folder_.path());
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(Floats(opened->weights.entries().find(block + "ff.net.2.weight")->second), w2);
  // Rows head by head: q, k, v of head 0 come first.
  std::vector<float> k;
  const auto head = static_cast<size_t>(width_ / heads_ * width_);
  for (size_t h = 0; h < static_cast<size_t>(heads_); ++h) {
    const auto begin = qkv.begin() + static_cast<std::ptrdiff_t>((3 * h + 1) * head);
    k.insert(k.end(), begin, begin + static_cast<std::ptrdiff_t>(head));
  }
  EXPECT_EQ(Floats(opened->weights.entries().find(block + "attn.to_k.weight")->second), k);
}

TEST_F(QuantisedVae, ConvolutionsAreRefusedByName) {
  Fp8Comfy(tensors_, "encoder.conv_in");
  Save();
  const absl::Status status = OpenVideoVae(folder_.path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("encoder.conv_in.weight"), HasSubstr("F8_E4M3"),
                                       HasSubstr("F32, BF16 or F16")));
}

TEST(QuantisedAudioVae, IsRefusedByName) {
  const TempFolder folder;
  TensorMap tensors =
      ReadTensors(FixturePath("mini/audio_vae/diffusion_pytorch_model.safetensors"));
  Tensor& weight = tensors.at("mean_proj.weight");
  weight = CodeTensor(DType::kE4M3, weight.shape(),
                      std::vector<uint8_t>(static_cast<size_t>(weight.elements()), 0));
  tensors["mean_proj.comfy_quant"] = TextTensor(R"({"format": "float8_e4m3fn"})");
  tensors["mean_proj.weight_scale"] = Scalar(1.0f);
  WriteTensors(folder / "model.safetensors", tensors);
  CopyFile(FixturePath("mini/audio_vae/config.json"), folder / "config.json");
  const absl::Status status = OpenAudioVae(folder.path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("mean_proj.weight"), HasSubstr("F8_E4M3")));
}

TEST_F(Quantised, BrokenDescriptionsAreNamed) {
  for (const char* text : {"", "{", "[]", "{}", R"({"format": 4})"}) {
    Build(Fp8Comfy);
    tensors_["blocks.0.mlp.fc2.comfy_quant"] = TextTensor(text);
    Save();
    const absl::Status status = Open().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << text;
    EXPECT_THAT(MessageOf(status), HasSubstr("blocks.0.mlp.fc2"));
  }
}

TEST_F(Quantised, MissingAndOddScalesAreNamed) {
  Build(Nvfp4);
  tensors_.erase("blocks.0.mlp.fc2.weight_scale_2");
  Save();
  absl::Status status = Open().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status), HasSubstr("blocks.0.mlp.fc2.weight_scale_2"));
  tensors_["blocks.0.mlp.fc2.weight_scale_2"] = FloatTensor({2}, {1, 1});
  Save();
  status = Open().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("weight_scale_2"), HasSubstr("[2]")));
  tensors_["blocks.0.mlp.fc2.weight_scale_2"] = Scalar(std::numeric_limits<float>::quiet_NaN());
  Save();
  status = Open().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status), HasSubstr("blocks.0.mlp.fc2.weight"));
}

TEST_F(Quantised, CodesWithoutDescriptionAreRefused) {
  Build(Fp8Comfy);
  tensors_.erase("blocks.0.mlp.fc2.comfy_quant");
  Save();
  const absl::Status status = Open().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("blocks.0.mlp.fc2.weight"), HasSubstr("F8_E4M3")));
}

TEST_F(Quantised, NotANumberCodeIsNamed) {
  Build(Fp8Comfy);
  Tensor& codes = tensors_.at("blocks.1.mlp.fc2.weight");
  codes.as<uint8_t>()[12345] = kE4m3Nan;
  Save();
  const absl::Status status = Open().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status), HasSubstr("blocks.1.mlp.fc2.weight"));
}

TEST_F(Quantised, RotationGroupThatDoesNotFitIsNamed) {
  for (const char* group : {"3", "512", "-4", "\"256\""}) {
    Build([&group](TensorMap& tensors, const std::string& layer) {
      return Int8(tensors, layer, 256,
                  "{\"format\": \"int8_tensorwise\", \"convrot\": true, \"convrot_groupsize\": " +
                      std::string(group) + "}");
    });
    const absl::Status status = Open().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << group;
  }
}

}  // namespace
}  // namespace h3rt
