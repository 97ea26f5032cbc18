#include "h3rt/model/text/hash_conditioner.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "fmt/format.h"
#include "h3rt/model/text/words.h"

namespace h3rt {
namespace {

// Rows beyond this are refused before anything is allocated; the packed sequence has that limit.
constexpr int64_t kMaxRows = int64_t{1} << 31;
constexpr int64_t kMaxKeyframes = 2;  // first and last

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;

// The output function of SplitMix64.
uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Sum of four 16-bit uniforms: a bell curve from integers alone. Its variance is that of four
// uniforms over 65,536 values, 4 (2^32 - 1) / 12.
float Bell(uint64_t bits) {
  constexpr float kUnitVariance = 2.6428998e-5f;  // 1 / sqrt(4 (2^32 - 1) / 12)
  const auto sum = static_cast<int64_t>((bits & 0xffff) + ((bits >> 16) & 0xffff) +
                                        ((bits >> 32) & 0xffff) + (bits >> 48));
  return static_cast<float>(sum - 131070) * kUnitVariance;
}

// What one row stands for. Special tokens hash apart from words with the same letters.
struct Token {
  std::string_view text;
  bool special = false;
};

uint64_t HashOf(const Token& token, uint64_t seed) {
  uint64_t h = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : token.text) {
    const bool upper = !token.special && c >= 'A' && c <= 'Z';
    const auto byte = static_cast<uint8_t>(upper ? c - 'A' + 'a' : c);
    h = (h ^ byte) * 0x100000001b3u;
  }
  return Mix(h + (token.special ? kGolden : 0)) ^ Mix(seed * kGolden + 1);
}

class HashConditioner final : public Conditioner {
 public:
  explicit HashConditioner(const ConditionerConfig& config)
      : text_dim_(config.text_dim), seed_(static_cast<uint64_t>(config.seed)) {}

  int64_t text_dim() const override { return text_dim_; }

  absl::StatusOr<int64_t> CountRows(const ConditionerInput& input) const override {
    H3RT_ASSIGN_OR_RETURN(const std::vector<std::string_view> words, WordsOf(input));
    return RowsOf(input, words);
  }

  absl::StatusOr<ConditionerOutput> Encode(const ConditionerInput& input,
                                           const ExecContext& context) const override {
    H3RT_ASSIGN_OR_RETURN(const std::vector<std::string_view> words, WordsOf(input));
    return Build(input, words, context);
  }

 private:
  static absl::StatusOr<std::vector<std::string_view>> WordsOf(const ConditionerInput& input) {
    H3RT_ASSIGN_OR_RETURN(std::vector<std::string_view> words, SplitWords(input.prompt));
    if (words.empty()) {
      return InvalidArgument({.what = "prompt has no word",
                              .got = fmt::format("{} bytes of white space", input.prompt.size()),
                              .wanted = "at least one word",
                              .where = "prompt"});
    }
    H3RT_RETURN_IF_ERROR(CheckBlocks(input, words.size()));
    return words;
  }

  // Of input that CheckBlocks has passed.
  static int64_t RowsOf(const ConditionerInput& input, const std::vector<std::string_view>& words) {
    const int64_t cells = input.cells_high * input.cells_wide;
    const int64_t vision = input.keyframes == 0 ? 0 : input.keyframes * (cells + 4);
    return vision + static_cast<int64_t>(words.size());
  }

  static absl::Status CheckBlocks(const ConditionerInput& in, size_t words) {
    const auto bad = [](const char* what, std::string got, std::string wanted) {
      return InvalidArgument(
          {.what = what, .got = std::move(got), .wanted = std::move(wanted), .where = "keyframes"});
    };
    if (in.keyframes < 0 || in.keyframes > kMaxKeyframes) {
      return bad("number of keyframes", fmt::format("{}", in.keyframes),
                 fmt::format("0 to {}", kMaxKeyframes));
    }
    if (in.keyframes == 0) return absl::OkStatus();
    if (in.cells_high < 1 || in.cells_wide < 1 || in.cells_high > kMaxRows / in.cells_wide) {
      return bad("cells of a keyframe", fmt::format("{}x{}", in.cells_wide, in.cells_high),
                 "at least 1x1 and at most 2^31 in all");
    }
    const int64_t cells = in.cells_high * in.cells_wide;
    const int64_t rows = in.keyframes * (cells + 4) + static_cast<int64_t>(words);
    if (rows > kMaxRows) return bad("rows", fmt::format("{}", rows), "at most 2^31");
    return absl::OkStatus();
  }

  // Calls row(token, tag) in the order of the released pipeline: for each keyframe the words of
  // "<Picture j>: ", vision_start, the cells, vision_end; then the prompt.
  template <typename Row>
  static absl::Status ForEachRow(const ConditionerInput& input,
                                 const std::vector<std::string_view>& words, const Row& row) {
    const int64_t cells = input.cells_high * input.cells_wide;
    for (int64_t j = 1; j <= input.keyframes; ++j) {
      const std::string number = fmt::format("{}>:", j);
      H3RT_RETURN_IF_ERROR(row(Token{.text = "<Picture"}, 1));
      H3RT_RETURN_IF_ERROR(row(Token{.text = number}, 1));
      H3RT_RETURN_IF_ERROR(row(Token{.text = "<|vision_start|>", .special = true}, 0));
      for (int64_t i = 0; i < cells; ++i) {
        H3RT_RETURN_IF_ERROR(row(Token{.text = "<|image_pad|>", .special = true}, 0));
      }
      H3RT_RETURN_IF_ERROR(row(Token{.text = "<|vision_end|>", .special = true}, 0));
    }
    for (const std::string_view word : words) H3RT_RETURN_IF_ERROR(row(Token{.text = word}, 1));
    return absl::OkStatus();
  }

  absl::StatusOr<ConditionerOutput> Build(const ConditionerInput& input,
                                          const std::vector<std::string_view>& words,
                                          const ExecContext& context) const {
    ConditionerOutput out;
    const int64_t rows = RowsOf(input, words);
    H3RT_ASSIGN_OR_RETURN(out.embeds, Tensor::Create(DType::kF32, {rows, text_dim_}));
    out.tags.reserve(static_cast<size_t>(rows));
    float* next = out.embeds.as<float>();
    H3RT_RETURN_IF_ERROR(ForEachRow(input, words, [&](const Token& token, int32_t tag) {
      if (context.cancel != nullptr && context.cancel->cancelled()) return Cancelled("prompt");
      const uint64_t state = HashOf(token, seed_);
      for (int64_t k = 0; k < text_dim_; ++k) {
        next[k] = Bell(Mix(state + static_cast<uint64_t>(k + 1) * kGolden));
      }
      next += text_dim_;
      out.tags.push_back(tag);
      return absl::OkStatus();
    }));
    return out;
  }

  int64_t text_dim_;
  uint64_t seed_;
};

}  // namespace

std::unique_ptr<Conditioner> MakeHashConditioner(const ConditionerConfig& config) {
  return std::make_unique<HashConditioner>(config);
}

}  // namespace h3rt
