// Programs under a limit of memory (XSCHED_MEMORY): what AMD's runtime gives them counts, and is refused
// beyond the limit as the runtime itself refuses.
#include <random>
#include <thread>
#include <vector>

#include "linked_program.h"

namespace xsched::hip {
namespace {

constexpr size_t kMiB = 1 << 20;
constexpr size_t kLimit = 100 * kMiB;

class Memory : public testing::Test {
 protected:
  void SetUp() override {
    setenv("XSCHED_MEMORY", "100MiB", 1);  // read at the first allocation
    ASSERT_EQ(hipInit(0), hipSuccess);
    ASSERT_EQ(Used(), 0u);
  }
  static size_t Used() {
    size_t free = 0;
    size_t total = 0;
    EXPECT_EQ(hipMemGetInfo(&free, &total), hipSuccess);
    EXPECT_EQ(total, kLimit);
    return total - free;
  }
  static void* Allocate(size_t size) {
    void* memory = nullptr;
    EXPECT_EQ(hipMalloc(&memory, size), hipSuccess);
    return memory;
  }
};

TEST_F(Memory, is_refused_beyond_the_limit_as_the_runtime_refuses) {
  void* memory = Allocate(60 * kMiB);
  EXPECT_EQ(Used(), 60 * kMiB);
  void* more = nullptr;
  EXPECT_EQ(hipMalloc(&more, 41 * kMiB), hipErrorOutOfMemory);
  EXPECT_EQ(more, nullptr);
  EXPECT_EQ(hipGetLastError(), hipErrorOutOfMemory);
  EXPECT_EQ(hipGetLastError(), hipSuccess);
  more = Allocate(40 * kMiB);
  EXPECT_EQ(Used(), kLimit);
  EXPECT_EQ(hipFree(more), hipSuccess);
  EXPECT_EQ(hipFree(memory), hipSuccess);
  EXPECT_EQ(Used(), 0u);
  EXPECT_EQ(hipFree(nullptr), hipSuccess);
}

TEST_F(Memory, that_is_freed_in_stream_order_counts_no_more_though_it_is_of_no_pool) {
  void* memory = Allocate(60 * kMiB);
  ASSERT_EQ(hipFreeAsync(memory, nullptr), hipSuccess);
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
  EXPECT_EQ(Used(), 0u);
  EXPECT_EQ(hipFree(Allocate(100 * kMiB)), hipSuccess);
}

TEST_F(Memory, that_is_freed_by_an_address_inside_of_it_counts_no_more) {
  auto* memory = static_cast<char*>(Allocate(60 * kMiB));
  ASSERT_EQ(hipFree(memory + 4096), hipSuccess);
  EXPECT_EQ(Used(), 0u);
  EXPECT_EQ(hipFree(Allocate(kLimit)), hipSuccess);
  EXPECT_EQ(hipGetLastError(), hipSuccess);
}

TEST_F(Memory, of_longer_rows_counts_with_them) {
  void* memory = nullptr;
  size_t pitch = 0;
  ASSERT_EQ(hipMallocPitch(&memory, &pitch, 1000, 1000), hipSuccess);
  EXPECT_EQ(Used(), pitch * 1000);
  EXPECT_EQ(hipFree(memory), hipSuccess);
  hipPitchedPtr volume{};
  ASSERT_EQ(hipMalloc3D(&volume, hipExtent{1000, 100, 10}), hipSuccess);
  EXPECT_EQ(Used(), volume.pitch * 1000);
  EXPECT_EQ(hipFree(volume.ptr), hipSuccess);
  EXPECT_EQ(Used(), 0u);
}

TEST_F(Memory, of_the_host_does_not_count_nor_does_managed_memory_which_is_the_hosts) {
  void* host = nullptr;
  ASSERT_EQ(hipHostMalloc(&host, 3 * kMiB, 0), hipSuccess);
  EXPECT_EQ(Used(), 0u);
  EXPECT_EQ(hipHostFree(host), hipSuccess);
  void* managed = nullptr;
  const hipError_t made = hipMallocManaged(&managed, 2 * kLimit, hipMemAttachGlobal);
  if (made == hipErrorNotSupported) GTEST_SKIP() << "not here";
  ASSERT_EQ(made, hipSuccess);
  EXPECT_EQ(Used(), 0u);
  EXPECT_EQ(hipFree(managed), hipSuccess);
  EXPECT_EQ(Used(), 0u);
}

// The runtime gives the device another pool.
TEST_F(Memory, of_pools_is_given_back_when_the_device_is_reset) {
  int version = 0;
  ASSERT_EQ(hipRuntimeGetVersion(&version), hipSuccess);
  if (version < 60'000'000) GTEST_SKIP() << "Debian's runtime does not survive it, natively either";
  void* memory = nullptr;
  ASSERT_EQ(hipMallocAsync(&memory, 60 * kMiB, nullptr), hipSuccess);
  EXPECT_GE(Used(), 60 * kMiB);
  ASSERT_EQ(hipDeviceReset(), hipSuccess);
  EXPECT_EQ(Used(), 0u);
  EXPECT_EQ(hipFree(Allocate(kLimit)), hipSuccess);
  ASSERT_EQ(hipMallocAsync(&memory, kMiB, nullptr), hipSuccess);
  EXPECT_GE(Used(), kMiB) << "the new pool counts";
  ASSERT_EQ(hipDeviceReset(), hipSuccess);
  EXPECT_EQ(Used(), 0u);
}

// In AMD's runtime it does nothing.
TEST_F(Memory, stays_when_the_primary_context_is_reset) {
  void* memory = Allocate(60 * kMiB);
  ASSERT_EQ(hipDevicePrimaryCtxReset(0), hipSuccess);
  EXPECT_EQ(Used(), 60 * kMiB);
  void* more = nullptr;
  EXPECT_EQ(hipMalloc(&more, 41 * kMiB), hipErrorOutOfMemory);
  EXPECT_EQ(hipMemset(memory, 0, 60 * kMiB), hipSuccess);
  EXPECT_EQ(hipFree(memory), hipSuccess);
}

TEST_F(Memory, of_another_device_has_a_limit_of_its_own) {
  void* here = Allocate(80 * kMiB);
  ASSERT_EQ(hipSetDevice(1), hipSuccess);
  EXPECT_EQ(Used(), 0u);
  void* there = Allocate(70 * kMiB);
  EXPECT_EQ(hipFree(here), hipSuccess) << "while the other device is the current one";
  ASSERT_EQ(hipSetDevice(0), hipSuccess);
  EXPECT_EQ(Used(), 0u);
  EXPECT_EQ(hipFree(there), hipSuccess);
}

TEST_F(Memory, for_a_stream_of_another_device_is_that_devices) {
  hipStream_t there = nullptr;
  ASSERT_EQ(hipSetDevice(1), hipSuccess);
  ASSERT_EQ(hipStreamCreate(&there), hipSuccess);
  ASSERT_EQ(hipSetDevice(0), hipSuccess);
  void* here = Allocate(60 * kMiB);
  void* memory = nullptr;
  ASSERT_EQ(hipMallocAsync(&memory, 50 * kMiB, there), hipSuccess);
  EXPECT_EQ(Used(), 60 * kMiB);
  EXPECT_EQ(hipFree(here), hipSuccess);
  void* more = nullptr;
  EXPECT_EQ(hipMallocAsync(&more, 60 * kMiB, there), hipErrorOutOfMemory);
  ASSERT_EQ(hipSetDevice(1), hipSuccess);
  EXPECT_GE(Used(), 50 * kMiB) << "the pool has it";
  ASSERT_EQ(hipFreeAsync(memory, there), hipSuccess);  // Debian's runtime could not destroy the stream now
}

TEST_F(Memory, of_a_device_is_the_limits_at_most) {
  size_t total = 0;
  ASSERT_EQ(hipDeviceTotalMem(&total, 0), hipSuccess);
  EXPECT_EQ(total, kLimit);
}

TEST_F(Memory, of_many_threads_agrees_when_all_is_freed) {
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 3; ++i) {
    threads.emplace_back([i] {
      std::minstd_rand random(i + 1);
      for (int turn = 0; turn < 50; ++turn) {
        void* memory = nullptr;
        if (hipMalloc(&memory, 1 + random() % (50 * kMiB)) != hipSuccess) continue;
        EXPECT_EQ(hipFree(memory), hipSuccess);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Used(), 0u);
}

}  // namespace
}  // namespace xsched::hip
