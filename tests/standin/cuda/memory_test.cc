// Memory, copies, memory operations, and which calls wait for work of others.
#include <cstdint>
#include <cstring>

#include "fixture.h"

namespace standin_test {
namespace {

using MemoryTest = Cuda;
using WaitTest = Cuda;

TEST_F(MemoryTest, the_four_conditions_hold_for_what_the_manual_says) {
  struct {
    unsigned flags;
    uint32_t word, value;
    bool holds;
  } const cases[] = {
      {CU_STREAM_WAIT_VALUE_GEQ, 5, 5, true},
      {CU_STREAM_WAIT_VALUE_GEQ, 4, 5, false},
      {CU_STREAM_WAIT_VALUE_GEQ, 2, 0xfffffff0u, true},  // cyclic
      {CU_STREAM_WAIT_VALUE_EQ, 5, 5, true},
      {CU_STREAM_WAIT_VALUE_EQ, 6, 5, false},
      {CU_STREAM_WAIT_VALUE_AND, 6, 2, true},
      {CU_STREAM_WAIT_VALUE_AND, 5, 2, false},
      {CU_STREAM_WAIT_VALUE_NOR, 0xf0, 0x0f, true},
      {CU_STREAM_WAIT_VALUE_NOR, 0xffff0000u, 0xffffu, false},
  };
  for (const auto& c : cases) {
    *reinterpret_cast<uint32_t*>(gate) = c.word;
    SUCCEEDS(cuStreamWaitValue32(a, At(gate), c.value, c.flags));
    for (int i = 0; i < (c.holds ? 5000 : 5) && cuStreamQuery(a) != CUDA_SUCCESS; ++i)
      std::this_thread::sleep_for(1ms);
    EXPECT_EQ(cuStreamQuery(a) == CUDA_SUCCESS, c.holds) << c.flags << " " << c.word << " " << c.value;
    // The value that satisfies the condition.
    __atomic_store_n(reinterpret_cast<uint32_t*>(gate), c.flags == CU_STREAM_WAIT_VALUE_NOR ? 0 : c.value,
                     __ATOMIC_RELEASE);
    SUCCEEDS(cuStreamSynchronize(a));
  }
}

TEST_F(MemoryTest, a_batch_waits_and_writes_in_order) {
  int* progress = Memory(4);
  CUstreamBatchMemOpParams operations[3] = {};
  operations[0].writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, At(progress), {1}, 0, 0};
  operations[1].waitValue = {CU_STREAM_MEM_OP_WAIT_VALUE_32, At(gate), {1}, CU_STREAM_WAIT_VALUE_GEQ, 0};
  operations[2].operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
  operations[2].writeValue.address = At(progress + 2);
  operations[2].writeValue.value64 = 1ull << 40;
  SUCCEEDS(cuStreamBatchMemOp(a, 3, operations, 0));
  while (__atomic_load_n(progress, __ATOMIC_ACQUIRE) == 0) std::this_thread::yield();
  EXPECT_EQ(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(*reinterpret_cast<uint64_t*>(progress + 2), 0u);
  Open();
  SUCCEEDS(cuStreamSynchronize(a));
  EXPECT_EQ(*reinterpret_cast<uint64_t*>(progress + 2), 1ull << 40);
}

TEST_F(MemoryTest, a_word_must_be_aligned) {
  EXPECT_EQ(cuStreamWaitValue32(a, At(gate) + 2, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamWriteValue64(a, At(gate) + 4, 0, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(MemoryTest, what_a_copy_reads_from_ordinary_memory_may_change_at_once) {
  int value = 1;
  int* target = Memory(1);
  SUCCEEDS(Hold(a));
  SUCCEEDS(cuMemcpyHtoDAsync(At(target), &value, sizeof(value), a));
  value = 2;
  Open();
  SUCCEEDS(cuStreamSynchronize(a));
  EXPECT_EQ(*target, 1);
}

TEST_F(MemoryTest, what_a_copy_reads_from_pinned_memory_is_read_when_the_copy_runs) {
  int* value = nullptr;
  SUCCEEDS(cuMemHostAlloc(reinterpret_cast<void**>(&value), sizeof(int), 0));
  *value = 1;
  int* target = Memory(1);
  SUCCEEDS(Hold(a));
  SUCCEEDS(cuMemcpyHtoDAsync(At(target), value, sizeof(int), a));
  *value = 2;
  Open();
  SUCCEEDS(cuStreamSynchronize(a));
  EXPECT_EQ(*target, 2);
}

TEST_F(MemoryTest, boxes_are_copied_row_by_row) {
  unsigned char from[4][8], to[4][8] = {};
  for (int i = 0; i < 32; ++i) from[i / 8][i % 8] = static_cast<unsigned char>(i);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = from;
  copy.dstHost = to;
  copy.srcPitch = copy.dstPitch = 8;
  copy.srcXInBytes = 2, copy.srcY = 1;
  copy.dstXInBytes = 4, copy.dstY = 2;
  copy.WidthInBytes = 3, copy.Height = 2;
  SUCCEEDS(cuMemcpy2DAsync(&copy, a));
  SUCCEEDS(cuStreamSynchronize(a));
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 8; ++x) {
      const bool inside = y >= 2 && x >= 4 && x < 7;
      EXPECT_EQ(to[y][x], inside ? from[y - 1][x - 2] : 0);
    }
  }
}

TEST_F(MemoryTest, registered_memory_is_registered_once) {
  static int page[1024];
  CUdeviceptr address = 0;
  SUCCEEDS(cuMemHostRegister(page, sizeof(page), 0));
  EXPECT_EQ(cuMemHostRegister(page + 1, 4, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  SUCCEEDS(cuMemHostGetDevicePointer(&address, page + 3, 0));
  EXPECT_EQ(address, At(page + 3));
  SUCCEEDS(cuMemHostUnregister(page));
  EXPECT_EQ(cuMemHostUnregister(page), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

TEST_F(MemoryTest, a_pool_takes_memory_back_in_stream_order) {
  size_t before = 0, held = 0, after = 0, total = 0;
  SUCCEEDS(cuMemGetInfo(&before, &total));
  CUdeviceptr p = 0;
  SUCCEEDS(cuMemAllocAsync(&p, 4096, a));
  SUCCEEDS(Hold(a));
  SUCCEEDS(cuMemFreeAsync(p, a));
  SUCCEEDS(cuMemGetInfo(&held, &total));
  EXPECT_EQ(held, before - 4096);
  Open();
  SUCCEEDS(cuStreamSynchronize(a));
  SUCCEEDS(cuMemGetInfo(&after, &total));
  EXPECT_EQ(after, before);
}

TEST_F(MemoryTest, the_devices_memory_ends) {
  CUdeviceptr p = 0;
  size_t free = 0, total = 0;
  SUCCEEDS(cuMemGetInfo(&free, &total));
  EXPECT_EQ(cuMemAlloc(&p, free + 1), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(WaitTest, freeing_device_memory_waits_for_the_context) {
  EXPECT_TRUE(WaitsForHeldStream(a, [&] { return cuMemFree(At(Memory(4))); }));
}
TEST_F(WaitTest, allocating_waits_for_nothing) {
  EXPECT_FALSE(WaitsForHeldStream(a, [] {
    CUdeviceptr p;
    return cuMemAlloc(&p, 4);
  }));
}
TEST_F(WaitTest, unregistering_waits_for_the_context) {
  static int page[16];
  SUCCEEDS(cuMemHostRegister(page, sizeof(page), 0));
  EXPECT_TRUE(WaitsForHeldStream(a, [] { return cuMemHostUnregister(page); }));
}
TEST_F(WaitTest, loading_a_module_waits_for_the_context) {
  EXPECT_TRUE(WaitsForHeldStream(a, [] {
    CUmodule other;
    return cuModuleLoadData(&other, "any");
  }));
}
TEST_F(WaitTest, a_librarys_first_launch_waits_and_its_loading_does_not) {
  CUlibrary library;
  CUkernel kernel;
  EXPECT_FALSE(WaitsForHeldStream(a, [&] {
    const CUresult r = cuLibraryLoadData(&library, "any", nullptr, nullptr, 0, nullptr, nullptr, 0);
    return r ? r : cuLibraryGetKernel(&kernel, library, "nop");
  }));
  const auto launch = [&] {
    return cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, b, nullptr, nullptr);
  };
  EXPECT_TRUE(WaitsForHeldStream(a, launch));
  EXPECT_FALSE(WaitsForHeldStream(a, launch));
}
TEST_F(WaitTest, synchronizing_the_context_waits_for_all_of_it) {
  EXPECT_TRUE(WaitsForHeldStream(a, [] { return cuCtxSynchronize(); }));
}
TEST_F(WaitTest, making_another_context_waits) {
  EXPECT_TRUE(WaitsForHeldStream(a, [] {
    CUcontext other;
    const CUresult r = cuCtxCreate(&other, nullptr, 0, 0);
    return r ? r : cuCtxDestroy(other);
  }));
}
TEST_F(WaitTest, a_synchronous_copy_waits_for_blocking_streams_only) {
  int value = 0;
  int* source = Memory(1);
  const auto copy = [&] { return cuMemcpyDtoH(&value, At(source), sizeof(value)); };
  EXPECT_FALSE(WaitsForHeldStream(a, copy));
  EXPECT_TRUE(WaitsForHeldStream(blocking, copy));
}
TEST_F(WaitTest, launching_never_waits) {
  EXPECT_FALSE(WaitsForHeldStream(a, [&] { return Append(a, 1); }));
  EXPECT_FALSE(WaitsForHeldStream(blocking, [&] { return Append(nullptr, 1); }));
}
TEST_F(WaitTest, resetting_the_primary_context_waits_for_it) {
  CUcontext primary, popped;
  CUstream stream;
  SUCCEEDS(cuDevicePrimaryCtxRetain(&primary, 0));
  SUCCEEDS(cuCtxPushCurrent(primary));
  SUCCEEDS(cuStreamCreate(&stream, 0));
  SUCCEEDS(Hold(stream));
  std::atomic<bool> back{false};
  std::thread thread([&] {
    EXPECT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
    back = true;
  });
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(back);
  Open();
  thread.join();
  EXPECT_EQ(cuStreamCreate(&stream, 0), CUDA_ERROR_INVALID_CONTEXT) << "the context is gone";
  SUCCEEDS(cuCtxPopCurrent(&popped));
}

}  // namespace
}  // namespace standin_test
