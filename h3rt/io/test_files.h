// Checkpoint files for tests: temporary folders, broken files, and the fixtures in other layouts.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "h3rt/io/safetensors.h"
#include "h3rt/io/weight_store.h"
#include "h3rt/tensor/tensor.h"

namespace h3rt {

// A folder that is removed with everything in it.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string FixturePath(const std::string& name);  // below tests/data/h3

void MakeFolder(const std::string& path);
void CopyFile(const std::string& from, const std::string& to);
void WriteText(const std::string& path, std::string_view text);
std::string ReadText(const std::string& path);

// A file of this header text and data, whatever they say; `length` overrides the length field.
std::string RawSafetensors(const std::string& header, const std::string& data);
std::string RawSafetensors(const std::string& header, const std::string& data, uint64_t length);

// A file with a right header whose data is a hole.
void WriteSparse(const std::string& path, std::vector<SafetensorsSpec> specs);

using TensorMap = std::map<std::string, Tensor>;

TensorMap ReadTensors(const std::string& path);
void WriteTensors(const std::string& path, const TensorMap& tensors,
                  const SafetensorsWriter::Metadata& metadata = {});
// Shards with an index; tensor i goes into shard i % count.
void WriteShards(const std::string& folder, const TensorMap& tensors, int count);

Tensor FloatTensor(const Shape& shape, const std::vector<float>& values);
Tensor ByteTensor(DType dtype, const Shape& shape, std::string_view bytes);
Tensor CopyOf(const Tensor& tensor);
// Float values of a F32, BF16 or F16 view of any strides.
std::vector<float> Floats(const ConstTensorView& view);
std::string Bytes(const ConstTensorView& view);

// Rows one below the other, and rows of three matrices head by head.
Tensor StackRows(const std::vector<const Tensor*>& parts);
Tensor InterleaveHeads(const Tensor& q, const Tensor& k, const Tensor& v, int64_t heads);

// The original names of a diffusers-layout transformer or video VAE.
TensorMap OriginalTransformer(const TensorMap& diffusers, int64_t heads, bool interleaved);
TensorMap OriginalVideoVae(const TensorMap& diffusers, int64_t heads);
TensorMap WithPrefix(const TensorMap& tensors, const std::string& prefix);

// Empty when both stores have the same names and bytes, else the first difference.
std::string Difference(const WeightStore& a, const WeightStore& b);

}  // namespace h3rt
