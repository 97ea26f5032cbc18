#include "h3rt/io/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "h3rt/io/test_files.h"

namespace h3rt {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kGood = R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                              R"("b":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]}})";
const std::string kData32(32, '\1');

// One broken file, the code it gives and what its message names besides the file.
struct BrokenCase {
  const char* name;
  std::string bytes;
  std::vector<std::string> names;
};

std::string With(const std::string& a, const std::string& b) {
  return RawSafetensors("{\"a\":" + a + ",\"b\":" + b + "}", kData32);
}

std::string Entry(const char* dtype, const char* shape, const char* offsets) {
  return std::string("{\"dtype\":\"") + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

// Lengths, coverage of the data, and text that is not a header.
std::vector<BrokenCase> FileCases() {
  const std::string good_b = Entry("BF16", "[4]", "[24,32]");
  const std::string good = RawSafetensors(kGood, kData32);
  const std::string header(kGood);
  return {
      {"Empty", "", {"too short", "0 bytes", "8 bytes"}},
      {"SevenBytes", "1234567", {"too short", "7 bytes", "8 bytes"}},
      {"EightBytesOfNothing", std::string(8, '\0'), {"header", "0 bytes", "JSON object"}},
      {"HeaderLongerThanFile", RawSafetensors(header, "", 4000), {"4000", "header length"}},
      {"HeaderOver100Megabytes",
       RawSafetensors(header, kData32, 100'000'001),
       {"100000001", "at most 100000000"}},
      {"HeaderLength2To63",
       RawSafetensors(header, kData32, uint64_t{1} << 63),
       {"9223372036854775808", "at most"}},
      {"HeaderLengthAllOnes",
       RawSafetensors(header, kData32, UINT64_MAX),
       {"18446744073709551615"}},
      {"TruncatedLastTensor", good.substr(0, good.size() - 1), {"\"b\"", "[24, 32]", "31 bytes"}},
      {"TrailingBytes", good + "x", {"trailing", "33 bytes", "wanted 32"}},
      {"Overlap",
       With(Entry("F32", "[2,3]", "[0,24]"), Entry("BF16", "[6]", "[20,32]")),
       {"overlap", "\"b\"", "20", "24"}},
      {"SameRange",
       With(Entry("F32", "[8]", "[0,32]"), Entry("F32", "[8]", "[0,32]")),
       {"overlap", "\"b\"", "offset 0", "32"}},
      {"Gap",
       With(Entry("F32", "[5]", "[0,20]"), Entry("BF16", "[4]", "[24,32]")),
       {"gap", "\"b\"", "24", "20"}},
      {"GapAtTheStart", With(Entry("F32", "[5]", "[4,24]"), good_b), {"gap", "\"a\"", "4", "0"}},
      {"EntryIsANumber", With("7", good_b), {"\"a\"", "7", "an object"}},
      {"DuplicateKey",
       RawSafetensors("{\"a\":" + Entry("F32", "[4]", "[0,16]") +
                          ",\"a\":" + Entry("F32", "[4]", "[16,32]") + "}",
                      kData32),
       {"\"a\"", "twice"}},
      {"MetadataNumber",
       RawSafetensors("{\"__metadata__\":{\"k\":1}}", ""),
       {"__metadata__", "\"k\"", "a string"}},
      {"MetadataIsAList", RawSafetensors("{\"__metadata__\":[]}", ""), {"__metadata__", "list"}},
      {"MetadataTwice",
       RawSafetensors("{\"__metadata__\":{},\"__metadata__\":{}}", ""),
       {"__metadata__", "twice"}},
      {"HeaderIsAList", RawSafetensors("[]", ""), {"header", "{"}},
      {"HeaderHasLeadingBlank", RawSafetensors(" {}", ""), {"header", "{"}},
      {"HeaderIsCut", RawSafetensors(header.substr(0, 50), kData32), {"JSON"}},
      {"TextAfterTheObject", RawSafetensors("{}x", ""), {"JSON"}},
      {"NotUtf8", RawSafetensors("{\"\xff\":1}", ""), {"JSON"}},
      {"DeepNesting",
       RawSafetensors("{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}", ""),
       {"\"a\"", "an object"}},
  };
}

// One tensor whose dtype, shape or offsets are odd.
std::vector<BrokenCase> EntryCases() {
  const std::string good_b = Entry("BF16", "[4]", "[24,32]");
  return {
      {"UnknownDType", With(Entry("F31", "[2,3]", "[0,24]"), good_b), {"\"a\"", "F31", "dtype"}},
      {"DTypeOfAnotherSize",
       With(Entry("F64", "[2,3]", "[0,24]"), good_b),
       {"\"a\"", "24 bytes", "48 for F64 [2, 3]"}},
      {"RightBytesWrongShape",
       With(Entry("F32", "[2,4]", "[0,24]"), good_b),
       {"\"a\"", "24 bytes", "32 for F32"}},
      {"OffsetsBackwards",
       With(Entry("F32", "[2,3]", "[24,0]"), good_b),
       {"\"a\"", "[24, 0]", "begin"}},
      {"OffsetAt2To63",
       With(Entry("F32", "[2,3]", "[0,9223372036854775808]"), good_b),
       {"\"a\"", "9223372036854775808", "32 bytes"}},
      {"BothOffsetsAt2To63",
       With(Entry("U8", "[0]", "[9223372036854775808,9223372036854775808]"), good_b),
       {"\"a\"", "9223372036854775808"}},
      {"OffsetBeyond64Bits",
       With(Entry("F32", "[2,3]", "[0,18446744073709551616]"), good_b),
       {"\"a\"", "18446744073709551616"}},
      {"NegativeOffset",
       With(Entry("F32", "[2,3]", "[-1,24]"), good_b),
       {"\"a\"", "data_offsets", "-1"}},
      {"FractionalOffset",
       With(Entry("F32", "[2,3]", "[0.0,24]"), good_b),
       {"\"a\"", "data_offsets", "0.0"}},
      {"OneOffset", With(Entry("F32", "[2,3]", "[24]"), good_b), {"\"a\"", "[24]", "two offsets"}},
      {"ThreeOffsets",
       With(Entry("F32", "[2,3]", "[0,24,32]"), good_b),
       {"\"a\"", "[0, 24, 32]", "two offsets"}},
      {"NegativeExtent", With(Entry("F32", "[-2,-3]", "[0,24]"), good_b), {"\"a\"", "shape", "-2"}},
      {"ExtentAt2To63",
       With(Entry("F32", "[9223372036854775808]", "[0,24]"), good_b),
       {"\"a\"", "shape", "9223372036854775808"}},
      {"ShapeProductOverflows",
       With(Entry("F32", "[4294967296,4294967296,6]", "[0,24]"), good_b),
       {"\"a\"", "shape", "2^62"}},
      {"BytesOverflow",
       With(Entry("F64", "[4611686018427387904]", "[0,24]"), good_b),
       {"\"a\"", "4611686018427387904"}},
      {"NineDimensions",
       With(Entry("U8", "[1,1,1,1,1,1,1,1,24]", "[0,24]"), good_b),
       {"\"a\"", "shape", "8"}},
      {"NestedShape", With(Entry("F32", "[[2,3]]", "[0,24]"), good_b), {"\"a\"", "shape", "list"}},
      {"ShapeIsANumber", With(Entry("F32", "6", "[0,24]"), good_b), {"\"a\"", "shape", "6"}},
      {"MissingField",
       With("{\"dtype\":\"F32\",\"shape\":[2,3]}", good_b),
       {"\"a\"", "data_offsets"}},
      {"UnknownField",
       With("{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24],\"zip\":1}", good_b),
       {"\"a\"", "\"zip\""}},
      {"FieldTwice",
       With("{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}",
            good_b),
       {"\"a\"", "\"dtype\" twice"}},
  };
}

TEST(Safetensors, RefusesEveryBrokenFileAndNamesTheFault) {
  const TempFolder folder;
  size_t count = 0;
  std::vector<BrokenCase> cases = FileCases();
  for (BrokenCase& broken : EntryCases()) cases.push_back(std::move(broken));
  for (const BrokenCase& broken : cases) {
    SCOPED_TRACE(broken.name);
    const std::string path = folder / (std::string(broken.name) + ".safetensors");
    WriteText(path, broken.bytes);
    const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path);
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.status().code(), absl::StatusCode::kDataLoss) << file.status();
    const std::string message = MessageOf(file.status());
    EXPECT_THAT(message, HasSubstr(path));
    for (const std::string& name : broken.names) EXPECT_THAT(message, HasSubstr(name));
    ++count;
  }
  EXPECT_EQ(count, 45u);
}

