#include "h3rt/io/test_files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "h3rt/base/check.h"
#include "h3rt/base/json.h"
#include "h3rt/num/bf16.h"
#include "h3rt/num/f16.h"

namespace h3rt {
namespace {

void Replace(std::string& text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at != std::string::npos) text.replace(at, from.size(), to);
}

bool TakeOut(std::string& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.resize(text.size() - suffix.size());
  return true;
}

const Tensor& At(const TensorMap& tensors, const std::string& name) {
  const auto it = tensors.find(name);
  H3RT_CHECK(it != tensors.end());
  return it->second;
}

// Swaps the halves of the rows: [value; gate] to [gate; value].
Tensor SwapHalves(const Tensor& tensor) {
  const std::string bytes = Bytes(tensor.view());
  return ByteTensor(tensor.dtype(), tensor.shape(),
                    bytes.substr(bytes.size() / 2) + bytes.substr(0, bytes.size() / 2));
}

std::string OriginalName(std::string name) {
  const std::pair<const char*, const char*> rules[] = {
      {"token_refiner.refiner_blocks.", "token_refiner.blocks."},
      {"transformer_blocks.", "blocks."},
      {"attn.norm_q.", "attn.q_norm."},
      {"attn.norm_k.", "attn.k_norm."},
      {"attn.to_out.0.", "attn.out_proj."},
      {"ff.net.0.proj.", "mlp.fc1."},
      {"ff.net.2.", "mlp.fc2."},
      {"context_embedder.", "condition_proj."},
      {"time_embedder.linear_1.", "time_embedder.proj_in."},
      {"time_embedder.linear_2.", "time_embedder.proj_out."},
      {"norm_out.norm.", "final_layer.norm."},
      {"norm_out.linear.", "final_layer.adaln_proj.linear."},
  };
  for (const auto& [from, to] : rules) Replace(name, from, to);
  const std::pair<const char*, const char*> starts[] = {
      {"proj_in.", "video_patch_proj."},
      {"audio_proj_in.", "audio_patch_proj."},
      {"proj_out.", "final_layer.video_out."},
      {"audio_proj_out.", "final_layer.audio_out."}};
  for (const auto& [from, to] : starts) {
    if (name.starts_with(from)) name = to + name.substr(std::strlen(from));
  }
  return name;
}

}  // namespace

TempFolder::TempFolder() {
  std::string name = std::filesystem::temp_directory_path().string() + "/h3rt-io-XXXXXX";
  H3RT_CHECK(::mkdtemp(name.data()) != nullptr);
  path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

std::string FixturePath(const std::string& name) {
  return std::string(H3RT_TEST_DATA) + "/h3/" + name;
}

void MakeFolder(const std::string& path) { std::filesystem::create_directories(path); }

void CopyFile(const std::string& from, const std::string& to) {
  std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing);
}

void WriteText(const std::string& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  H3RT_CHECK(out.good());
}

std::string ReadText(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  H3RT_CHECK(in.good());
  return out.str();
}

std::string RawSafetensors(const std::string& header, const std::string& data) {
  return RawSafetensors(header, data, header.size());
}

std::string RawSafetensors(const std::string& header, const std::string& data, uint64_t length) {
  std::string out(8, '\0');
  for (size_t i = 0; i < 8; ++i) out[i] = static_cast<char>((length >> (8 * i)) & 0xff);
  return out + header + data;
}

