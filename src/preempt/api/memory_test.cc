#include "preempt/api/memory.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace xsched::preempt {
namespace {

constexpr XDevice kDevice = 0x1'0000'0300;

// The variables are read once per process. So each test runs in a child, which says whether all was right.
template <typename Check>
bool InProcess(const char* limit, const char* path, const Check& check) {
  const pid_t child = fork();
  if (child == 0) {
    limit == nullptr ? unsetenv("XSCHED_MEMORY") : setenv("XSCHED_MEMORY", limit, 1);
    path == nullptr ? unsetenv("XSCHED_MEMORY_ACCOUNT") : setenv("XSCHED_MEMORY_ACCOUNT", path, 1);
    _exit(check() ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  return status == 0;
}

TEST(ProcessMemory, has_no_limit_unless_the_environment_says_one) {
  EXPECT_TRUE(InProcess(nullptr, nullptr, [] { return !MemoryIsCounted(); }));
  EXPECT_TRUE(InProcess("", nullptr, [] { return !MemoryIsCounted(); }));
  EXPECT_TRUE(InProcess("much", nullptr, [] { return !MemoryIsCounted(); }));
}

TEST(ProcessMemory, is_refused_beyond_the_limit) {
  EXPECT_TRUE(InProcess("1KiB", nullptr, [] {
    if (!MemoryIsCounted()) return false;
    const int device = LimitedDevice(kDevice);
    if (!TakeMemory(device, 1000) || TakeMemory(device, 25)) return false;
    GiveMemoryBack(device, 1);
    if (!TakeMemory(device, 25)) return false;
    CountMemory(device, 100);
    return MemoryOf(device).limit == 1024 && MemoryOf(device).left == 0;
  }));
}

TEST(ProcessMemory, of_a_forked_child_counts_apart_from_its_parents_but_under_the_same_limit) {
  char name[] = "/tmp/memory_test.XXXXXX";
  const std::string folder = mkdtemp(name);
  EXPECT_TRUE(InProcess("1KiB", (folder + "/account").c_str(), [] {
    if (!MemoryIsCounted()) return false;
    const int device = LimitedDevice(kDevice);
    if (!TakeMemory(device, 1000)) return false;
    const pid_t child = fork();
    if (child == 0) _exit(MemoryIsCounted() && !TakeMemory(device, 25) && TakeMemory(device, 24) ? 0 : 1);
    int status = 1;
    waitpid(child, &status, 0);
    return status == 0 && MemoryOf(device).left == 24;
  }));
  std::filesystem::remove_all(folder);
}

// The first of them takes a slot for the child, and the others must not count before it has one.
TEST(ProcessMemory, of_a_forked_child_is_counted_right_by_threads_that_begin_at_the_same_time) {
  constexpr int kThreads = 8;
  char name[] = "/tmp/memory_test.XXXXXX";
  const std::string folder = mkdtemp(name);
  EXPECT_TRUE(InProcess("1KiB", (folder + "/account").c_str(), [] {
    if (!MemoryIsCounted()) return false;
    const int device = LimitedDevice(kDevice);
    if (!TakeMemory(device, 100)) return false;
    const auto all_counts = [device] {
      std::atomic<int> ready{0};
      std::vector<std::thread> threads;
      for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&ready, device] {
          for (ready.fetch_add(1); ready.load() < kThreads;) {
          }
          if (MemoryIsCounted()) CountMemory(device, 10);
        });
      }
      for (std::thread& thread : threads) thread.join();
      return MemoryOf(device).left == 1024 - 100 - kThreads * 10;
    };
    for (int i = 0; i < 20; ++i) {
      const pid_t child = fork();
      if (child == 0) _exit(all_counts() ? 0 : 1);
      int status = 1;
      waitpid(child, &status, 0);
      if (status != 0) return false;
    }
    return MemoryOf(device).left == 1024 - 100;
  }));
  std::filesystem::remove_all(folder);
}

TEST(ProcessMemory, has_the_limit_for_itself_if_the_account_cannot_be_opened) {
  EXPECT_TRUE(InProcess("1KiB", "/nowhere/account", [] {
    return MemoryIsCounted() && TakeMemory(LimitedDevice(kDevice), 1024) &&
           !TakeMemory(LimitedDevice(kDevice), 1);
  }));
}

}  // namespace
}  // namespace xsched::preempt