TEST(Safetensors, ReadsAGoodFile) {
  const TempFolder folder;
  const std::string path = folder / "good.safetensors";
  std::string data;
  for (char c = 0; c < 32; ++c) data += c;
  WriteText(path, RawSafetensors(std::string(kGood) + "   ", data));
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->entries().size(), 2u);
  const ConstTensorView b = file->Get("b").value();
  EXPECT_EQ(b.dtype(), DType::kBF16);
  EXPECT_EQ(b.shape(), Shape({4}));
  EXPECT_EQ(Bytes(b), data.substr(24));
  EXPECT_EQ(file->Get("c").status().code(), absl::StatusCode::kNotFound);
}

TEST(Safetensors, AcceptsAnObjectWithoutTensorsAndEmptyTensors) {
  const TempFolder folder;
  WriteText(folder / "none.safetensors", RawSafetensors("{}", ""));
  EXPECT_TRUE(SafetensorsFile::Open(folder / "none.safetensors").ok());
  WriteText(folder / "empty.safetensors",
            RawSafetensors("{\"e\":" + Entry("F32", "[0,7]", "[0,0]") +
                               ",\"s\":" + Entry("F32", "[]", "[0,4]") + "}",
                           "abcd"));
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(folder / "empty.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->Get("e").value().elements(), 0);
  EXPECT_EQ(file->Get("s").value().elements(), 1);
}

TEST(Safetensors, NamesADTypeThatItCannotCompute) {
  const TempFolder folder;
  WriteText(folder / "u16.safetensors",
            RawSafetensors("{\"t\":" + Entry("U16", "[2]", "[0,4]") + "}", "abcd"));
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(folder / "u16.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  const absl::Status status = file->Get("t").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("U16"), HasSubstr("\"t\"")));
}

