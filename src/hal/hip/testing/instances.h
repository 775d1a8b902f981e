// The two instances of the fake runtime that tests load, as a process with PyTorch has two of AMD's.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "hal/hip/testing/fake_runtime.h"

namespace xsched::hip {

inline constexpr const char* kInstanceA = FAKE_HIP_A;
inline constexpr const char* kInstanceB = FAKE_HIP_B;

// One loaded instance, as seen by a program that has opened it.
class Instance {
 public:
  explicit Instance(const char* path) : library_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) ADD_FAILURE() << dlerror();
  }

  template <typename Function>
  Function* Get(const char* name) const {
    void* function = dlsym(library_, name);
    EXPECT_NE(function, nullptr) << name;
    return reinterpret_cast<Function*>(function);
  }

  hipStream_t MakeStream() const {
    hipStream_t stream = nullptr;
    EXPECT_EQ(Get<hipError_t(hipStream_t*)>("hipStreamCreate")(&stream), hipSuccess);
    return stream;
  }
  void SetDevice(int device) const { EXPECT_EQ(Get<hipError_t(int)>("hipSetDevice")(device), hipSuccess); }
  hipError_t Launch(hipStream_t stream) const { return Get<decltype(FakeLaunch)>("FakeLaunch")(stream); }
  void Finish(hipStream_t stream, uint64_t count) const {
    Get<decltype(FakeFinish)>("FakeFinish")(stream, count);
  }
  uint64_t Launched(hipStream_t stream) const { return Get<decltype(FakeLaunched)>("FakeLaunched")(stream); }
  void Capture(hipStream_t stream, bool capturing) const {
    Get<decltype(FakeCapture)>("FakeCapture")(stream, capturing);
  }
  bool Spoiled() const { return Get<decltype(FakeSpoiled)>("FakeSpoiled")() != 0; }
  void SetVersion(int version) const { Get<decltype(FakeSetVersion)>("FakeSetVersion")(version); }
  int NullWaits() const { return Get<decltype(FakeNullWaits)>("FakeNullWaits")(); }
  int ThreadStreams() const { return Get<decltype(FakeThreadStreams)>("FakeThreadStreams")(); }
  int Events() const { return Get<decltype(FakeEvents)>("FakeEvents")(); }
  uint64_t Calls() const { return Get<decltype(FakeCalls)>("FakeCalls")(); }
  hipError_t PeekAtLastError() const { return Get<hipError_t()>("hipPeekAtLastError")(); }

 private:
  void* library_;
};

}  // namespace xsched::hip
