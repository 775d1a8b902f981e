// The C API of xsched/xqueue.h. tests/integration/xqueue_api_test.cc has what takes time.
#include "xsched/xqueue.h"

#include <gmock/gmock.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "preempt/api/settings.h"
#include "preempt/api/testing/api_test.h"
#include "preempt/queue/reentrancy_guard.h"

namespace xsched::preempt::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class XQueueApiTest : public ApiTest {
 protected:
  HwCommandHandle Callback() {
    HwCommandHandle command = 0;
    EXPECT_EQ(HwCommandCreateCallback(
                  &command,
                  [](HwQueueHandle, void* data) {
                    ++*static_cast<int*>(data);
                    return kXSchedSuccess;
                  },
                  &launched_),
              kXSchedSuccess);
    return command;
  }

  int launched_ = 0;
  FakeHwQueue gated_driver_{kGatingDeviceGates};
};

TEST_F(XQueueApiTest, a_hardware_queue_has_one_xqueue_which_it_leads_to) {
  const XQueueHandle queue = Make(driver_);
  const HwQueueHandle hwq = HwQueueFind(kPlatformOpenCL, KeyOf(driver_));
  XQueueHandle found = 0;
  EXPECT_EQ(XQueueGet(&found, hwq), kXSchedSuccess);
  EXPECT_EQ(found, queue);
  EXPECT_EQ(XQueueCreate(&found, hwq, kPreemptLevelBlock, 0), kXSchedSuccess);
  EXPECT_EQ(found, queue) << "the one that is there";
  EXPECT_EQ(HwQueueDestroy(hwq), kXSchedErrorNotAllowed) << "its XQueue would have none";
  EXPECT_EQ(XQueueDestroy(queue), kXSchedSuccess);
  EXPECT_EQ(XQueueGet(&found, hwq), kXSchedErrorNotFound);
  EXPECT_EQ(XQueueDestroy(queue), kXSchedErrorNotFound);
  EXPECT_EQ(HwQueueDestroy(hwq), kXSchedSuccess);
}

TEST_F(XQueueApiTest, a_queue_may_be_made_as_a_shim_makes_it) {
  const HwQueueHandle hwq = Register(driver_);
  XQueueHandle queue = 0;
  EXPECT_EQ(XQueueCreateAuto(&queue, hwq), kXSchedSuccess);
  EXPECT_EQ(QueueOf(driver_)->handle(), queue);
  EXPECT_EQ(QueueOf(driver_)->hints(), GetSettings().hints);
  EXPECT_EQ(QueueOf(driver_)->level(), driver_.ops.max_level) << "the best one up to that of the environment";
  XQueueHandle same = 0;
  EXPECT_EQ(XQueueCreateAuto(&same, hwq), kXSchedSuccess);
  EXPECT_EQ(same, queue);
  EXPECT_EQ(XQueueDestroy(queue), kXSchedSuccess);
  EXPECT_EQ(XQueueCreateAuto(&same, hwq + 1), kXSchedErrorNotFound);
  EXPECT_EQ(same, 0);
  EXPECT_EQ(XQueueCreateAuto(nullptr, hwq), kXSchedErrorInvalidValue);
}

TEST_F(XQueueApiTest, the_queues_of_the_process_are_listed) {
  const XQueueHandle first = Make(driver_);
  const XQueueHandle second = Make(gated_driver_);
  XQueueHandle found[3] = {};
  size_t count = 0;
  EXPECT_EQ(XQueueList(found, 3, &count), kXSchedSuccess);
  EXPECT_EQ(count, 2);
  EXPECT_THAT(found, UnorderedElementsAre(first, second, 0));
  XQueueHandle only[2] = {};
  EXPECT_EQ(XQueueList(only, 1, &count), kXSchedSuccess);
  EXPECT_EQ(count, 2) << "also those for which there was no room";
  EXPECT_EQ(only[1], 0);
  EXPECT_EQ(XQueueDestroy(first), kXSchedSuccess);
  EXPECT_EQ(XQueueList(found, 3, &count), kXSchedSuccess);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(found[0], second);
  EXPECT_EQ(XQueueList(nullptr, 0, &count), kXSchedSuccess);
  EXPECT_EQ(XQueueList(nullptr, 1, &count), kXSchedErrorInvalidValue);
  EXPECT_EQ(XQueueList(found, 3, nullptr), kXSchedErrorInvalidValue);
}