TEST(Safetensors, MissingFileAndFolderAreNotCorruptFiles) {
  const TempFolder folder;
  EXPECT_EQ(SafetensorsFile::Open(folder / "none").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(SafetensorsFile::Open(folder.path()).status().code(), absl::StatusCode::kUnavailable);
}

TEST(SafetensorsWriter, WritesWhatTheReaderReads) {
  const TempFolder folder;
  const Tensor a = FloatTensor({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor b = ByteTensor(DType::kU8, {3}, "xyz");
  // A strided view is written as its elements.
  const std::map<std::string, ConstTensorView, std::less<>> tensors = {
      {"b", b.view()}, {"turned", a.view().Transpose(0, 1)}, {"a", a.view()}};
  const std::string path = folder / "out.safetensors";
  ASSERT_TRUE(WriteSafetensors(path, tensors, {{"format", "pt"}}).ok());
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->metadata().at("format"), "pt");
  EXPECT_EQ(file->header_bytes().size() % 8, 0u);
  EXPECT_EQ(Floats(file->Get("turned").value()), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(Bytes(file->Get("b").value()), "xyz");
  for (const auto& [name, entry] : file->entries()) EXPECT_TRUE(IsAligned(file->Get(name).value()));
  // The larger elements come first, so that the odd size of b misaligns nothing.
  EXPECT_EQ(file->entries().at("b").begin, 48u);
}

TEST(SafetensorsWriter, LeavesNoFileBehindWhenItDoesNotFinish) {
  const TempFolder folder;
  const std::string path = folder / "out.safetensors";
  {
    absl::StatusOr<SafetensorsWriter> writer =
        SafetensorsWriter::Create(path, {{"a", DType::kF32, Shape{4}}});
    ASSERT_TRUE(writer.ok());
    const std::string some(12, 'x');
    ASSERT_TRUE(writer->Append(std::as_bytes(std::span(some.data(), some.size()))).ok());
    EXPECT_EQ(writer->Finish().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(writer->Append(std::as_bytes(std::span(some.data(), some.size()))).code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(SafetensorsFile::Open(path).status().code(), absl::StatusCode::kNotFound);
}

TEST(SafetensorsWriter, RefusesDuplicateNames) {
  const TempFolder folder;
  const absl::StatusOr<SafetensorsWriter> writer = SafetensorsWriter::Create(
      folder / "x", {{"a", DType::kF32, Shape{4}}, {"a", DType::kF32, Shape{4}}});
  EXPECT_EQ(writer.status().code(), absl::StatusCode::kInvalidArgument);
}

class Shards : public ::testing::Test {
 protected:
  void SetUp() override {
    TensorMap tensors;
    tensors["a"] = FloatTensor({2}, {1, 2});
    tensors["b"] = FloatTensor({2}, {3, 4});
    tensors["c"] = FloatTensor({2}, {5, 6});
    WriteShards(folder_.path(), tensors, 2);
  }
  void WriteIndex(const std::string& map) {
    WriteText(folder_ / "model.safetensors.index.json", "{\"weight_map\":" + map + "}");
  }
  absl::Status Open() { return SafetensorsSet::Open(folder_.path()).status(); }

  TempFolder folder_;
};

TEST_F(Shards, OpenAsOne) {
  const absl::StatusOr<SafetensorsSet> set = SafetensorsSet::Open(folder_.path());
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_TRUE(set->sharded());
  EXPECT_EQ(set->files().size(), 2u);
  EXPECT_EQ(Floats(set->Get("b").value()), (std::vector<float>{3, 4}));
}

TEST_F(Shards, MissingShardIsNamedWithAKey) {
  std::remove((folder_ / "model-1.safetensors").c_str());
  const absl::Status status = Open();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(MessageOf(status),
              AllOf(HasSubstr("model-1.safetensors"), HasSubstr("\"b\""), HasSubstr("index.json")));
}

TEST_F(Shards, KeyThatIsInNoShardIsNamed) {
  WriteIndex(R"({"a":"model-0.safetensors","b":"model-1.safetensors","c":"model-0.safetensors",)"
             R"("d":"model-1.safetensors"})");
  const absl::Status status = Open();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("\"d\""), HasSubstr("in no shard"),
                                       HasSubstr("model-1.safetensors")));
}

TEST_F(Shards, KeyThatIsInAnotherShardIsNamed) {
  WriteIndex(R"({"a":"model-0.safetensors","b":"model-0.safetensors","c":"model-1.safetensors"})");
  const absl::Status status = Open();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("\"b\""), HasSubstr("model-1.safetensors"),
                                       HasSubstr("model-0.safetensors")));
}

TEST_F(Shards, KeyThatIsNotListedIsNamed) {
  WriteIndex(R"({"a":"model-0.safetensors","b":"model-1.safetensors"})");
  const absl::Status status = Open();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("\"c\""), HasSubstr("index")));
}

