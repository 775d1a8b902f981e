// Two runtime instances in one process, as with PyTorch: a program that brings its own (bundled/) and is
// loaded as Python loads libraries, and the installed one, which something else uses: a scheduler that opens
// it by its path, or another program.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "program.h"

namespace xsched::hip {

// Environment variables that CTest sets (over.cmake): TEST_BUNDLED_RUNTIME, TEST_BUNDLED_PROGRAM,
// TEST_INSTALLED_RUNTIME, and TEST_OTHER_PROGRAM, which is linked to the installed runtime.
inline void* Load(const char* variable) {
  const char* path = getenv(variable);
  return path == nullptr ? nullptr : dlopen(path, RTLD_LAZY | RTLD_LOCAL);
}

#define SUCCEEDS(call) ASSERT_EQ(call, hipSuccess)

// The function of this name in the program, in the other program, and in the installed runtime instance.
#define PROGRAM(name) reinterpret_cast<decltype(&name)>(dlsym(program_, #name))
#define OTHER(name) reinterpret_cast<decltype(&name)>(dlsym(OtherProgram(), #name))
#define INSTALLED(name) reinterpret_cast<decltype(&name)>(dlsym(installed_, #name))

class TwoInstances : public testing::Test {
 protected:
  void SetUp() override {
    program_ = Load("TEST_BUNDLED_PROGRAM");
    ASSERT_NE(program_, nullptr) << dlerror();
    installed_ = Load("TEST_INSTALLED_RUNTIME");
    ASSERT_NE(installed_, nullptr) << dlerror();
    SUCCEEDS(PROGRAM(ProgramStream)(&stream_));
    void* memory = nullptr;
    SUCCEEDS(PROGRAM(ProgramMemory)(&memory, 3 * kFloats * sizeof(float)));
    floats_ = static_cast<float*>(memory);
    SUCCEEDS(PROGRAM(ProgramMemory)(&memory, 64 * sizeof(int)));
    log_ = static_cast<int*>(memory);
  }

  // As hipRuntimeGetVersion says it: 70253211 is a build of ROCm 7.2.
  int InstalledVersion() const {
    int version = 0;
    EXPECT_EQ(INSTALLED(hipRuntimeGetVersion)(&version), hipSuccess);
    return version;
  }

  static constexpr int kFloats = 256;  // 16 × 16
  float* Matrix(int index) const { return floats_ + index * kFloats; }

  static void* OtherProgram() {
    static void* const program = Load("TEST_OTHER_PROGRAM");
    return program;
  }

  void* program_ = nullptr;
  void* installed_ = nullptr;
  hipStream_t stream_ = nullptr;
  float* floats_ = nullptr;  // three matrices
  int* log_ = nullptr;
};

}  // namespace xsched::hip
