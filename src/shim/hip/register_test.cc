// This program is not linked to the shim. The shim is preloaded, or the runtime opens it, because
// ROCPROFILER_REGISTER_LIBRARY names it.
#include <stdlib.h>

#include <thread>

#include "shim/hip/testing/runtime_instance.h"

namespace xsched::hip {
namespace {

using Set = hipError_t(void*, int, size_t, hipStream_t);
constexpr int kWholeTable = 1000;

bool IsPreloaded() { return getenv("LD_PRELOAD") != nullptr; }

TEST(HipRegisterLibrary, the_runtime_finds_the_shim) {
  ASSERT_EQ(dlsym(RTLD_DEFAULT, "rocprofiler_configure") != nullptr, IsPreloaded());
  RuntimeInstance instance;
  instance.OfferTable(kWholeTable, 0);
  hipStream_t stream = instance.NewStream();
  EXPECT_EQ(instance.Library("LibrarySet", stream), hipSuccess);
  EXPECT_EQ(instance.Library("LibraryLaunch", stream), hipSuccess);
  EXPECT_EQ(instance.Launched(stream), 2u);
  EXPECT_EQ(Commands(KeyOf(stream)), 2u);
}

TEST(HipRegisterLibrary, several_instances_are_scheduled_side_by_side) {
  RuntimeInstance a, b;
  a.OfferTable(kWholeTable, 0);
  b.OfferTable(kWholeTable, 1);
  hipStream_t of_a = a.NewStream();
  hipStream_t of_b = b.NewStream();
  EXPECT_EQ(a.Library("LibrarySet", of_a), hipSuccess);
  EXPECT_EQ(a.Library("LibrarySet", of_b), hipSuccess) << "the other's stream";
  EXPECT_EQ(b.Library("LibrarySet", of_b), hipSuccess);
  EXPECT_EQ(Commands(KeyOf(of_a)), 1u);
  EXPECT_EQ(Commands(KeyOf(of_b)), 2u);
}

// At that time the shim is in the global scope, so this library is bound to it.
TEST(HipRegisterLibrary, a_library_that_is_loaded_later_is_scheduled_once) {
  RuntimeInstance a;
  a.OfferTable(kWholeTable, 0);
  a.NewStream();
  RuntimeInstance b;
  b.OfferTable(kWholeTable, 1);
  hipStream_t stream = b.NewStream();
  EXPECT_EQ(b.Library("LibrarySet", stream), hipSuccess);
  EXPECT_EQ(b.Launched(stream), 1u);
  EXPECT_EQ(Commands(KeyOf(stream)), 1u);
}

TEST(HipRegisterLibrary, a_call_that_throws_is_over) {
  RuntimeInstance instance;
  instance.OfferTable(kWholeTable, 0);
  hipStream_t stream = instance.NewStream();
  auto* set = instance.Exported<hipError_t(void*, unsigned char, size_t, hipStream_t)>("hipMemsetD8Async");
  EXPECT_EQ(set(nullptr, 0, 1, stream), hipSuccess);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(set(nullptr, 0, SIZE_MAX, stream), hipErrorOutOfMemory);
  const uint64_t before = Commands(KeyOf(stream));
  EXPECT_TRUE(preempt::NoLaunchUnderWay(QueueOf(KeyOf(stream))));
  EXPECT_EQ(set(nullptr, 0, 1, stream), hipSuccess);
  EXPECT_EQ(instance.Library("LibrarySet", stream), hipSuccess);
  EXPECT_EQ(Commands(KeyOf(stream)), before + 2) << "the thread's calls are scheduled still";
}

TEST(HipRegisterLibrary, threads_use_the_streams_of_all_instances) {
  RuntimeInstance instances[2];
  for (int i = 0; i < 2; ++i) instances[i].OfferTable(kWholeTable, i);
  auto work = [&instances](int thread) {
    constexpr int kRounds = 20;
    constexpr uint64_t kCommands = 10;
    const RuntimeInstance& own = instances[thread % 2];
    const RuntimeInstance& other = instances[(thread + 1) % 2];
    for (int round = 0; round < kRounds; ++round) {
      hipStream_t stream = own.NewStream();
      for (uint64_t i = 0; i < kCommands; ++i) {
        EXPECT_EQ((i % 2 == 0 ? own : other).Library("LibrarySet", stream), hipSuccess);
      }
      EXPECT_EQ(own.Launched(stream), kCommands);
      EXPECT_EQ(Commands(KeyOf(stream)), kCommands);
      own.Finish(stream, kCommands);
      EXPECT_EQ(other.Library("LibraryDestroyStream", stream), hipSuccess);
    }
  };
  std::thread threads[3];
  for (int i = 0; i < 3; ++i) threads[i] = std::thread(work, i);
  work(3);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace xsched::hip

int main(int argc, char** argv) {
  // Before XSched reads it.
  setenv("XSCHED_AUTO_XQUEUE", "1", 1);
  if (getenv("LD_PRELOAD") == nullptr) setenv("ROCPROFILER_REGISTER_LIBRARY", XSCHED_TEST_SHIM, 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