TEST_F(XQueueApiTest, a_queue_that_is_destroyed_with_gates_reports_when_the_device_has_passed_the_last) {
  const XQueueHandle queue = Make(gated_driver_);
  Launch(gated_driver_);
  EXPECT_EQ(XQueueSuspend(queue, kQueueSuspendFlagNone), kXSchedSuccess);
  const uint64_t number = QueueOf(gated_driver_)->LaunchBegin();
  QueueOf(gated_driver_)->LaunchEnd(number, true);
  ASSERT_EQ(gated_driver_.items.back().kind, FakeHwQueue::Item::kGate);
  EXPECT_EQ(XQueueDestroy(queue), kXSchedSuccess);
  EXPECT_EQ(gated_driver_.items.back().kind, FakeHwQueue::Item::kReport);
  EXPECT_EQ(gated_driver_.items.back().value, number);
}

// The program goes on with the stream, and another of its threads launches there.
TEST_F(XQueueApiTest, a_queue_that_is_destroyed_waits_for_the_launch_of_another_thread) {
  const XQueueHandle handle = Make(driver_);
  XQueue& queue = *QueueOf(driver_);
  const uint64_t number = queue.LaunchBegin();
  std::atomic<bool> destroyed{false};
  std::thread destroying([&] {
    EXPECT_EQ(XQueueDestroy(handle), kXSchedSuccess);
    destroyed = true;
  });
  while (!queue.state().destroying() && !destroyed) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(destroyed);
  queue.LaunchEnd(number, true);
  destroying.join();
}

TEST_F(XQueueApiTest, the_last_report_of_a_queue_is_behind_the_launch_that_was_under_way) {
  const XQueueHandle handle = Make(gated_driver_);
  XQueue& queue = *QueueOf(gated_driver_);
  Launch(gated_driver_);
  EXPECT_EQ(XQueueSuspend(handle, kQueueSuspendFlagNone), kXSchedSuccess);
  const uint64_t number = queue.LaunchBegin();
  ASSERT_EQ(gated_driver_.items.back().kind, FakeHwQueue::Item::kGate);
  std::thread destroying([&] { EXPECT_EQ(XQueueDestroy(handle), kXSchedSuccess); });
  while (!queue.state().destroying()) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  queue.LaunchEnd(number, true);
  destroying.join();
  EXPECT_EQ(gated_driver_.items.back().kind, FakeHwQueue::Item::kReport);
  EXPECT_EQ(gated_driver_.items.back().value, number);
}

// The driver would wait for room, and what is in flight may wait for this thread.
TEST_F(XQueueApiTest, a_queue_that_is_destroyed_puts_nothing_on_a_full_stream) {
  const XQueueHandle handle = Make(gated_driver_);
  EXPECT_EQ(XQueueSuspend(handle, kQueueSuspendFlagNone), kXSchedSuccess);
  for (int i = 0; i < 900; ++i) Launch(gated_driver_);
  const size_t reports = gated_driver_.Count(FakeHwQueue::Item::kReport);
  EXPECT_EQ(XQueueDestroy(handle), kXSchedSuccess);
  EXPECT_EQ(gated_driver_.Count(FakeHwQueue::Item::kReport), reports);
}

TEST_F(XQueueApiTest, a_queue_that_is_destroyed_by_a_callback_of_its_launch_does_not_wait_for_it) {
  const XQueueHandle handle = Make(driver_);
  XQueue& queue = *QueueOf(driver_);
  const uint64_t number = queue.LaunchBegin();
  const TimePoint begin = MonotonicClock::now();
  {
    const ReentrancyGuard in_the_driver;
    EXPECT_EQ(XQueueDestroy(handle), kXSchedSuccess);
  }
  EXPECT_LT(MonotonicClock::now() - begin, std::chrono::milliseconds(500));
  queue.LaunchEnd(number, true);
}

TEST_F(XQueueApiTest, for_a_level_that_the_hardware_queue_has_not_it_gets_the_best_below) {
  const XQueueHandle queue = Make(driver_);
  EXPECT_EQ(XQueueSetPreemptLevel(queue, kPreemptLevelBlock), kXSchedSuccess);
  EXPECT_EQ(XQueueSetPreemptLevel(queue, kPreemptLevelInterrupt), kXSchedSuccess);
  EXPECT_EQ(QueueOf(driver_)->level(), kPreemptLevelDeactivate);
  EXPECT_EQ(XQueueSetPreemptLevel(queue, kPreemptLevelMax), kXSchedErrorInvalidValue);
  XQueueHandle other = 0;
  EXPECT_EQ(XQueueCreate(&other, Register(other_driver_), kPreemptLevelDeactivate, 0), kXSchedSuccess);
  EXPECT_EQ(QueueOf(other_driver_)->level(), kPreemptLevelBlock);
}

