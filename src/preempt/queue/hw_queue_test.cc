// Hardware queues registered, found and unregistered, also by several threads at once.
#include "preempt/queue/hw_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace xsched::preempt {
namespace {

constexpr uint64_t kKey = 0x7000;

class HwQueuesTest : public ::testing::Test {
 protected:
  XResult Register(uint64_t key, HwQueueHandle* handle, std::atomic<int>* destroyed) {
    XHwQueueOps ops{};
    ops.size = sizeof ops;
    ops.platform = kPlatformOpenCL;
    ops.max_level = kPreemptLevelBlock;
    ops.destroy = [](void* impl) { static_cast<std::atomic<int>*>(impl)->fetch_add(1); };
    XHwQueueInfo info{};
    info.key = key;
    return queues_.Register(ops, destroyed, info, handle);
  }

  HwQueues queues_;
};

TEST_F(HwQueuesTest, a_key_is_registered_once) {
  std::atomic<int> destroyed{0};
  HwQueueHandle first = 0;
  HwQueueHandle second = 0;
  ASSERT_EQ(Register(kKey, &first, &destroyed), kXSchedSuccess);
  EXPECT_EQ(Register(kKey, &second, &destroyed), kXSchedErrorNotAllowed);
  EXPECT_EQ(second, first);
  EXPECT_EQ(queues_.Find(kPlatformOpenCL, kKey), first);
  EXPECT_EQ(queues_.Find(kPlatformCUDA, kKey), 0u);
  EXPECT_EQ(queues_.Unregister(first), kXSchedSuccess);
  EXPECT_EQ(destroyed, 1);
  EXPECT_EQ(queues_.Unregister(first), kXSchedErrorNotFound);
  EXPECT_EQ(queues_.Find(kPlatformOpenCL, kKey), 0u);
}

TEST_F(HwQueuesTest, a_queue_without_what_its_gating_needs_is_refused) {
  XHwQueueOps ops{};
  ops.size = sizeof ops;
  ops.platform = kPlatformOpenCL;
  XHwQueueInfo info{};
  info.key = kKey;
  HwQueueHandle handle = 0;
  for (XGating gating : {kGatingHostGates, kGatingDeviceGates, static_cast<XGating>(3)}) {
    ops.gating = gating;
    EXPECT_EQ(queues_.Register(ops, nullptr, info, &handle), kXSchedErrorInvalidValue) << gating;
  }
  EXPECT_EQ(queues_.Find(kPlatformOpenCL, kKey), 0u);
  ops.gating = kGatingHostGates;
  ops.append_gate = [](void*, uint64_t*) { return kXSchedSuccess; };
  ops.open_gate = [](void*, uint64_t) { return kXSchedSuccess; };
  EXPECT_EQ(queues_.Register(ops, nullptr, info, &handle), kXSchedErrorInvalidValue) << "no markers";
  ops.append_marker = [](void*, uint64_t) { return kXSchedSuccess; };
  EXPECT_EQ(queues_.Register(ops, nullptr, info, &handle), kXSchedSuccess);
  EXPECT_EQ(queues_.Unregister(handle), kXSchedSuccess);
}

TEST_F(HwQueuesTest, a_queue_in_use_outlives_its_handle) {
  std::atomic<int> destroyed{0};
  HwQueueHandle handle = 0;
  ASSERT_EQ(Register(kKey, &handle, &destroyed), kXSchedSuccess);
  Ref<HwQueue> user = queues_.Get(handle);
  ASSERT_EQ(queues_.Unregister(handle), kXSchedSuccess);
  EXPECT_EQ(destroyed, 0);
  user = Ref<HwQueue>();
  EXPECT_EQ(destroyed, 1);
}

// A driver may reuse a handle on another thread as soon as its queue is destroyed.
TEST_F(HwQueuesTest, threads_that_register_and_unregister_one_key_agree_on_its_owner) {
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
          if (owners.fetch_add(1) != 0 || queues_.Find(kPlatformOpenCL, kKey) != handle) wrong = true;
          owners.fetch_sub(1);
          if (queues_.Unregister(handle) != kXSchedSuccess) wrong = true;
        } else if (handle == 0) {
          wrong = true;
        }
        queues_.Find(kPlatformOpenCL, kKey);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(wrong);
  EXPECT_GT(registered, 0);
  EXPECT_EQ(destroyed, registered);
  EXPECT_EQ(queues_.Find(kPlatformOpenCL, kKey), 0u);
}

TEST_F(HwQueuesTest, an_older_hal_lacks_the_newest_functions) {
  XHwQueueOps ops{};
  ops.size = offsetof(XHwQueueOps, destroy);
  ops.destroy = [](void*) { FAIL() << "what is behind the HAL's size is not its own"; };
  XHwQueueInfo info{};
  info.key = kKey;
  HwQueueHandle handle = 0;
  ASSERT_EQ(queues_.Register(ops, nullptr, info, &handle), kXSchedSuccess);
  EXPECT_EQ(queues_.Get(handle)->ops.destroy, nullptr);
  EXPECT_EQ(queues_.Unregister(handle), kXSchedSuccess);
}

// ---- commands ----

TEST(HwCommandsTest, a_command_that_was_consumed_is_known_as_such_until_its_handle_is_old) {
  HwCommands commands;
  XHwCommandOps ops{};
  ops.size = sizeof ops;
  HwCommandHandle handle = 0;
  EXPECT_EQ(commands.Register(ops, nullptr, &handle), kXSchedErrorInvalidValue) << "nothing launches it";
  ops.launch = [](void*, HwQueueHandle) { return kXSchedSuccess; };
  ASSERT_EQ(commands.Register(ops, nullptr, &handle), kXSchedSuccess);
  EXPECT_EQ(commands.Get(handle)->handle, handle);
  EXPECT_FALSE(commands.WasConsumed(handle));
  commands.Consume(handle);
  EXPECT_TRUE(commands.WasConsumed(handle));
  EXPECT_FALSE(commands.Get(handle));
  EXPECT_FALSE(commands.Remove(handle));
}

}  // namespace
}  // namespace xsched::preempt
