#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "h3rt/cuda/device_buffer.h"
#include "h3rt/cuda/device_info.h"
#include "h3rt/cuda/device_scope.h"
#include "h3rt/cuda/runtime_status.h"
#include "h3rt/cuda/stream.h"
#include "h3rt/device/probe/launch.h"

namespace h3rt {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kPoison = 0xa5a5a5a5;

// The word at index 0 of seed 0 is the first output of SplitMix64 from state 0, a published number
// (0xe220a8397b1dcdaf), low half.
TEST(Probe, TheHostPatternIsThePublishedOne) {
  EXPECT_EQ(device::ProbeWord(0, 0), 0x7b1dcdafu);
  EXPECT_NE(device::ProbeWord(0, 1), device::ProbeWord(0, 0));
}

TEST(RuntimeStatus, ErrorsKeepTheirKindAndName) {
  EXPECT_TRUE(CudaStatus(0, "nothing").ok());
  const absl::Status memory = CudaStatus(2, "allocating 3 GiB");
  EXPECT_EQ(memory.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(MessageOf(memory), HasSubstr("cudaErrorMemoryAllocation"));
  EXPECT_THAT(MessageOf(memory), HasSubstr("allocating 3 GiB"));
  EXPECT_EQ(CudaStatus(100, "x").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(CudaStatus(209, "x").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(CudaStatus(700, "x").code(), absl::StatusCode::kInternal);
}

class OnDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<DeviceList> list = ListDriverDevices("libcuda.so.1");
    ASSERT_TRUE(list.ok()) << MessageOf(list.status());
    if (list->devices.empty()) GTEST_SKIP() << list->reason;
  }
};

TEST_F(OnDevice, ProbeFillsExactlyTheRangeItWasGiven) {
  absl::StatusOr<Stream> stream = Stream::Create();
  ASSERT_TRUE(stream.ok()) << MessageOf(stream.status());
  // Around one block, around one grid (4096 * 256 words), and many strides.
  for (const int64_t n : {0, 1, 31, 255, 256, 257, 1048575, 1048576, 1048577, 5000001}) {
    constexpr int64_t kGuard = 64;
    std::vector<uint32_t> words(static_cast<size_t>(n + 2 * kGuard), 0);
    absl::StatusOr<DeviceBuffer> buffer = DeviceBuffer::Create(words.size() * sizeof(uint32_t));
    ASSERT_TRUE(buffer.ok()) << MessageOf(buffer.status());
    ASSERT_TRUE(buffer->Fill(kPoison & 0xff, *stream).ok());
    auto* out = reinterpret_cast<uint32_t*>(buffer->data()) + kGuard;
    const absl::Status launched =
        CudaStatus(device::LaunchProbeFill(out, n, 7, stream->get()), "launching the probe");
    ASSERT_TRUE(launched.ok()) << MessageOf(launched);
    ASSERT_TRUE(buffer->CopyToHost(std::as_writable_bytes(std::span(words)), 0, *stream).ok());
    const absl::Status done = stream->Synchronize();
    ASSERT_TRUE(done.ok()) << MessageOf(done);
    int64_t wrong = 0;
    for (int64_t i = -kGuard; i < n + kGuard; ++i) {
      const uint32_t wanted = i < 0 || i >= n ? kPoison : device::ProbeWord(i, 7);
      if (words[static_cast<size_t>(i + kGuard)] != wanted) ++wrong;
    }
    EXPECT_EQ(wrong, 0) << "n = " << n;
  }
}

TEST_F(OnDevice, BuffersCarryBytesAndRefuseOtherRanges) {
  absl::StatusOr<Stream> stream = Stream::Create();
  ASSERT_TRUE(stream.ok()) << MessageOf(stream.status());
  absl::StatusOr<DeviceBuffer> buffer = DeviceBuffer::Create(1000);
  ASSERT_TRUE(buffer.ok()) << MessageOf(buffer.status());
  std::vector<std::byte> from(600);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 % 251);
  std::vector<std::byte> to(600, std::byte{0xee});
  ASSERT_TRUE(buffer->CopyFromHost(from, 400, *stream).ok());
  ASSERT_TRUE(buffer->CopyToHost(to, 400, *stream).ok());
  ASSERT_TRUE(stream->Synchronize().ok());
  EXPECT_TRUE(to == from);
  EXPECT_EQ(buffer->CopyFromHost(from, 401, *stream).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(buffer->CopyToHost(to, ~uint64_t{0}, *stream).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(OnDevice, MoreThanTheDeviceHasIsATypedErrorAndTheNextCallWorks) {
  const absl::StatusOr<DeviceMemory> memory = MemoryOfDevice(0);
  ASSERT_TRUE(memory.ok()) << MessageOf(memory.status());
  EXPECT_LE(memory->free_bytes, memory->total_bytes);
  const absl::StatusOr<DeviceBuffer> all = DeviceBuffer::Create(memory->total_bytes * 2);
  EXPECT_EQ(all.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(DeviceBuffer::Create(1 << 20).ok());
}

TEST_F(OnDevice, AnUnknownDeviceIsATypedError) {
  EXPECT_EQ(DeviceScope::Enter(4096).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(OnDevice, EventsMeasureTheStream) {
  absl::StatusOr<Stream> stream = Stream::Create();
  absl::StatusOr<Event> start = Event::Create();
  absl::StatusOr<Event> end = Event::Create();
  absl::StatusOr<DeviceBuffer> buffer = DeviceBuffer::Create(64 << 20);
  ASSERT_TRUE(stream.ok() && start.ok() && end.ok() && buffer.ok());
  ASSERT_TRUE(start->Record(*stream).ok());
  ASSERT_EQ(device::LaunchProbeFill(reinterpret_cast<uint32_t*>(buffer->data()), 16 << 20, 1,
                                    stream->get()),
            0);
  ASSERT_TRUE(end->Record(*stream).ok());
  ASSERT_TRUE(end->Synchronize().ok());
  const absl::StatusOr<double> elapsed_ms = ElapsedMs(*start, *end);
  ASSERT_TRUE(elapsed_ms.ok()) << MessageOf(elapsed_ms.status());
  // 64 MiB cannot be written faster than 100 TB/s or, on any working device, slower than 10 s.
  EXPECT_GT(*elapsed_ms, 0.0006);
  EXPECT_LT(*elapsed_ms, 10000.0);
}

}  // namespace
}  // namespace h3rt
