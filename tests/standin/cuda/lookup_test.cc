// Initialization, devices, looking functions up, faults.
#include <cudaTypedefs.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "fixture.h"

namespace standin_test {
namespace {

using LookupTest = Cuda;
using FaultTest = Cuda;

void* Lookup(const char* name, int version, cuuint64_t flags = 0) {
  void* function = nullptr;
  EXPECT_EQ(cuGetProcAddress(name, &function, version, flags, nullptr), CUDA_SUCCESS);
  return function;
}

TEST_F(LookupTest, the_version_asked_for_decides_which_function_it_is) {
  void* library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);
  ASSERT_NE(library, nullptr);
  EXPECT_EQ(Lookup("cuMemcpyBatchAsync", 12080), dlsym(library, "cuMemcpyBatchAsync"));
  EXPECT_EQ(Lookup("cuMemcpyBatchAsync", 13000), dlsym(library, "cuMemcpyBatchAsync_v2"));
  EXPECT_EQ(Lookup("cuMemAlloc", 2000), dlsym(library, "cuMemAlloc"));
  EXPECT_EQ(Lookup("cuMemAlloc", 12000), dlsym(library, "cuMemAlloc_v2"));
  EXPECT_EQ(Lookup("cuStreamGetCaptureInfo", 11000), dlsym(library, "cuStreamGetCaptureInfo"));
  EXPECT_EQ(Lookup("cuStreamGetCaptureInfo", 11030), dlsym(library, "cuStreamGetCaptureInfo_v2"));
  EXPECT_EQ(Lookup("cuStreamGetCaptureInfo", 12030), dlsym(library, "cuStreamGetCaptureInfo_v3"));
}

TEST_F(LookupTest, the_flag_asks_for_the_variant_of_per_thread_default_streams) {
  void* library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);
  const auto per_thread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  EXPECT_EQ(Lookup("cuLaunchKernel", 12000, per_thread), dlsym(library, "cuLaunchKernel_ptsz"));
  EXPECT_EQ(Lookup("cuMemcpyHtoD", 12000, per_thread), dlsym(library, "cuMemcpyHtoD_v2_ptds"));
  EXPECT_EQ(Lookup("cuStreamWaitValue32", 12000, per_thread), dlsym(library, "cuStreamWaitValue32_v2_ptsz"));
  EXPECT_EQ(Lookup("cuMemAlloc", 12000, per_thread), dlsym(library, "cuMemAlloc_v2"))
      << "there is no variant";
}

TEST_F(LookupTest, what_is_not_there_is_null_and_says_why) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status;
  SUCCEEDS(cuGetProcAddress("cuNope", &function, 12000, 0, &status));
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  SUCCEEDS(cuGetProcAddress("cuMemcpyBatchAsync", &function, 12000, 0, &status));
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  SUCCEEDS(cuGetProcAddress("cuMemAlloc_v2", &function, 12000, 0, &status));
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) << "names have no suffix";
  EXPECT_EQ(cuGetProcAddress("cuInit", &function, 99000, 0, &status), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(LookupTest, the_variant_takes_the_null_stream_for_the_threads_own) {
  const auto launch = reinterpret_cast<PFN_cuLaunchHostFunc_v10000>(
      Lookup("cuLaunchHostFunc", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM));
  std::atomic<bool> go{false};
  SUCCEEDS(launch(
      nullptr,
      [](void* data) {
        while (!*static_cast<std::atomic<bool>*>(data)) std::this_thread::sleep_for(1ms);
      },
      &go));
  EXPECT_EQ(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
  go = true;
  SUCCEEDS(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

TEST_F(LookupTest, a_synchronous_call_has_a_variant_too) {
  const auto copy = reinterpret_cast<PFN_cuMemcpyDtoH_v7000_ptds>(
      Lookup("cuMemcpyDtoH", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM));
  int value = 0;
  int* source = Memory(1);
  *source = 5;
  SUCCEEDS(copy(&value, At(source), sizeof(value)));
  EXPECT_EQ(value, 5);
}

TEST_F(LookupTest, a_device_is_known_by_its_address) {
  char address[32];
  CUdevice device = -1;
  SUCCEEDS(cuDeviceGetPCIBusId(address, sizeof(address), 0));
  SUCCEEDS(cuDeviceGetByPCIBusId(&device, address));
  EXPECT_EQ(device, 0);
  EXPECT_EQ(cuDeviceGetByPCIBusId(&device, "0000:FF:00.0"), CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(LookupTest, a_forked_child_cannot_use_what_its_parent_initialized) {
  const pid_t child = fork();
  if (child == 0) {
    CUdeviceptr p;
    _exit(cuInit(0) == CUDA_ERROR_NOT_INITIALIZED && cuMemAlloc(&p, 4) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(LookupTest, what_is_not_implemented_says_so_and_is_counted) {
  const uint64_t before = standin_unsupported_calls();
  EXPECT_EQ(cuCtxResetPersistingL2Cache(), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(standin_unsupported_calls(), before + 1);
  EXPECT_STREQ(standin_last_unsupported(), "cuCtxResetPersistingL2Cache");
}

TEST_F(FaultTest, the_nth_call_fails_and_only_that) {
  standin_fail("cuLaunchKernel", 2, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(Append(a, 1), CUDA_SUCCESS);
  EXPECT_EQ(Append(a, 2), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(Append(a, 3), CUDA_SUCCESS);
  SUCCEEDS(cuStreamSynchronize(a));
  EXPECT_EQ(Log(), (std::vector{1, 3}));
}

TEST_F(FaultTest, a_slow_call_takes_longer) {
  standin_slow("cuDeviceGetCount", 5'000'000);
  const auto start = std::chrono::steady_clock::now();
  int count;
  SUCCEEDS(cuDeviceGetCount(&count));
  EXPECT_GE(std::chrono::steady_clock::now() - start, 5ms);
  standin_slow("cuDeviceGetCount", 0);
}

TEST_F(FaultTest, a_lost_context_drops_its_work_and_wakes_waiting_threads) {
  SUCCEEDS(Hold(a));
  CUresult result = CUDA_SUCCESS;
  std::thread waiter([&] { result = cuStreamSynchronize(a); });
  std::this_thread::sleep_for(5ms);
  standin_lose_contexts(0, CUDA_ERROR_ECC_UNCORRECTABLE);
  waiter.join();
  EXPECT_EQ(result, CUDA_ERROR_ECC_UNCORRECTABLE);
  EXPECT_EQ(standin_pending(0), 0u);
}

TEST_F(FaultTest, calls_are_counted_by_name) {
  const uint64_t before = standin_calls("cuLaunchKernel");
  SUCCEEDS(Append(a, 1));
  EXPECT_EQ(standin_calls("cuLaunchKernel"), before + 1);
  EXPECT_EQ(standin_calls("cuNope"), 0u);
}

}  // namespace
}  // namespace standin_test
