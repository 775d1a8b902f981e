// What the stand-in's tests share: a context, streams, and memory that is both the host's and the device's.
#pragma once

#include <cuda.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "standin.h"

namespace standin_test {

using namespace std::chrono_literals;

#define SUCCEEDS(call) ASSERT_EQ(call, CUDA_SUCCESS)

class Cuda : public testing::Test {
 protected:
  void SetUp() override {
    SUCCEEDS(cuInit(0));
    SUCCEEDS(cuCtxCreate(&context, nullptr, 0, 0));
    SUCCEEDS(cuModuleLoadData(&module, "any"));
    SUCCEEDS(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    SUCCEEDS(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    SUCCEEDS(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    log = Memory(64);
    gate = Memory(1);
  }
  void TearDown() override {
    Open();
    // A capture that a test did not end would refuse it.
    cuCtxDestroy(context);
  }

  // Zeroed, freed with the context's process.
  int* Memory(size_t ints) {
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAlloc(&address, ints * sizeof(int)), CUDA_SUCCESS);
    std::fill_n(reinterpret_cast<int*>(address), ints, 0);
    return reinterpret_cast<int*>(address);
  }
  static CUdeviceptr At(const int* p) { return reinterpret_cast<CUdeviceptr>(p); }

  CUfunction Function(const char* name) {
    CUfunction function = nullptr;
    EXPECT_EQ(cuModuleGetFunction(&function, module, name), CUDA_SUCCESS);
    return function;
  }
  template <typename... Arguments>
  CUresult Launch(CUstream stream, const char* name, Arguments... arguments) {
    void* pointers[] = {&arguments..., nullptr};
    return cuLaunchKernel(Function(name), 1, 1, 1, 32, 1, 1, 0, stream, pointers, nullptr);
  }
  CUresult Append(CUstream stream, int value) { return Launch(stream, "append", log, value); }

  // The stream waits until Open.
  CUresult Hold(CUstream stream) {
    return cuStreamWaitValue32(stream, At(gate), 1, CU_STREAM_WAIT_VALUE_GEQ);
  }
  void Open() { __atomic_store_n(gate, 1, __ATOMIC_RELEASE); }

  std::vector<int> Log() const { return {log + 1, log + 1 + __atomic_load_n(log, __ATOMIC_ACQUIRE)}; }

  // True if `call`, made by another thread while a stream is held, returns only after Open.
  template <typename Call>
  bool WaitsForHeldStream(CUstream held, Call call) {
    __atomic_store_n(gate, 0, __ATOMIC_RELEASE);
    EXPECT_EQ(Hold(held), CUDA_SUCCESS);
    std::atomic<bool> back{false};
    std::thread thread([&] {
      EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
      EXPECT_EQ(call(), CUDA_SUCCESS);
      back = true;
    });
    for (int i = 0; i < 30 && !back; ++i) std::this_thread::sleep_for(1ms);
    const bool waited = !back;
    Open();
    thread.join();
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    return waited;
  }

  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUstream a = nullptr, b = nullptr, blocking = nullptr;
  int* log = nullptr;  // for Append: a count, then what was appended
  int* gate = nullptr;
};

}  // namespace standin_test
