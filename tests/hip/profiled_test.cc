// A profiler beside XSched, over AMD's own builds: both get the dispatch table.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "hip_api.h"
#include "queues.h"

namespace xsched::hip {
namespace {

// In the scope of the whole program, or of the library that has opened it, as JAX's plugin does.
class Profiled : public testing::TestWithParam<int> {};

TEST_P(Profiled, a_call_is_seen_by_the_profiler_and_scheduled) {
  void* profiler = dlopen(TEST_PROFILER, RTLD_NOW | GetParam());
  ASSERT_NE(profiler, nullptr) << dlerror();
  void* runtime = dlopen(getenv("TEST_INSTALLED_RUNTIME"), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(runtime, nullptr) << dlerror();
#define RUNTIME(name) reinterpret_cast<decltype(&name)>(dlsym(runtime, #name))
  hipStream_t stream = nullptr;
  void* memory = nullptr;
  ASSERT_EQ(RUNTIME(hipStreamCreateWithFlags)(&stream, hipStreamNonBlocking), hipSuccess);
  ASSERT_EQ(reinterpret_cast<hipError_t (*)(void**, size_t)>(dlsym(runtime, "hipMalloc"))(&memory, 64),
            hipSuccess);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(RUNTIME(hipMemsetAsync)(memory, i, 64, stream), hipSuccess);
  ASSERT_EQ(RUNTIME(hipStreamSynchronize)(stream), hipSuccess);
  EXPECT_EQ(reinterpret_cast<int (*)()>(dlsym(profiler, "ProfilerCalls"))(), 3);
  EXPECT_EQ(Commands(KeyOf(stream)), 3u);
}

INSTANTIATE_TEST_SUITE_P(Opened, Profiled, testing::Values(RTLD_GLOBAL, RTLD_LOCAL), [](const auto& scope) {
  return std::string(scope.param == RTLD_GLOBAL ? "globally" : "locally");
});

}  // namespace
}  // namespace xsched::hip