TEST_F(XQueueApiTest, a_launch_config_keeps_what_is_not_given_and_has_no_batch_above_its_threshold) {
  const XQueueHandle queue = Make(driver_);
  EXPECT_EQ(XQueueSetLaunchConfig(queue, 32, 4), kXSchedSuccess);
  EXPECT_EQ(XQueueSetLaunchConfig(queue, 0, 6), kXSchedSuccess);
  EXPECT_EQ(QueueOf(driver_)->config().threshold, 32);
  EXPECT_EQ(QueueOf(driver_)->config().batch_size, 6);
  EXPECT_EQ(XQueueSetLaunchConfig(queue, 5, 0), kXSchedErrorInvalidValue);
  EXPECT_EQ(QueueOf(driver_)->config().threshold, 32);
}

TEST_F(XQueueApiTest, a_suspended_queue_takes_launches_and_starts_them_when_it_is_resumed) {
  const XQueueHandle queue = Make(driver_);
  ASSERT_EQ(XQueueSuspend(queue, kQueueSuspendFlagNone), kXSchedSuccess);
  Launch(driver_);
  Run(driver_);
  EXPECT_THAT(driver_.ran, IsEmpty());
  XQueueState state = kQueueStateUnknown;
  EXPECT_EQ(XQueueQuery(queue, &state), kXSchedSuccess);
  EXPECT_EQ(state, kQueueStateReady);
  ASSERT_EQ(XQueueResume(queue, kQueueResumeFlagNone), kXSchedSuccess);
  Run(driver_);
  EXPECT_THAT(driver_.ran, ElementsAre(1));
  XQueueQuery(queue, &state);
  Run(driver_);
  EXPECT_EQ(XQueueQuery(queue, &state), kXSchedSuccess);
  EXPECT_EQ(state, kQueueStateIdle);
}

TEST_F(XQueueApiTest, a_submitted_command_is_launched_once_and_counted) {
  const XQueueHandle queue = Make(driver_);
  const HwCommandHandle command = Callback();
  EXPECT_EQ(XQueueSubmit(queue, command), kXSchedSuccess);
  EXPECT_EQ(XQueueSubmit(queue, command), kXSchedErrorNotAllowed);
  ThisProcess().queues.Pin(queue)->worker().WaitLaunched();
  EXPECT_EQ(launched_, 1);
  int64_t count = 0;
  EXPECT_EQ(XQueueProfileHwCommandCount(queue, &count), kXSchedSuccess);
  EXPECT_EQ(count, 1);
  QueueOf(driver_)->RetiredUpTo(1);
  EXPECT_EQ(XQueueWait(queue, command), kXSchedSuccess);
  EXPECT_EQ(XQueueWaitAll(queue), kXSchedSuccess);
}

// The thread that launches cannot wait for its own end.
TEST_F(XQueueApiTest, a_submitted_function_may_destroy_its_own_queue_and_what_follows_still_runs) {
  struct Shared {
    XQueueHandle queue;
    std::atomic<XResult> destroyed{kXSchedErrorUnknown};
    std::atomic<bool> followed{false};
  } shared{Make(driver_)};
  const HwQueueHandle hwq = HwQueueFind(kPlatformOpenCL, KeyOf(driver_));
  HwCommandHandle destroys = 0;
  HwCommandHandle follows = 0;
  HwCommandCreateCallback(
      &destroys,
      [](HwQueueHandle, void* data) {
        auto& all = *static_cast<Shared*>(data);
        all.destroyed = XQueueDestroy(all.queue);
        return kXSchedSuccess;
      },
      &shared);
  HwCommandCreateCallback(
      &follows,
      [](HwQueueHandle, void* data) {
        static_cast<Shared*>(data)->followed = true;
        return kXSchedSuccess;
      },
      &shared);
  ASSERT_EQ(XQueueSuspend(shared.queue, kQueueSuspendFlagNone), kXSchedSuccess);
  ASSERT_EQ(XQueueSubmit(shared.queue, destroys), kXSchedSuccess);
  ASSERT_EQ(XQueueSubmit(shared.queue, follows), kXSchedSuccess);
  ASSERT_EQ(XQueueResume(shared.queue, kQueueResumeFlagNone), kXSchedSuccess);
  const TimePoint until = MonotonicClock::now() + std::chrono::seconds(20);
  XResult gone = kXSchedErrorUnknown;
  while ((gone = HwQueueDestroy(hwq)) != kXSchedSuccess && MonotonicClock::now() < until)
    SleepFor(std::chrono::milliseconds(1));
  EXPECT_EQ(gone, kXSchedSuccess);
  EXPECT_EQ(shared.destroyed, kXSchedSuccess);
  EXPECT_TRUE(shared.followed);
}

