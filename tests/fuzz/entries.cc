#include "tests/fuzz/entries.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "h3rt/base/check.h"
#include "h3rt/io/checkpoint.h"
#include "h3rt/io/inspect.h"
#include "h3rt/io/model_config.h"
#include "h3rt/io/safetensors.h"

namespace h3rt {
namespace {

// A file without a name in any folder, so that runs neither touch the disk nor meet each other.
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::byte> bytes) : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    H3RT_CHECK(fd_ >= 0);
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n = ::write(fd_, bytes.data() + done, bytes.size() - done);
      H3RT_CHECK(n > 0);
      done += static_cast<size_t>(n);
    }
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(fd_); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

// The promises of an accepted header: the tensors cover the data once.
void CheckHeader(const SafetensorsHeader& header, uint64_t file_size) {
  H3RT_CHECK(header.data_begin <= file_size);
  uint64_t total = 0;
  for (const auto& [name, entry] : header.entries) {
    H3RT_CHECK(entry.begin <= entry.end && entry.end <= file_size - header.data_begin);
    total += entry.end - entry.begin;
    if (!entry.dtype) continue;
    H3RT_CHECK(static_cast<uint64_t>(entry.shape.elements() * SizeOf(*entry.dtype)) ==
               entry.end - entry.begin);
  }
  H3RT_CHECK(total == file_size - header.data_begin);
}

// Reads every byte that the weights point to: the sanitizer sees a view that leaves the file.
template <typename Opened>
void Touch(const Opened& opened) {
  if (!opened.ok()) {
    H3RT_CHECK(!opened.status().message().empty());
    return;
  }
  H3RT_CHECK(!opened->weights.entries().empty());
  for (const auto& [name, view] : opened->weights.entries()) {
    const Tensor copy = Tensor::Copy(view).value();
    H3RT_CHECK(copy.elements() == view.elements());
  }
}

template <typename Config>
bool RoundTrip(const Json& json) {
  const absl::StatusOr<Config> config = Config::FromJson(json, "fuzz");
  if (!config.ok()) {
    H3RT_CHECK(!config.status().message().empty());
    return false;
  }
  H3RT_CHECK(config->Validate().ok());
  const Json written = config->ToJson();
  const absl::StatusOr<Config> again = Config::FromJson(written, "fuzz");
  H3RT_CHECK(again.ok());
  H3RT_CHECK(again->ToJson() == written);
  return true;
}

}  // namespace

bool FuzzSafetensors(std::span<const std::byte> bytes) {
  const absl::StatusOr<SafetensorsHeader> header =
      ParseSafetensorsHeader(bytes, bytes.size(), "fuzz");
  if (!header.ok()) {
    H3RT_CHECK(header.status().code() == absl::StatusCode::kDataLoss);
    return false;
  }
  CheckHeader(*header, bytes.size());
  const MemoryFile file(bytes);
  const absl::StatusOr<InspectReport> report = Inspect(file.path());
  if (report.ok()) H3RT_CHECK(!report->ToJson().dump(-1, ' ', true).empty());
  Touch(OpenTransformer(file.path()));
  Touch(OpenTransformer(file.path(), {.layout = CheckpointLayout::kOriginalInterleaved,
                                      .dequantized = DType::kBF16}));
  Touch(OpenVideoVae(file.path()));
  Touch(OpenAudioVae(file.path()));
  return true;
}

bool FuzzConfig(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const absl::StatusOr<Json> json = ParseJson(text, "fuzz");
  if (!json.ok()) {
    H3RT_CHECK(json.status().code() == absl::StatusCode::kDataLoss);
    return false;
  }
  // A conditioner of another class is taken by its name alone, which says nothing of the content.
  const bool foreign = json->is_object() && json->contains("_class_name") &&
                       (*json)["_class_name"] != kHashConditionerClass;
  // Each one runs, whatever the others say.
  const bool accepted[] = {RoundTrip<DitConfig>(*json), RoundTrip<VideoVaeConfig>(*json),
                           RoundTrip<AudioVaeConfig>(*json), RoundTrip<SchedulerConfig>(*json),
                           RoundTrip<ConditionerConfig>(*json) && !foreign};
  return std::any_of(std::begin(accepted), std::end(accepted), [](bool ok) { return ok; });
}

}  // namespace h3rt
