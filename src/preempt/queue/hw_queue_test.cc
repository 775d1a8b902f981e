// Hardware queues registered, found and unregistered, also by several threads at once.
#include "preempt/queue/hw_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace xsched::preempt {
namespace {

constexpr uint64_t kKey = 0x7000;

XResult Register(uint64_t key, HwQueueHandle* handle, std::atomic<int>* destroyed) {
  XHwQueueOps ops{};
  ops.size = sizeof ops;
  ops.platform = kPlatformOpenCL;
  ops.max_level = kPreemptLevelBlock;
  ops.destroy = [](void* impl) { static_cast<std::atomic<int>*>(impl)->fetch_add(1); };
  XHwQueueInfo info{};
  info.key = key;
  return HwQueueRegister(&ops, destroyed, &info, handle);
}

TEST(HwQueueRegistry, a_key_is_registered_once) {
  std::atomic<int> destroyed{0};
  HwQueueHandle first = 0;
  HwQueueHandle second = 0;
  ASSERT_EQ(Register(kKey, &first, &destroyed), kXSchedSuccess);
  EXPECT_EQ(Register(kKey, &second, &destroyed), kXSchedErrorNotAllowed);
  EXPECT_EQ(second, first);
  EXPECT_EQ(FindHwQueue(kPlatformOpenCL, kKey), first);
  EXPECT_EQ(FindHwQueue(kPlatformCUDA, kKey), 0u);
  EXPECT_EQ(UnregisterHwQueue(first), kXSchedSuccess);
  EXPECT_EQ(destroyed, 1);
  EXPECT_EQ(UnregisterHwQueue(first), kXSchedErrorNotFound);
  EXPECT_EQ(FindHwQueue(kPlatformOpenCL, kKey), 0u);
}

TEST(HwQueueRegistry, a_queue_without_what_its_gating_needs_is_refused) {
  XHwQueueOps ops{};
  ops.size = sizeof ops;
  ops.platform = kPlatformOpenCL;
  XHwQueueInfo info{};
  info.key = kKey;
  HwQueueHandle handle = 0;
  for (XGating gating : {kGatingHostGates, kGatingDeviceGates, static_cast<XGating>(3)}) {
    ops.gating = gating;
    EXPECT_EQ(HwQueueRegister(&ops, nullptr, &info, &handle), kXSchedErrorInvalidValue) << gating;
  }
  EXPECT_EQ(FindHwQueue(kPlatformOpenCL, kKey), 0u);
  ops.gating = kGatingHostGates;
  ops.append_gate = [](void*, uint64_t*) { return kXSchedSuccess; };
  ops.open_gate = [](void*, uint64_t) {};
  EXPECT_EQ(HwQueueRegister(&ops, nullptr, &info, &handle), kXSchedErrorInvalidValue) << "no markers";
  ops.append_marker = [](void*, uint64_t) { return kXSchedSuccess; };
  EXPECT_EQ(HwQueueRegister(&ops, nullptr, &info, &handle), kXSchedSuccess);
  EXPECT_EQ(UnregisterHwQueue(handle), kXSchedSuccess);
}

TEST(HwQueueRegistry, a_queue_in_use_outlives_its_handle) {
  std::atomic<int> destroyed{0};
  HwQueueHandle handle = 0;
  ASSERT_EQ(Register(kKey, &handle, &destroyed), kXSchedSuccess);
  Ref<HwQueue> user = HwQueues().Get(handle);
  ASSERT_EQ(UnregisterHwQueue(handle), kXSchedSuccess);
  EXPECT_EQ(destroyed, 0);
  user = Ref<HwQueue>();
  EXPECT_EQ(destroyed, 1);
}

// A driver's handle may come back as soon as its queue is gone, on another thread.
TEST(HwQueueRegistry, threads_that_come_and_go_with_one_key_agree_on_who_has_it) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 20000;
  std::atomic<int> owners{0};
  std::atomic<int> registered{0};
  std::atomic<int> destroyed{0};
  std::atomic<bool> wrong{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        HwQueueHandle handle = 0;
        if (Register(kKey, &handle, &destroyed) == kXSchedSuccess) {
          ++registered;
          if (owners.fetch_add(1) != 0 || FindHwQueue(kPlatformOpenCL, kKey) != handle) wrong = true;
          owners.fetch_sub(1);
          if (UnregisterHwQueue(handle) != kXSchedSuccess) wrong = true;
        } else if (handle == 0) {
          wrong = true;
        }
        FindHwQueue(kPlatformOpenCL, kKey);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(wrong);
  EXPECT_GT(registered, 0);
  EXPECT_EQ(destroyed, registered);
  EXPECT_EQ(FindHwQueue(kPlatformOpenCL, kKey), 0u);
}

}  // namespace
}  // namespace xsched::preempt
