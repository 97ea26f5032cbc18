#include "h3rt/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace h3rt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Nested(int depth, const std::string& open, const std::string& close) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += open;
  text += "1";
  for (int i = 0; i < depth; ++i) text += close;
  return text;
}

TEST(Json, KeysKeepTheirOrder) {
  const auto json = ParseJson(R"({"z": 1, "a": {"y": 2, "b": 3}})", "test");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json->dump(), R"({"z":1,"a":{"y":2,"b":3}})");
}

TEST(Json, TextThatIsNotJsonIsDataLossWithItsSource) {
  for (const char* text :
       {"",      " ",       "{",      "[1,]",     "{\"a\":1,}",    "{'a':1}",     "{\"a\" 1}",
        "nul",   "01",      "1 2",    "{} x",     "// comment\n1", "[NaN]",       "[Infinity]",
        "1e999", "\"\\x\"", "\"open", "\"\xff\"", "\"\xc3\x28\"",  "\"\\ud800\"", "[1"}) {
    const auto json = ParseJson(text, "weights.json");
    ASSERT_EQ(json.status().code(), absl::StatusCode::kDataLoss) << text;
    EXPECT_THAT(MessageOf(json.status()), HasSubstr("[weights.json]")) << text;
  }
  EXPECT_FALSE(ParseJson(std::string_view("{\"a\":1}\0", 8), "NUL").ok());
  EXPECT_FALSE(ParseJson(std::string_view("{\"a\":1}\0, x", 11), "text after NUL").ok());
}

TEST(Json, ADuplicateKeyIsRefusedByNameAtAnyDepth) {
  for (const char* text :
       {R"({"twice": 1, "twice": 1})", R"({"a": {"twice": 1, "b": {}, "twice": 2}})",
        R"([{"twice": [{}], "x": {"twice": 0}, "twice": null}])",
        R"({"twice": {"a": 1}, "twice": {"a": 2}})", R"({"twice": 1, "\u0074wice": 2})"}) {
    const auto json = ParseJson(text, "test");
    ASSERT_EQ(json.status().code(), absl::StatusCode::kDataLoss) << text;
    EXPECT_THAT(MessageOf(json.status()), HasSubstr("duplicate key \"twice\"")) << text;
  }
}

TEST(Json, TheSameKeyInUnlikeObjectsIsNotADuplicate) {
  EXPECT_TRUE(ParseJson(R"({"a": {"a": {"a": 1}}, "b": [{"a": 1}, {"a": 2}]})", "test").ok());
}

TEST(Json, NestingOver64LevelsIsRefused) {
  EXPECT_TRUE(ParseJson(Nested(64, "[", "]"), "test").ok());
  EXPECT_TRUE(ParseJson(Nested(64, "{\"a\":", "}"), "test").ok());
  for (const int depth : {65, 66, 1000, 1000000}) {
    for (const auto& text : {Nested(depth, "[", "]"), Nested(depth, "{\"a\":", "}")}) {
      const auto json = ParseJson(text, "test");
      ASSERT_EQ(json.status().code(), absl::StatusCode::kDataLoss) << depth;
      EXPECT_THAT(MessageOf(json.status()), HasSubstr("nesting over 64 levels")) << depth;
    }
  }
  EXPECT_FALSE(ParseJson(std::string(1000000, '['), "never closed").ok());
}

TEST(Json, AMessageDoesNotRepeatALongKey) {
  const std::string key(100000, 'k');
  const auto json = ParseJson("{\"" + key + "\":1,\"" + key + "\":2}", "test");
  ASSERT_FALSE(json.ok());
  EXPECT_LT(MessageOf(json.status()).size(), 300u);
}

class TypedReads : public ::testing::Test {
 protected:
  Json object_ = *ParseJson(R"({
      "int": -7, "big": 9223372036854775807, "over": 9223372036854775808, "huge": 1e30,
      "whole": 3.0, "double": 2.5, "string": "s", "null": null, "bool": true,
      "ints": [1, -2, 3], "doubles": [1, 2.5], "mixed": [1, "2"], "empty": [],
      "half": [1, 1.5], "object": {}})",
                            "test");
};

TEST_F(TypedReads, IntegersMustBeIntegersThatFit) {
  EXPECT_EQ(JsonInt(object_, "int", "w").value(), -7);
  EXPECT_EQ(JsonInt(object_, "big", "w").value(), INT64_MAX);
  for (const char* key : {"over", "huge", "whole", "double", "string", "null", "bool", "ints"}) {
    EXPECT_EQ(JsonInt(object_, key, "w").status().code(), absl::StatusCode::kInvalidArgument)
        << key;
  }
  EXPECT_EQ(MessageOf(JsonInt(object_, "string", "config.json").status()),
            "key \"string\": got \"s\", wanted an integer [config.json]");
}

TEST_F(TypedReads, NumbersMayBeIntegersButNotText) {
  EXPECT_EQ(JsonDouble(object_, "double", "w").value(), 2.5);
  EXPECT_EQ(JsonDouble(object_, "int", "w").value(), -7.0);
  for (const char* key : {"string", "null", "bool", "ints"}) {
    EXPECT_FALSE(JsonDouble(object_, key, "w").ok()) << key;
  }
}

TEST_F(TypedReads, StringsAndListsHaveTheirTypes) {
  EXPECT_EQ(JsonString(object_, "string", "w").value(), "s");
  EXPECT_FALSE(JsonString(object_, "int", "w").ok());
  EXPECT_THAT(JsonInts(object_, "ints", "w").value(), ElementsAre(1, -2, 3));
  EXPECT_TRUE(JsonInts(object_, "empty", "w").value().empty());
  EXPECT_THAT(JsonDoubles(object_, "doubles", "w").value(), ElementsAre(1.0, 2.5));
  for (const char* key : {"mixed", "half", "int", "null", "object"}) {
    EXPECT_FALSE(JsonInts(object_, key, "w").ok()) << key;
  }
  EXPECT_FALSE(JsonDoubles(object_, "mixed", "w").ok());
  EXPECT_FALSE(JsonDoubles(object_, "object", "w").ok());
}

TEST_F(TypedReads, AMissingKeyOrAValueThatIsNoObjectIsNamed) {
  EXPECT_EQ(MessageOf(JsonInt(object_, "absent", "config.json").status()),
            "missing key \"absent\" [config.json]");
  EXPECT_EQ(MessageOf(JsonInt(object_["ints"], "x", "config.json").status()),
            "not an object: got [1,-2,3] [config.json]");
}

TEST(Json, SnippetsAreOneShortLine) {
  EXPECT_EQ(JsonSnippet(Json(1)), "1");
  const std::string snippet = JsonSnippet(Json(std::string(1000, 'a')));
  EXPECT_EQ(snippet.size(), 80u);
  EXPECT_EQ(snippet.substr(77), "...");
  EXPECT_NO_THROW(JsonSnippet(Json(std::string("\xff\xfe"))));
}

TEST(Json, AFileThatIsMissingIsNotFound) {
  EXPECT_EQ(ReadJsonFile(::testing::TempDir() + "/no-such.json").status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace h3rt