// A launch that is under way may be held for long, while all that was launched before has finished.
TEST_F(XQueueApiTest, who_waits_until_a_queue_is_idle_uses_no_processor) {
  const XQueueHandle handle = Make(driver_);
  XQueue& queue = *QueueOf(driver_);
  const uint64_t number = queue.LaunchBegin();
  std::atomic<int64_t> used_ns{0};
  std::thread waits([&] {
    EXPECT_EQ(XQueueSuspend(handle, kQueueSuspendFlagWaitIdle), kXSchedSuccess);
    timespec used{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    used_ns = used.tv_sec * 1'000'000'000 + used.tv_nsec;
  });
  const TimePoint begin = MonotonicClock::now();
  SleepFor(std::chrono::milliseconds(200));
  queue.LaunchEnd(number, false);
  waits.join();
  const Duration passed = MonotonicClock::now() - begin;
  EXPECT_LT(used_ns, passed.count() / 4);
}

TEST_F(XQueueApiTest, a_thread_that_is_canceled_in_a_call_leaves_the_queue_to_others) {
  const XQueueHandle handle = Make(driver_);
  XQueue& queue = *QueueOf(driver_);
  const HwQueueHandle hwq = HwQueueFind(kPlatformOpenCL, KeyOf(driver_));
  const uint64_t number = queue.LaunchBegin();
  pthread_t waits{};
  ASSERT_EQ(pthread_create(
                &waits, nullptr,
                [](void* handle_of) -> void* {
                  XQueueSuspend(*static_cast<const XQueueHandle*>(handle_of), kQueueSuspendFlagWaitIdle);
                  for (;;) pause();
                },
                const_cast<XQueueHandle*>(&handle)),
            0);
  SleepFor(std::chrono::milliseconds(20));
  pthread_cancel(waits);
  SleepFor(std::chrono::milliseconds(20));
  queue.LaunchEnd(number, false);
  pthread_join(waits, nullptr);
  EXPECT_EQ(XQueueDestroy(handle), kXSchedSuccess);
  EXPECT_EQ(HwQueueDestroy(hwq), kXSchedSuccess) << "nobody uses it any more";
}

TEST_F(XQueueApiTest, what_waits_in_a_suspended_queue_can_be_dropped) {
  const XQueueHandle queue = Make(driver_);
  const HwCommandHandle command = Callback();
  ASSERT_EQ(XQueueSuspend(queue, kQueueSuspendFlagNone), kXSchedSuccess);
  ASSERT_EQ(XQueueSubmit(queue, command), kXSchedSuccess);
  ASSERT_EQ(XQueueResume(queue, kQueueResumeFlagDropCommands), kXSchedSuccess);
  EXPECT_EQ(XQueueWait(queue, command), kXSchedErrorNotFound);
  EXPECT_EQ(launched_, 0);
  EXPECT_EQ(HwCommandDestroy(command), kXSchedSuccess);
  EXPECT_EQ(HwCommandDestroy(command), kXSchedErrorNotFound);
}

TEST_F(XQueueApiTest, a_command_of_another_platform_is_invalid) {
  const XQueueHandle queue = Make(driver_);
  XHwCommandOps ops{};
  ops.size = sizeof ops;
  ops.platform = kPlatformCUDA;
  ops.launch = [](void*, HwQueueHandle) { return kXSchedSuccess; };
  HwCommandHandle command = 0;
  ASSERT_EQ(HwCommandRegister(&ops, nullptr, &command), kXSchedSuccess);
  EXPECT_EQ(XQueueSubmit(queue, command), kXSchedErrorInvalidValue);
  EXPECT_EQ(HwQueueLaunch(HwQueueFind(kPlatformOpenCL, KeyOf(driver_)), command), kXSchedErrorInvalidValue);
  EXPECT_EQ(HwCommandDestroy(command), kXSchedSuccess);
}

TEST_F(XQueueApiTest, a_command_that_is_launched_directly_is_not_counted_again_by_a_shim) {
  const HwQueueHandle hwq = Register(driver_);
  HwCommandHandle command = 0;
  bool inside = false;
  ASSERT_EQ(HwCommandCreateCallback(
                &command,
                [](HwQueueHandle, void* data) {
                  *static_cast<bool*>(data) = InsideXSched();
                  return kXSchedSuccess;
                },
                &inside),
            kXSchedSuccess);
  EXPECT_EQ(HwQueueLaunch(hwq, command), kXSchedSuccess);
  EXPECT_TRUE(inside);
  EXPECT_EQ(HwQueueSynchronize(hwq), kXSchedSuccess);
  EXPECT_THAT(driver_.calls, ElementsAre("synchronize"));
  EXPECT_EQ(HwCommandDestroy(command), kXSchedSuccess);
}

}  // namespace
}  // namespace xsched::preempt::testing
