#include "h3rt/model/text/conditioner.h"

#include "h3rt/model/text/hash_conditioner.h"

namespace h3rt {
namespace {

using Maker = std::unique_ptr<Conditioner> (*)(const ConditionerConfig& config);

// One row a conditioner that is built. The released encoder (Qwen3-VL) takes its place here.
struct Entry {
  const char* class_name;
  Maker make;
};
constexpr Entry kConditioners[] = {
    {"H3rtHashConditioner", MakeHashConditioner},
};

}  // namespace

absl::StatusOr<std::unique_ptr<Conditioner>> MakeConditioner(const ConditionerConfig& config) {
  H3RT_RETURN_IF_ERROR(config.Validate());
  std::string built;
  for (const Entry& entry : kConditioners) {
    if (config.class_name == entry.class_name) return entry.make(config);
    built += (built.empty() ? "" : ", ") + std::string(entry.class_name);
  }
  return Unimplemented({.what = "text encoder of this model is not built",
                        .got = config.class_name,
                        .wanted = "one of " + built + ", or embeddings computed elsewhere",
                        .where = "text_encoder/config.json"});
}

}  // namespace h3rt
