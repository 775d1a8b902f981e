// Two copies of AMD's runtime in one process, as with PyTorch: a program with its own (bundled/), loaded as
// Python loads libraries, and the installed one, which something else uses: a scheduler that opens it by its
// path, or another program.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "program.h"

namespace xsched::hip {

inline constexpr char kBundledProgram[] = TEST_BUNDLED_PROGRAM;
inline constexpr char kOtherProgram[] = TEST_OTHER_PROGRAM;  // linked to the installed copy
inline constexpr char kInstalledRuntime[] = TEST_INSTALLED_RUNTIME;

#define SUCCEEDS(call) ASSERT_EQ(call, hipSuccess)

// The program's, the other program's, and the installed copy's, function of this name.
#define PROGRAM(name) reinterpret_cast<decltype(&name)>(dlsym(program_, #name))
#define OTHER(name) reinterpret_cast<decltype(&name)>(dlsym(OtherProgram(), #name))
#define INSTALLED(name) reinterpret_cast<decltype(&name)>(dlsym(installed_, #name))

class TwoCopies : public testing::Test {
 protected:
  void SetUp() override {
    program_ = dlopen(kBundledProgram, RTLD_LAZY | RTLD_LOCAL);
    ASSERT_NE(program_, nullptr) << dlerror();
    installed_ = dlopen(kInstalledRuntime, RTLD_LAZY | RTLD_LOCAL);
    ASSERT_NE(installed_, nullptr) << dlerror();
    SUCCEEDS(PROGRAM(ProgramStream)(&stream_));
    void* memory = nullptr;
    SUCCEEDS(PROGRAM(ProgramMemory)(&memory, 3 * kFloats * sizeof(float)));
    floats_ = static_cast<float*>(memory);
    SUCCEEDS(PROGRAM(ProgramMemory)(&memory, 64 * sizeof(int)));
    log_ = static_cast<int*>(memory);
  }

  static constexpr int kFloats = 256;  // 16 × 16
  float* Matrix(int index) const { return floats_ + index * kFloats; }

  static void* OtherProgram() {
    static void* const program = dlopen(kOtherProgram, RTLD_LAZY | RTLD_LOCAL);
    return program;
  }

  void* program_ = nullptr;
  void* installed_ = nullptr;
  hipStream_t stream_ = nullptr;
  float* floats_ = nullptr;  // three matrices
  int* log_ = nullptr;
};

}  // namespace xsched::hip