void WriteSparse(const std::string& path, std::vector<SafetensorsSpec> specs) {
  Json json = Json::object();
  int64_t offset = 0;
  for (const SafetensorsSpec& spec : specs) {
    const int64_t end = offset + spec.shape.elements() * SizeOf(spec.dtype);
    Json shape = Json::array();
    for (const int64_t d : spec.shape.dims()) shape.push_back(d);
    json[spec.name] = {
        {"dtype", NameOf(spec.dtype)}, {"shape", shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string header = json.dump();
  header.append((8 - header.size() % 8) % 8, ' ');
  WriteText(path, RawSafetensors(header, ""));
  const auto size = static_cast<off_t>(8 + header.size()) + static_cast<off_t>(offset);
  H3RT_CHECK(::truncate(path.c_str(), size) == 0);
}

TensorMap ReadTensors(const std::string& path) {
  absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path);
  H3RT_CHECK(file.ok());
  TensorMap out;
  for (const auto& [name, entry] : file->entries()) {
    out[name] = Tensor::Copy(file->Get(name).value()).value();
  }
  H3RT_CHECK(!out.empty());
  return out;
}

void WriteTensors(const std::string& path, const TensorMap& tensors,
                  const SafetensorsWriter::Metadata& metadata) {
  std::map<std::string, ConstTensorView, std::less<>> views;
  for (const auto& [name, tensor] : tensors) views[name] = tensor.view();
  H3RT_CHECK(WriteSafetensors(path, views, metadata).ok());
}

void WriteShards(const std::string& folder, const TensorMap& tensors, int count) {
  MakeFolder(folder);
  std::vector<TensorMap> shards(static_cast<size_t>(count));
  Json map = Json::object();
  int i = 0;
  for (const auto& [name, tensor] : tensors) {
    const int shard = i++ % count;
    shards[static_cast<size_t>(shard)][name] = CopyOf(tensor);
    map[name] = "model-" + std::to_string(shard) + ".safetensors";
  }
  for (int shard = 0; shard < count; ++shard) {
    WriteTensors(folder + "/model-" + std::to_string(shard) + ".safetensors",
                 shards[static_cast<size_t>(shard)]);
  }
  WriteText(folder + "/model.safetensors.index.json", Json{{"weight_map", map}}.dump());
}

Tensor FloatTensor(const Shape& shape, const std::vector<float>& values) {
  H3RT_CHECK(static_cast<int64_t>(values.size()) == shape.elements());
  Tensor out = Tensor::Create(DType::kF32, shape).value();
  std::memcpy(out.as<float>(), values.data(), values.size() * sizeof(float));
  return out;
}

Tensor ByteTensor(DType dtype, const Shape& shape, std::string_view bytes) {
  Tensor out = Tensor::Create(dtype, shape).value();
  H3RT_CHECK(static_cast<int64_t>(bytes.size()) == out.bytes());
  std::memcpy(out.view().data(), bytes.data(), bytes.size());
  return out;
}

Tensor CopyOf(const Tensor& tensor) { return Tensor::Copy(tensor.view()).value(); }

std::vector<float> Floats(const ConstTensorView& view) {
  const Tensor copy = Tensor::Copy(view).value();
  std::vector<float> out(static_cast<size_t>(copy.elements()));
  for (size_t i = 0; i < out.size(); ++i) {
    if (copy.dtype() == DType::kF32) {
      out[i] = copy.as<float>()[i];
    } else {
      const uint16_t bits = copy.as<uint16_t>()[i];
      out[i] = copy.dtype() == DType::kBF16 ? Bf16ToFloat(bits) : F16ToFloat(bits);
    }
  }
  return out;
}

std::string Bytes(const ConstTensorView& view) {
  const Tensor copy = Tensor::Copy(view).value();
  return std::string(reinterpret_cast<const char*>(copy.view().data()),
                     static_cast<size_t>(copy.bytes()));
}

Tensor StackRows(const std::vector<const Tensor*>& parts) {
  std::string bytes;
  std::vector<int64_t> dims(parts[0]->shape().dims().begin(), parts[0]->shape().dims().end());
  dims[0] = 0;
  for (const Tensor* part : parts) {
    bytes += Bytes(part->view());
    dims[0] += part->shape()[0];
  }
  return ByteTensor(parts[0]->dtype(), Shape::FromDims(dims).value(), bytes);
}

Tensor InterleaveHeads(const Tensor& q, const Tensor& k, const Tensor& v, int64_t heads) {
  const std::string parts[] = {Bytes(q.view()), Bytes(k.view()), Bytes(v.view())};
  const size_t head = parts[0].size() / static_cast<size_t>(heads);
  std::string bytes;
  for (size_t i = 0; i < static_cast<size_t>(heads); ++i) {
    for (const std::string& part : parts) bytes += part.substr(i * head, head);
  }
  std::vector<int64_t> dims(q.shape().dims().begin(), q.shape().dims().end());
  dims[0] *= 3;
  return ByteTensor(q.dtype(), Shape::FromDims(dims).value(), bytes);
}

TensorMap OriginalTransformer(const TensorMap& diffusers, int64_t heads, bool interleaved) {
  TensorMap out;
  for (const auto& [name, tensor] : diffusers) {
    std::string stem = name;
    if (TakeOut(stem, "attn.to_q.weight")) {
      const Tensor& k = At(diffusers, stem + "attn.to_k.weight");
      const Tensor& v = At(diffusers, stem + "attn.to_v.weight");
      out[OriginalName(stem) + "attn.qkv_proj.weight"] =
          interleaved ? InterleaveHeads(tensor, k, v, heads) : StackRows({&tensor, &k, &v});
    } else if (name.find("attn.to_k.") != std::string::npos ||
               name.find("attn.to_v.") != std::string::npos) {
      continue;
    } else {
      const bool fc1 = name.find("ff.net.0.proj") != std::string::npos;
      out[OriginalName(name)] = fc1 ? SwapHalves(tensor) : CopyOf(tensor);
    }
  }
  return out;
}

TensorMap OriginalVideoVae(const TensorMap& diffusers, int64_t heads) {
  const std::pair<const char*, const char*> rules[] = {
      {"encoder.down_blocks.", "encoder.down."},
      {".resnets.", ".block."},
      {".conv_shortcut.", ".nin_shortcut."},
      {".downsamplers.0.conv", ".downsample.conv"},
      {"decoder.proj_in.", "decoder.x_embedder."},
      {"attn.to_out.0.", "attn.to_out."},
      {"ff.net.0.proj.", "ff.w1."},
      {"ff.net.2.", "ff.w2."},
  };
  TensorMap out;
  for (const auto& [name, tensor] : diffusers) {
    const size_t q = name.find("attn.to_q.");
    if (q != std::string::npos) {
      const std::string stem = name.substr(0, q) + "attn.";
      const std::string part = name.substr(q + std::strlen("attn.to_q."));
      out[stem + "to_qkv." + part] = InterleaveHeads(tensor, At(diffusers, stem + "to_k." + part),
                                                     At(diffusers, stem + "to_v." + part), heads);
      continue;
    }
    if (name.find("attn.to_k.") != std::string::npos ||
        name.find("attn.to_v.") != std::string::npos) {
      continue;
    }
    std::string renamed = name;
    for (const auto& [from, to] : rules) Replace(renamed, from, to);
    out[renamed] =
        name.find("ff.net.0.proj") != std::string::npos ? SwapHalves(tensor) : CopyOf(tensor);
  }
  return out;
}

TensorMap WithPrefix(const TensorMap& tensors, const std::string& prefix) {
  TensorMap out;
  for (const auto& [name, tensor] : tensors) out[prefix + name] = CopyOf(tensor);
  return out;
}

std::string Difference(const WeightStore& a, const WeightStore& b) {
  if (a.entries().empty()) return "nothing to compare";
  for (const auto& [name, view] : a.entries()) {
    const auto it = b.entries().find(name);
    if (it == b.entries().end()) return name + " is missing";
    if (view.dtype() != it->second.dtype()) return name + " has another dtype";
    if (view.elements() != it->second.elements()) return name + " has another size";
    if (Bytes(view) != Bytes(it->second)) return name + " has other bytes";
  }
  for (const auto& [name, view] : b.entries()) {
    if (!a.Has(name)) return name + " is one too many";
  }
  return "";
}

}  // namespace h3rt