TEST_F(Shards, ShardNamesMayNotLeaveTheFolder) {
  for (const char* name : {"../model-0.safetensors", "/etc/passwd", "", ".."}) {
    WriteIndex("{\"a\":\"" + std::string(name) + "\"}");
    EXPECT_EQ(Open().code(), absl::StatusCode::kDataLoss) << name;
  }
}

TEST_F(Shards, BrokenIndexIsRefused) {
  for (const char* text : {"", "{", "[]", "{}", "{\"weight_map\":{}}", "{\"weight_map\":[]}",
                           "{\"weight_map\":{\"a\":1}}"}) {
    WriteText(folder_ / "model.safetensors.index.json", text);
    EXPECT_EQ(Open().code(), absl::StatusCode::kDataLoss) << text;
  }
}

TEST_F(Shards, SeveralFilesWithoutAnIndexAreRefused) {
  std::remove((folder_ / "model.safetensors.index.json").c_str());
  EXPECT_EQ(Open().code(), absl::StatusCode::kDataLoss);
}

TEST_F(Shards, CorruptShardIsNamed) {
  WriteText(folder_ / "model-1.safetensors", "1234567");
  const absl::Status status = Open();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status), HasSubstr("model-1.safetensors"));
}

TEST(MappedFile, ReleasedPagesComeBack) {
  const TempFolder folder;
  WriteText(folder / "file", std::string(1 << 16, 'q'));
  const auto file = MappedFile::Open(folder / "file").value();
  EXPECT_EQ(file->bytes()[40000], std::byte{'q'});
  file->Release();
  EXPECT_EQ(file->bytes()[40000], std::byte{'q'});
  EXPECT_EQ(MappedFile::Open("/dev/null").status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace h3rt
