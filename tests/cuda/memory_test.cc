// Programs under a limit of memory (XSCHED_MEMORY). Every kind of allocation counts, is refused with the
// driver's own error beyond the limit, and counts no more when it is freed.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <thread>
#include <vector>

#include "fixture.h"
#include "standin.h"

namespace xsched::cuda {
namespace {

constexpr size_t kMiB = 1 << 20;
constexpr size_t kLimit = 100 * kMiB;

class CudaMemory : public testing::Test {
 protected:
  void SetUp() override {
    // Read at the first allocation.
    setenv("XSCHED_MEMORY", "100MiB", 1);
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(Used(), 0u);
  }
  static size_t Used() {
    size_t free = 0;
    size_t total = 0;
    EXPECT_EQ(cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
    EXPECT_EQ(total, kLimit);
    return total - free;
  }
  static CUdeviceptr Allocate(size_t size) {
    CUdeviceptr memory = 0;
    EXPECT_EQ(cuMemAlloc_v2(&memory, size), CUDA_SUCCESS);
    return memory;
  }
  static CUresult TryAllocate(size_t size) {
    CUdeviceptr memory = 0;
    const CUresult result = cuMemAlloc_v2(&memory, size);
    if (result == CUDA_SUCCESS) cuMemFree_v2(memory);
    return result;
  }
  template <typename Type>
  static Type* Function(void* library, const char* name) {
    return reinterpret_cast<Type*>(dlsym(library, name));
  }
  static CUgreenCtx MakeGreenContextCurrent() {
    CUdevResource multiprocessors{};
    CUdevResourceDesc description = nullptr;
    CUgreenCtx green = nullptr;
    CUcontext context = nullptr;
    EXPECT_EQ(cuDeviceGetDevResource(0, &multiprocessors, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
    EXPECT_EQ(cuDevResourceGenerateDesc(&description, &multiprocessors, 1), CUDA_SUCCESS);
    EXPECT_EQ(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxFromGreenCtx(&context, green), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    return green;
  }
  static CUmemAllocationProp OnDevice(int device) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device;
    return properties;
  }

  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
};

TEST_F(CudaMemory, is_refused_beyond_the_limit_with_the_drivers_error_and_without_asking_the_driver) {
  const CUdeviceptr memory = Allocate(60 * kMiB);
  const uint64_t calls = standin_calls("cuMemAlloc_v2");
  CUdeviceptr more = 17;
  EXPECT_EQ(cuMemAlloc_v2(&more, 41 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(standin_calls("cuMemAlloc_v2"), calls);
  EXPECT_EQ(more, 17u);
  EXPECT_EQ(TryAllocate(40 * kMiB), CUDA_SUCCESS) << "exactly the limit";
  EXPECT_EQ(Used(), 60 * kMiB);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 0u);
  EXPECT_EQ(TryAllocate(100 * kMiB), CUDA_SUCCESS);
}

TEST_F(CudaMemory, that_the_driver_refuses_or_does_not_free_does_not_change_the_account) {
  standin_fail("cuMemAlloc_v2", 1, CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(TryAllocate(60 * kMiB), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(Used(), 0u);
  const CUdeviceptr memory = Allocate(60 * kMiB);
  standin_fail("cuMemFree_v2", 1, CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(Used(), 60 * kMiB);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_ERROR_INVALID_VALUE) << "freed twice";
  EXPECT_EQ(Used(), 0u);
}

TEST_F(CudaMemory, that_is_freed_in_stream_order_counts_no_more_though_it_is_of_no_pool) {
  CUdeviceptr memory = Allocate(60 * kMiB);
  standin_fail("cuMemFreeAsync", 1, CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(cuMemFreeAsync(memory, stream_), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(Used(), 60 * kMiB);
  EXPECT_EQ(cuMemFreeAsync(memory, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 0u);
  EXPECT_EQ(TryAllocate(100 * kMiB), CUDA_SUCCESS);
}

TEST_F(CudaMemory, whose_rows_are_made_longer_counts_with_that) {
  CUdeviceptr memory = 0;
  size_t pitch = 0;
  ASSERT_EQ(cuMemAllocPitch_v2(&memory, &pitch, 1000, 2048, 4), CUDA_SUCCESS);
  EXPECT_EQ(pitch, 1024u);
  EXPECT_EQ(Used(), 2 * kMiB);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 0u);
}

TEST_F(CudaMemory, that_is_managed_counts_and_the_hosts_does_not) {
  CUdeviceptr managed = 0;
  ASSERT_EQ(cuMemAllocManaged(&managed, 99 * kMiB, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
  void* host = nullptr;
  ASSERT_EQ(cuMemHostAlloc(&host, 3 * kMiB, 0), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 99 * kMiB);
  CUdeviceptr more = 0;
  EXPECT_EQ(cuMemAllocManaged(&more, 2 * kMiB, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemFree_v2(managed), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeHost(host), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 0u);
}

TEST_F(CudaMemory, of_arrays_counts_by_their_description) {
  const CUDA_ARRAY_DESCRIPTOR flat{1024, 1024, CU_AD_FORMAT_FLOAT, 4};
  CUarray array = nullptr;
  ASSERT_EQ(cuArrayCreate_v2(&array, &flat), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 16 * kMiB);
  const CUDA_ARRAY3D_DESCRIPTOR deep{256, 256, 256, CU_AD_FORMAT_HALF, 2, 0};
  CUarray cube = nullptr;
  ASSERT_EQ(cuArray3DCreate_v2(&cube, &deep), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 80 * kMiB);
  CUarray more = nullptr;
  EXPECT_EQ(cuArray3DCreate_v2(&more, &deep), CUDA_ERROR_OUT_OF_MEMORY);
  const CUDA_ARRAY3D_DESCRIPTOR image{1024, 1024, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0};
  CUmipmappedArray levels = nullptr;
  ASSERT_EQ(cuMipmappedArrayCreate(&levels, &image, 2), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 85 * kMiB);
  EXPECT_EQ(cuArrayDestroy(array), CUDA_SUCCESS);
  EXPECT_EQ(cuArrayDestroy(cube), CUDA_SUCCESS);
  EXPECT_EQ(cuMipmappedArrayDestroy(levels), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 0u);
}

TEST_F(CudaMemory, without_an_address_counts_until_it_has_neither_handle_nor_mapping) {
  const CUmemAllocationProp properties = OnDevice(0);
  CUmemGenericAllocationHandle first = 0;
  CUmemGenericAllocationHandle second = 0;
  ASSERT_EQ(cuMemCreate(&first, 20 * kMiB, &properties, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemCreate(&second, 40 * kMiB, &properties, 0), CUDA_SUCCESS);
  CUmemGenericAllocationHandle more = 0;
  EXPECT_EQ(cuMemCreate(&more, 42 * kMiB, &properties, 0), CUDA_ERROR_OUT_OF_MEMORY);
  CUdeviceptr space = 0;
  ASSERT_EQ(cuMemAddressReserve(&space, 60 * kMiB, 0, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(space, 20 * kMiB, 0, first, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(space + 20 * kMiB, 40 * kMiB, 0, second, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(first), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 60 * kMiB) << "it is mapped";
  ASSERT_EQ(cuMemRetainAllocationHandle(&first, reinterpret_cast<void*>(space)), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(space, 60 * kMiB), CUDA_SUCCESS) << "both at once";
  EXPECT_EQ(Used(), 60 * kMiB) << "both have a handle";
  EXPECT_EQ(cuMemRelease(first), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 40 * kMiB);
  EXPECT_EQ(cuMemRelease(second), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 0u);
}

TEST_F(CudaMemory, that_one_thread_releases_while_another_unmaps_it_is_given_back_once) {
  const CUmemAllocationProp properties = OnDevice(0);
  CUmemGenericAllocationHandle kept = 0;
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr space = 0;
  ASSERT_EQ(cuMemCreate(&kept, 30 * kMiB, &properties, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemCreate(&handle, 20 * kMiB, &properties, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAddressReserve(&space, 20 * kMiB, 0, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(space, 20 * kMiB, 0, handle, 0), CUDA_SUCCESS);
  const uint64_t calls = standin_calls("cuMemRelease");
  standin_slow("cuMemRelease", 100'000'000);
  std::thread releasing([handle] { EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS); });
  while (standin_calls("cuMemRelease") == calls) std::this_thread::yield();
  EXPECT_EQ(cuMemUnmap(space, 20 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 50 * kMiB) << "it still has a handle";
  releasing.join();
  standin_slow("cuMemRelease", 0);
  EXPECT_EQ(Used(), 30 * kMiB);
  EXPECT_EQ(cuMemRelease(kept), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 0u);
}

TEST_F(CudaMemory, without_an_address_is_unmapped_also_behind_memory_that_does_not_count) {
  CUmemAllocationProp of_host{};
  of_host.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
  const CUmemAllocationProp properties = OnDevice(0);
  CUmemGenericAllocationHandle host = 0;
  CUmemGenericAllocationHandle device = 0;
  CUdeviceptr space = 0;
  ASSERT_EQ(cuMemCreate(&host, 20 * kMiB, &of_host, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemCreate(&device, 40 * kMiB, &properties, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAddressReserve(&space, 60 * kMiB, 0, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(space, 20 * kMiB, 0, host, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(space + 20 * kMiB, 40 * kMiB, 0, device, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(host), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(device), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 40 * kMiB);
  EXPECT_EQ(cuMemUnmap(space, 60 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 0u);
}

TEST_F(CudaMemory, of_the_host_without_an_address_does_not_count) {
  CUmemAllocationProp properties{};
  properties.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
  properties.location.id = 0;
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(cuMemCreate(&handle, 200 * kMiB, &properties, 0), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 0u);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
}

TEST_F(CudaMemory, of_a_pool_counts_as_long_as_the_pool_keeps_it) {
  CUdeviceptr memory = 0;
  ASSERT_EQ(cuMemAllocAsync(&memory, 60 * kMiB, stream_), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 60 * kMiB);
  CUdeviceptr more = 0;
  EXPECT_EQ(cuMemAllocAsync(&more, 50 * kMiB, stream_), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_EQ(cuMemFreeAsync(memory, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 60 * kMiB) << "the pool has it";
  ASSERT_EQ(cuMemAllocAsync(&memory, 60 * kMiB, stream_), CUDA_SUCCESS) << "from what the pool has";
  EXPECT_EQ(Used(), 60 * kMiB);
  ASSERT_EQ(cuMemFreeAsync(memory, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  CUmemoryPool pool = nullptr;
  ASSERT_EQ(cuDeviceGetMemPool(&pool, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 0u);
}

TEST_F(CudaMemory, that_a_pool_does_not_use_makes_room_for_other_allocations) {
  CUdeviceptr memory = 0;
  ASSERT_EQ(cuMemAllocAsync(&memory, 90 * kMiB, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFreeAsync(memory, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  ASSERT_EQ(Used(), 90 * kMiB);
  EXPECT_EQ(TryAllocate(90 * kMiB), CUDA_SUCCESS) << "as the driver does it";
}

TEST_F(CudaMemory, of_small_allocations_from_a_pool_counts_without_asking_the_driver_each_time) {
  std::vector<CUdeviceptr> memory(40);
  const uint64_t asked = standin_calls("cuMemPoolGetAttribute");
  for (CUdeviceptr& piece : memory) ASSERT_EQ(cuMemAllocAsync(&piece, kMiB, stream_), CUDA_SUCCESS);
  EXPECT_EQ(standin_calls("cuMemPoolGetAttribute") - asked, 1u) << "after 32 MiB";
  EXPECT_EQ(Used(), 40 * kMiB);
  for (const CUdeviceptr piece : memory) ASSERT_EQ(cuMemFreeAsync(piece, stream_), CUDA_SUCCESS);
}

TEST_F(CudaMemory, of_pools_that_the_program_makes_counts_until_they_are_destroyed) {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = 0;
  CUmemoryPool pool = nullptr;
  ASSERT_EQ(cuMemPoolCreate(&pool, &properties), CUDA_SUCCESS);
  CUdeviceptr memory = 0;
  ASSERT_EQ(cuMemAllocFromPoolAsync(&memory, 60 * kMiB, pool, stream_), CUDA_SUCCESS);
  CUdeviceptr more = 0;
  EXPECT_EQ(cuMemAllocAsync(&more, 60 * kMiB, stream_), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_EQ(cuMemFreeAsync(memory, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuDeviceSetMemPool(0, pool), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAllocAsync(&memory, 60 * kMiB, stream_), CUDA_SUCCESS) << "the current pool has it already";
  EXPECT_EQ(Used(), 60 * kMiB);
  ASSERT_EQ(cuMemFreeAsync(memory, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  CUmemoryPool standard = nullptr;
  ASSERT_EQ(cuDeviceGetDefaultMemPool(&standard, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuDeviceSetMemPool(0, standard), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 0u);
}

// A pool of device `ordinal`.
CUmemoryPool MakePool(int ordinal) {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = ordinal;
  CUmemoryPool pool = nullptr;
  EXPECT_EQ(cuMemPoolCreate(&pool, &properties), CUDA_SUCCESS);
  return pool;
}

TEST_F(CudaMemory, of_another_devices_pool_counts_there) {
  CUcontext other = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&other, 1), CUDA_SUCCESS);
  CUmemoryPool pool = MakePool(1);
  CUdeviceptr memory = 0;
  ASSERT_EQ(cuMemAllocFromPoolAsync(&memory, 60 * kMiB, pool, stream_), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 0u);
  CUdeviceptr more = 0;
  EXPECT_EQ(cuMemAllocFromPoolAsync(&more, 50 * kMiB, pool, stream_), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(TryAllocate(100 * kMiB), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(other), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 60 * kMiB);
  ASSERT_EQ(cuMemFreeAsync(memory, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 0u);
}

TEST_F(CudaMemory, for_a_stream_of_another_device_is_that_devices) {
  CUcontext other = nullptr;
  CUstream there = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&other, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(other), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamCreate(&there, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  const CUdeviceptr here = Allocate(60 * kMiB);
  CUdeviceptr memory = 0;
  ASSERT_EQ(cuMemAllocAsync(&memory, 50 * kMiB, there), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 60 * kMiB);
  EXPECT_EQ(cuMemFree_v2(here), CUDA_SUCCESS);
  CUdeviceptr more = 0;
  EXPECT_EQ(cuMemAllocAsync(&more, 60 * kMiB, there), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_EQ(cuStreamBeginCapture_v2(there, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAllocAsync(&more, 60 * kMiB, there), CUDA_ERROR_OUT_OF_MEMORY) << "for a graph";
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(there, &graph), CUDA_SUCCESS) << "the capture is still valid";
  ASSERT_EQ(cuCtxSetCurrent(other), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 50 * kMiB);
  ASSERT_EQ(cuMemFreeAsync(memory, there), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamDestroy_v2(there), CUDA_SUCCESS);
}

TEST_F(CudaMemory, of_a_pool_that_the_driver_does_not_destroy_still_counts) {
  CUmemoryPool pool = MakePool(0);
  CUdeviceptr memory = 0;
  ASSERT_EQ(cuMemAllocFromPoolAsync(&memory, 60 * kMiB, pool, stream_), CUDA_SUCCESS);
  standin_fail("cuMemPoolDestroy", 1, CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(Used(), 60 * kMiB);
  ASSERT_EQ(cuMemFreeAsync(memory, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
}

// The stand-in ends the program if it is asked about a pool that is gone.
TEST_F(CudaMemory, of_pools_is_asked_for_only_while_they_are_there) {
  std::atomic<bool> done{false};
  std::thread asking([&] {
    cuCtxSetCurrent(context_);
    while (!done) {
      Used();
      TryAllocate(kLimit);
    }
  });
  for (int i = 0; i < 3000; ++i) ASSERT_EQ(cuMemPoolDestroy(MakePool(0)), CUDA_SUCCESS);
  done = true;
  asking.join();
}

// Trimming opens the gates of the program, which must not be a way past a scheduler.
TEST_F(CudaMemory, that_is_refused_trims_only_pools_that_have_something_to_give) {
  CUdeviceptr memory = 0;
  ASSERT_EQ(cuMemAllocAsync(&memory, 60 * kMiB, stream_), CUDA_SUCCESS);
  const uint64_t trims = standin_calls("cuMemPoolTrimTo");
  EXPECT_EQ(TryAllocate(50 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(standin_calls("cuMemPoolTrimTo"), trims);
  ASSERT_EQ(cuMemFreeAsync(memory, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_EQ(TryAllocate(50 * kMiB), CUDA_SUCCESS);
  EXPECT_GT(standin_calls("cuMemPoolTrimTo"), trims);
}

TEST_F(CudaMemory, that_a_captured_graph_would_need_beyond_the_limit_is_refused_while_it_is_captured) {
  ASSERT_EQ(cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  CUdeviceptr memory = 0;
  EXPECT_EQ(cuMemAllocAsync(&memory, 200 * kMiB, stream_), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAllocAsync(&memory, 50 * kMiB, stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeAsync(memory, stream_), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS) << "the capture is still valid";
}

TEST_F(CudaMemory, of_another_device_has_a_limit_of_its_own) {
  const CUdeviceptr here = Allocate(80 * kMiB);
  CUcontext other = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&other, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(other), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 0u);
  const CUdeviceptr there = Allocate(70 * kMiB);
  EXPECT_EQ(Used(), 70 * kMiB);
  EXPECT_EQ(cuMemFree_v2(here), CUDA_SUCCESS) << "from the other device's context";
  ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 0u);
  EXPECT_EQ(cuMemFree_v2(there), CUDA_SUCCESS);
}

TEST_F(CudaMemory, ends_with_its_context) {
  CUcontext own = nullptr;
  CUctxCreateParams parameters{};
  ASSERT_EQ(cuCtxCreate_v4(&own, &parameters, 0, 0), CUDA_SUCCESS);
  for (int i = 0; i < 100; ++i) Allocate(kMiB / 2);
  ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  const CUdeviceptr kept = Allocate(kMiB);
  EXPECT_EQ(Used(), 51 * kMiB);
  ASSERT_EQ(cuCtxDestroy_v2(own), CUDA_SUCCESS);
  EXPECT_EQ(Used(), kMiB);
  EXPECT_EQ(cuMemFree_v2(kept), CUDA_SUCCESS);
}

// It is the primary context's memory.
TEST_F(CudaMemory, that_is_made_while_a_green_context_is_current_ends_with_the_primary_context) {
  CUgreenCtx green = MakeGreenContextCurrent();
  const CUdeviceptr memory = Allocate(60 * kMiB);
  ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  ASSERT_EQ(cuGreenCtxDestroy(green), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 60 * kMiB);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 0u);
  green = MakeGreenContextCurrent();
  Allocate(60 * kMiB);
  ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  ASSERT_EQ(cuGreenCtxDestroy(green), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 0u);
}

TEST_F(CudaMemory, is_limited_however_many_green_contexts_there_were) {
  for (int i = 0; i < 300; ++i) {
    CUgreenCtx green = MakeGreenContextCurrent();
    EXPECT_EQ(TryAllocate(kMiB), CUDA_SUCCESS);
    EXPECT_EQ(TryAllocate(kLimit + kMiB), CUDA_ERROR_OUT_OF_MEMORY) << i;
    ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
    ASSERT_EQ(cuGreenCtxDestroy(green), CUDA_SUCCESS);
  }
}

TEST_F(CudaMemory, stays_counted_if_the_driver_does_not_destroy_the_context) {
  const CUdeviceptr memory = Allocate(60 * kMiB);
  EXPECT_EQ(cuCtxDestroy_v2(context_), CUDA_ERROR_INVALID_CONTEXT) << "a primary context is released";
  ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 60 * kMiB);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 0u);
}

TEST_F(CudaMemory, stays_counted_until_the_last_user_of_the_context_is_detached) {
  CUcontext own = nullptr;
  CUctxCreateParams parameters{};
  ASSERT_EQ(cuCtxCreate_v4(&own, &parameters, 0, 0), CUDA_SUCCESS);
  CUcontext attached = nullptr;
  ASSERT_EQ(cuCtxAttach(&attached, 0), CUDA_SUCCESS);
  Allocate(60 * kMiB);
  ASSERT_EQ(cuCtxDetach(attached), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 60 * kMiB);
  ASSERT_EQ(cuCtxDetach(own), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
  EXPECT_EQ(Used(), 0u);
  const CUdeviceptr memory = Allocate(60 * kMiB);
  ASSERT_EQ(cuCtxDetach(context_), CUDA_SUCCESS) << "a primary context stays";
  EXPECT_EQ(Used(), 60 * kMiB);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
}

TEST_F(CudaMemory, as_the_driver_says_it_is_the_limits) {
  size_t total = 0;
  ASSERT_EQ(cuDeviceTotalMem_v2(&total, 0), CUDA_SUCCESS);
  EXPECT_EQ(total, kLimit);
}

TEST_F(CudaMemory, as_nvml_says_it_is_the_limits_too) {
  const CUdeviceptr memory = Allocate(30 * kMiB);
  void* nvml = dlopen(TEST_NVML, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(nvml, nullptr) << dlerror();
  void* device = nullptr;
  ASSERT_EQ(Function<int(unsigned, void**)>(nvml, "nvmlDeviceGetHandleByIndex_v2")(0, &device), 0);
  struct {
    unsigned long long total, free, used;
  } info{};
  ASSERT_EQ(Function<int(void*, void*)>(nvml, "nvmlDeviceGetMemoryInfo")(device, &info), 0);
  EXPECT_EQ(info.total, kLimit);
  EXPECT_EQ(info.free, 70 * kMiB);
  EXPECT_EQ(info.used, 30 * kMiB);
  struct {
    unsigned version;
    unsigned long long total, reserved, free, used;
  } newer{};
  ASSERT_EQ(Function<int(void*, void*)>(nvml, "nvmlDeviceGetMemoryInfo_v2")(device, &newer), 0);
  EXPECT_EQ(newer.total, kLimit);
  EXPECT_EQ(newer.free, 70 * kMiB);
  EXPECT_EQ(newer.used, 30 * kMiB);
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "nvmlDeviceGetMemoryInfo"), nullptr) << "the program is not linked to it";
  EXPECT_NE(dlerror(), nullptr) << "many programs print it without a look";
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
}

TEST_F(CudaMemory, as_nvml_says_it_is_found_by_a_library_that_alone_is_linked_to_nvml) {
  void* user = dlopen(TEST_NVML_USER, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(user, nullptr) << dlerror();
  auto* const find = Function<void*(const char*)>(user, "FindByName");
  auto* const of_device = reinterpret_cast<int (*)(unsigned, void**)>(find("nvmlDeviceGetHandleByIndex_v2"));
  ASSERT_NE(of_device, nullptr);
  void* device = nullptr;
  ASSERT_EQ(of_device(0, &device), 0);
  struct {
    unsigned long long total, free, used;
  } info{};
  auto* const ask = reinterpret_cast<int (*)(void*, void*)>(find("nvmlDeviceGetMemoryInfo"));
  ASSERT_NE(ask, nullptr);
  ASSERT_EQ(ask(device, &info), 0);
  EXPECT_EQ(info.total, kLimit);
  EXPECT_EQ(find("nvmlThereIsNone"), nullptr);
}

TEST_F(CudaMemory, of_many_threads_never_is_more_than_the_limit_and_agrees_when_all_is_freed) {
  std::atomic<size_t> held{0};
  std::atomic<bool> too_much{false};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      cuCtxSetCurrent(context_);
      std::minstd_rand random(i + 1);
      for (int turn = 0; turn < 300; ++turn) {
        const size_t size = 1 + random() % (50 * kMiB);
        CUdeviceptr memory = 0;
        if (cuMemAlloc_v2(&memory, size) != CUDA_SUCCESS) continue;
        if (held.fetch_add(size) + size > kLimit) too_much = true;
        held.fetch_sub(size);
        cuMemFree_v2(memory);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(too_much);
  EXPECT_EQ(Used(), 0u);
}

// Against a model: what is allocated is the sum of what was allocated and not freed.
TEST_F(CudaMemory, in_random_histories_is_that_of_the_model) {
  std::minstd_rand random(11);
  struct Piece {
    CUdeviceptr memory;
    CUmemGenericAllocationHandle handle;
    size_t size;
  };
  std::vector<Piece> pieces;
  size_t sum = 0;
  const CUmemAllocationProp properties = OnDevice(0);
  for (int step = 0; step < 3000; ++step) {
    if (random() % 2 == 0 || pieces.empty()) {
      Piece piece{0, 0, 1 + random() % (20 * kMiB)};
      const bool has_address = random() % 2 == 0;
      const CUresult result = has_address ? cuMemAlloc_v2(&piece.memory, piece.size)
                                          : cuMemCreate(&piece.handle, piece.size, &properties, 0);
      ASSERT_EQ(result, sum + piece.size <= kLimit ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
      if (result != CUDA_SUCCESS) continue;
      sum += piece.size;
      pieces.push_back(piece);
    } else {
      std::swap(pieces[random() % pieces.size()], pieces.back());
      const Piece piece = pieces.back();
      pieces.pop_back();
      ASSERT_EQ(piece.memory != 0 ? cuMemFree_v2(piece.memory) : cuMemRelease(piece.handle), CUDA_SUCCESS);
      sum -= piece.size;
    }
    ASSERT_EQ(Used(), sum);
  }
}

}  // namespace
}  // namespace xsched::cuda
