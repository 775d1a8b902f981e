#include "fixture.h"

namespace standin_test {
namespace {

class GreenContext : public testing::Test {
 protected:
  void SetUp() override {
    SUCCEEDS(cuInit(0));
    SUCCEEDS(cuDevicePrimaryCtxRetain(&primary, 0));
    SUCCEEDS(cuCtxSetCurrent(primary));
    CUdevResource whole{}, part{};
    CUdevResourceDesc description = nullptr;
    unsigned groups = 1;
    SUCCEEDS(cuDeviceGetDevResource(0, &whole, CU_DEV_RESOURCE_TYPE_SM));
    SUCCEEDS(cuDevSmResourceSplitByCount(&part, &groups, &whole, nullptr, 0, 20));
    ASSERT_EQ(part.sm.smCount, 24u);
    SUCCEEDS(cuDevResourceGenerateDesc(&description, &part, 1));
    SUCCEEDS(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    SUCCEEDS(cuCtxFromGreenCtx(&context, green));
  }
  void TearDown() override {
    SUCCEEDS(cuCtxSetCurrent(nullptr));
    SUCCEEDS(cuGreenCtxDestroy(green));
    SUCCEEDS(cuDevicePrimaryCtxRelease(0));
  }

  CUcontext primary = nullptr;
  CUgreenCtx green = nullptr;
  CUcontext context = nullptr;
};

TEST_F(GreenContext, a_stream_of_it_belongs_to_it_and_to_the_primary_context) {
  CUstream stream = nullptr;
  CUcontext of_stream = nullptr;
  CUgreenCtx green_of_stream = nullptr;
  SUCCEEDS(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
  SUCCEEDS(cuStreamGetCtx_v2(stream, &of_stream, &green_of_stream));
  EXPECT_EQ(of_stream, primary);
  EXPECT_EQ(green_of_stream, green);
  EXPECT_NE(context, primary);
}

TEST_F(GreenContext, synchronizing_the_primary_context_waits_for_it) {
  CUstream stream = nullptr;
  CUdeviceptr word = 0;
  SUCCEEDS(cuMemAlloc(&word, 4));
  std::atomic_ref<uint32_t> shared(*reinterpret_cast<uint32_t*>(word));
  shared = 0;
  SUCCEEDS(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
  SUCCEEDS(cuStreamWaitValue32(stream, word, 1, CU_STREAM_WAIT_VALUE_EQ));
  std::atomic<bool> done{false};
  std::thread waiter([&] {
    EXPECT_EQ(cuCtxSetCurrent(primary), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    done = true;
  });
  std::this_thread::sleep_for(5ms);
  EXPECT_FALSE(done);
  shared = 1;
  waiter.join();
  EXPECT_EQ(cuMemFree(word), CUDA_SUCCESS);
}

TEST_F(GreenContext, it_is_current_to_one_thread_at_a_time) {
  SUCCEEDS(cuCtxPushCurrent(context));
  std::thread other([this] { EXPECT_EQ(cuCtxSetCurrent(context), CUDA_ERROR_CONTEXT_ALREADY_IN_USE); });
  other.join();
  SUCCEEDS(cuCtxPopCurrent(nullptr));
  std::thread later([this] {
    EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
  });
  later.join();
}

}  // namespace
}  // namespace standin_test
