// Memory under a limit. The environment is read once, so each test has its own process.
#include <stdlib.h>

#include "shim/hip/testing/runtime_instance.h"

namespace xsched::hip {
extern "C" {
hipError_t hipMallocAsync(void**, size_t, hipStream_t);
hipError_t hipMemGetInfo(size_t*, size_t*);
hipError_t hipDeviceReset();
hipError_t hipMemCreate(hipMemGenericAllocationHandle_t*, size_t, const hipMemAllocationProp*,
                        unsigned long long);
hipError_t hipMemRelease(hipMemGenericAllocationHandle_t);
hipError_t hipMemMap(void*, size_t, size_t, hipMemGenericAllocationHandle_t, unsigned long long);
hipError_t hipMemUnmap(void*, size_t);
}

namespace {

constexpr size_t kMiB = 1 << 20;

class HipMemory : public testing::Test {
 protected:
  void SetUp() override { setenv("XSCHED_MEMORY", "100MiB", 1); }

  size_t Free() {
    size_t free = SIZE_MAX;
    size_t total = SIZE_MAX;
    EXPECT_EQ(hipMemGetInfo(&free, &total), hipSuccess);
    return free;
  }

  RuntimeInstance instance_;
};

TEST_F(HipMemory, a_reset_ends_the_pools_of_the_device_and_nobody_asks_about_them_any_more) {
  void* memory = nullptr;
  ASSERT_EQ(hipMallocAsync(&memory, kMiB, nullptr), hipSuccess);
  EXPECT_EQ(Free(), 40 * kMiB);
  ASSERT_EQ(hipDeviceReset(), hipSuccess);
  EXPECT_EQ(Free(), 100 * kMiB);
  ASSERT_EQ(hipMallocAsync(&memory, kMiB, nullptr), hipSuccess);
  EXPECT_EQ(Free(), 40 * kMiB) << "the new pool counts";
}

TEST_F(HipMemory, without_an_address_ends_with_a_reset_and_counts_no_more_wherever_it_is_mapped) {
  char address = 0;
  auto handle = reinterpret_cast<hipMemGenericAllocationHandle_t>(&instance_);
  ASSERT_EQ(hipMemCreate(&handle, 60 * kMiB, nullptr, 0), hipSuccess);
  EXPECT_EQ(Free(), 40 * kMiB);
  ASSERT_EQ(hipMemMap(&address, 60 * kMiB, 0, handle, 0), hipSuccess);
  ASSERT_EQ(hipMemRelease(handle), hipSuccess);
  ASSERT_EQ(hipMemCreate(&handle, 30 * kMiB, nullptr, 0), hipSuccess);
  EXPECT_EQ(Free(), 10 * kMiB);
  ASSERT_EQ(hipDeviceReset(), hipSuccess);
  EXPECT_EQ(Free(), 100 * kMiB);
  EXPECT_EQ(hipMemUnmap(&address, 60 * kMiB), hipSuccess);
  EXPECT_EQ(hipMemRelease(handle), hipSuccess);
  EXPECT_EQ(Free(), 100 * kMiB);
}

}  // namespace
}  // namespace xsched::hip
