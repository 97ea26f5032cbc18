#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "h3rt/model/text/conditioner.h"
#include "h3rt/model/text/words.h"

namespace h3rt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Text : public testing::Test {
 protected:
  static std::unique_ptr<Conditioner> Make(int64_t seed = 7, int64_t text_dim = 64) {
    ConditionerConfig config;
    config.text_dim = text_dim;
    config.seed = seed;
    return MakeConditioner(config).value();
  }
  ConditionerOutput Encode(const std::string& prompt, int64_t seed = 7) {
    return Make(seed)->Encode({.prompt = prompt}, context_).value();
  }
  static std::vector<float> Row(const ConditionerOutput& out, int64_t row) {
    const int64_t width = out.embeds.shape()[1];
    const float* begin = out.embeds.as<float>() + row * width;
    return {begin, begin + width};
  }

  ThreadPool pool_{1};
  ExecContext context_{.pool = &pool_};
};

TEST(Words, AreSplitOnUnicodeWhiteSpace) {
  const auto split = [](std::string_view text) { return SplitWords(text).value(); };
  EXPECT_THAT(split("a  b\tc\r\nd"), ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(split(" \xc2\xa0x\xe2\x80\x83y\xe3\x80\x80z "), ElementsAre("x", "y", "z"));
  EXPECT_THAT(split("\xe2\x80\xa8\xc2\x85"), IsEmpty());
  EXPECT_THAT(split(""), IsEmpty());
  // U+200B is not white space, and neither are control characters.
  EXPECT_THAT(split("a\xe2\x80\x8b"
                    "b\x01 \x7f"),
              ElementsAre("a\xe2\x80\x8b"
                          "b\x01",
                          "\x7f"));
  EXPECT_THAT(split(std::string_view("a\0b c", 5)), ElementsAre(std::string_view("a\0b", 3), "c"));
}

TEST(Words, BytesThatAreNotUtf8AreRefusedWithTheirPosition) {
  const std::pair<std::string, const char*> cases[] = {
      {"ab\xff", "position 2"},            // never a lead byte
      {"\x80", "position 0"},              // continuation alone
      {"a\xc0\x80", "position 1"},         // overlong NUL
      {"\xe0\x80\x80", "position 0"},      // overlong
      {"\xf0\x80\x80\x80", "position 0"},  // overlong
      {"xyz\xed\xa0\x80", "position 3"},   // surrogate
      {"\xf4\x90\x80\x80", "position 0"},  // over U+10FFFF
      {"ok \xe2\x82", "position 3"},       // cut short
      {"\xc3(", "position 0"}};            // no continuation
  for (const auto& [text, position] : cases) {
    const absl::Status status = SplitWords(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(MessageOf(status), HasSubstr(position));
  }
  EXPECT_THAT(SplitWords("\xf4\x8f\xbf\xbf \xed\x9f\xbf").value(), testing::SizeIs(2));
}

TEST_F(Text, TheSameWordIsTheSameRowAnywhere) {
  const ConditionerOutput out = Encode("the cat and the Cat");
  ASSERT_EQ(out.embeds.shape(), (Shape{5, 64}));
  EXPECT_EQ(Row(out, 0), Row(out, 3));
  EXPECT_EQ(Row(out, 1), Row(out, 4));  // ASCII case does not matter
  EXPECT_NE(Row(out, 0), Row(out, 1));
  EXPECT_EQ(Row(Encode("cat"), 0), Row(out, 1));
  EXPECT_THAT(out.tags, testing::Each(1));
}

TEST_F(Text, OtherSeedsAndWordsGiveOtherRows) {
  EXPECT_NE(Row(Encode("cat", 7), 0), Row(Encode("cat", 8), 0));
  EXPECT_NE(Row(Encode("ab"), 0), Row(Encode("ba"), 0));
  EXPECT_NE(Row(Encode("\xc3\x84"), 0), Row(Encode("\xc3\xa4"), 0));  // only ASCII is lower-cased
}

// Pins the bits: a model that is trained on these rows depends on them.
TEST_F(Text, RowsAreTheSameBitsEverywhere) {
  const std::vector<float> row = Row(Encode("rain"), 0);
  EXPECT_EQ(row[0], -0.359830797f);
  EXPECT_EQ(row[1], 0.140337974f);
  EXPECT_EQ(row[63], -1.62665188f);
}

TEST_F(Text, RowsHaveMeanZeroAndVarianceOne) {
  std::string prompt;
  for (int i = 0; i < 1000; ++i) prompt += "word" + std::to_string(i) + " ";
  const ConditionerOutput out = Encode(prompt);
  double sum = 0.0;
  double squares = 0.0;
  const int64_t n = out.embeds.elements();
  ASSERT_EQ(n, 64000);
  for (int64_t i = 0; i < n; ++i) {
    const double v = out.embeds.as<float>()[i];
    sum += v;
    squares += v * v;
  }
  // Five standard deviations of the estimates from 64,000 independent values.
  EXPECT_NEAR(sum / static_cast<double>(n), 0.0, 5.0 / std::sqrt(64000.0));
  EXPECT_NEAR(squares / static_cast<double>(n), 1.0, 5.0 * std::sqrt(2.0 / 64000.0));
}

TEST_F(Text, KeyframesComeFirstAsVisionBlocks) {
  const ConditionerOutput out =
      Make()
          ->Encode({.prompt = "a cat", .keyframes = 2, .cells_high = 2, .cells_wide = 3}, context_)
          .value();
  // "<Picture" "j>:" start 6 cells end, twice, then two words.
  EXPECT_THAT(out.tags,
              ElementsAre(1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1));
  EXPECT_EQ(out.embeds.shape()[0], 22);
  EXPECT_EQ(Row(out, 0), Row(out, 10));
  EXPECT_NE(Row(out, 1), Row(out, 11));  // "1>:" and "2>:"
  EXPECT_EQ(Row(out, 3), Row(out, 8));   // cells
  EXPECT_NE(Row(out, 2), Row(out, 9));   // start and end
  EXPECT_EQ(Row(out, 1), Row(Encode("1>:"), 0));
  EXPECT_EQ(Row(out, 21), Row(Encode("cat"), 0));
  // A prompt cannot spell a special token.
  EXPECT_NE(Row(out, 3), Row(Encode("<|image_pad|>"), 0));
}

TEST_F(Text, PromptsWithoutAWordAreRefused) {
  for (const std::string prompt : {"", "   ", "\n\t\xe3\x80\x80"}) {
    const absl::Status status = Make()->Encode({.prompt = prompt}, context_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(MessageOf(status), HasSubstr("no word"));
  }
}

TEST_F(Text, TenThousandWordsWork) {
  std::string prompt;
  for (int i = 0; i < 10000; ++i) prompt += "w" + std::to_string(i) + "\n";
  const ConditionerOutput out = Encode(prompt);
  EXPECT_EQ(out.embeds.shape(), (Shape{10000, 64}));
  EXPECT_EQ(Row(out, 9999), Row(Encode("w9999"), 0));
}

TEST_F(Text, ControlCharactersArePartOfWords) {
  const ConditionerOutput out = Encode("a\x01 a \x1b[0m");
  EXPECT_EQ(out.embeds.shape()[0], 3);
  EXPECT_NE(Row(out, 0), Row(out, 1));
}

TEST_F(Text, BadInputIsRefused) {
  const std::unique_ptr<Conditioner> conditioner = Make();
  const auto code = [&](const ConditionerInput& input) {
    return conditioner->Encode(input, context_).status().code();
  };
  const auto bad = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code({.prompt = "a\xff"}), bad);
  EXPECT_EQ(code({.prompt = "a", .keyframes = -1}), bad);
  EXPECT_EQ(code({.prompt = "a", .keyframes = 3, .cells_high = 1, .cells_wide = 1}), bad);
  EXPECT_EQ(code({.prompt = "a", .keyframes = 1, .cells_high = 0, .cells_wide = 1}), bad);
  EXPECT_EQ(code({.prompt = "a", .keyframes = 1, .cells_high = 1, .cells_wide = -1}), bad);
  const int64_t huge = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(code({.prompt = "a", .keyframes = 2, .cells_high = huge, .cells_wide = huge}), bad);
}

TEST_F(Text, CancellationIsSeen) {
  CancelToken cancel;
  cancel.Cancel();
  const ExecContext context{.pool = &pool_, .cancel = &cancel};
  EXPECT_EQ(Make()->Encode({.prompt = "a"}, context).status().code(), absl::StatusCode::kCancelled);
}

TEST_F(Text, EncodersThatAreNotBuiltAreNamedWithThoseThatAre) {
  ConditionerConfig config;
  config.class_name = "Qwen3VLForConditionalGeneration";
  const absl::Status status = MakeConditioner(config).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(MessageOf(status), HasSubstr("Qwen3VLForConditionalGeneration"));
  EXPECT_THAT(MessageOf(status), HasSubstr("H3rtHashConditioner"));
}

TEST_F(Text, CountsRowsWithoutMakingThem) {
  const auto conditioner = Make();
  for (const ConditionerInput& input :
       {ConditionerInput{.prompt = "a cat"},
        ConditionerInput{.prompt = "a cat", .keyframes = 1, .cells_high = 2, .cells_wide = 3},
        ConditionerInput{.prompt = "x y z", .keyframes = 2, .cells_high = 4, .cells_wide = 4}}) {
    const auto count = conditioner->CountRows(input);
    ASSERT_TRUE(count.ok()) << count.status();
    EXPECT_EQ(*count, conditioner->Encode(input, context_).value().embeds.shape()[0]);
  }
  EXPECT_EQ(conditioner->CountRows({.prompt = " "}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace h3rt
