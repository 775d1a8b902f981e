// The XQueue API over the software device: a program that manages its queues itself.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "xsched/soft/hal.h"
#include "xsched/xsched.h"

namespace {

using std::chrono::milliseconds;

constexpr int64_t kMillisecond = 1000;  // in SoftLaunch's unit

class XQueueApi : public testing::TestWithParam<XPreemptLevel> {
 protected:
  void SetUp() override {
    ASSERT_EQ(XHintSetScheduler(kSchedulerAppManaged, kPolicyUnknown), kXSchedSuccess);
    ASSERT_EQ(SoftQueueCreate(&hwq_, 0, kPreemptLevelInterrupt), kXSchedSuccess);
    ASSERT_EQ(XQueueCreate(&xqueue_, hwq_, GetParam(), kQueueCreateFlagNone), kXSchedSuccess);
  }
  void TearDown() override {
    XQueueDestroy(xqueue_);
    HwQueueDestroy(hwq_);
  }

  void Launch(int count, int64_t duration_us = kMillisecond) {
    for (int i = 0; i < count; ++i)
      ASSERT_EQ(SoftLaunch(hwq_, duration_us, nullptr, nullptr), kXSchedSuccess);
  }
  uint64_t Finished() {
    uint64_t finished = 0;
    SoftQueueReport(hwq_, &finished, nullptr);
    return finished;
  }
  // The number of commands that finish in `time` from now.
  uint64_t FinishedIn(milliseconds time) {
    uint64_t before = Finished();
    std::this_thread::sleep_for(time);
    return Finished() - before;
  }

  HwQueueHandle hwq_ = 0;
  XQueueHandle xqueue_ = 0;
};

using EveryLevel = XQueueApi;

TEST_P(EveryLevel, a_suspended_queue_takes_commands_and_runs_them_when_resumed) {
  ASSERT_EQ(XQueueSuspend(xqueue_, kQueueSuspendFlagNone), kXSchedSuccess);
  Launch(50);
  EXPECT_EQ(FinishedIn(milliseconds(60)), 0u);
  ASSERT_EQ(XQueueResume(xqueue_, kQueueResumeFlagNone), kXSchedSuccess);
  ASSERT_EQ(SoftSynchronize(hwq_), kXSchedSuccess);
  EXPECT_EQ(Finished(), 50u);
}

TEST_P(EveryLevel, after_a_suspend_that_waits_for_the_hardware_queue_nothing_runs) {
  Launch(100);
  ASSERT_EQ(XQueueSuspend(xqueue_, kQueueSuspendFlagSyncHwQueue), kXSchedSuccess);
  uint64_t finished = Finished();
  if (GetParam() == kPreemptLevelBlock) {
    EXPECT_EQ(finished, 100u) << "all were in flight: nobody else's queue bounded them";
  } else {
    EXPECT_LT(finished, 100u);
  }
  EXPECT_EQ(FinishedIn(milliseconds(60)), 0u);
  XQueueResume(xqueue_, kQueueResumeFlagNone);
  SoftSynchronize(hwq_);
  EXPECT_EQ(Finished(), 100u);
}

TEST_P(EveryLevel, after_a_suspend_what_was_submitted_and_not_launched_waits) {
  HwCommandHandle command = 0;
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(SoftCommandCreate(&command, kMillisecond), kXSchedSuccess);
    ASSERT_EQ(XQueueSubmit(xqueue_, command), kXSchedSuccess);
    EXPECT_EQ(HwCommandDestroy(command), kXSchedSuccess);
  }
  ASSERT_EQ(XQueueSuspend(xqueue_, kQueueSuspendFlagSyncHwQueue), kXSchedSuccess);
  EXPECT_LE(Finished(), 50u) << "submitted commands are launched a few at a time at every level";
  EXPECT_EQ(FinishedIn(milliseconds(60)), 0u);
  ASSERT_EQ(XQueueResume(xqueue_, kQueueResumeFlagNone), kXSchedSuccess);
  ASSERT_EQ(XQueueWaitAll(xqueue_), kXSchedSuccess);
  EXPECT_EQ(Finished(), 100u);
}

TEST_P(EveryLevel, a_suspend_that_waits_for_all_or_for_idleness_lets_everything_finish_first) {
  for (int64_t flag : {kQueueSuspendFlagWaitAll, kQueueSuspendFlagWaitIdle}) {
    uint64_t before = Finished();
    Launch(30);
    ASSERT_EQ(XQueueSuspend(xqueue_, flag), kXSchedSuccess);
    EXPECT_EQ(Finished() - before, 30u);
    Launch(5);
    EXPECT_EQ(FinishedIn(milliseconds(30)), 0u) << "and then it is suspended";
    ASSERT_EQ(XQueueResume(xqueue_, kQueueResumeFlagNone), kXSchedSuccess);
    SoftSynchronize(hwq_);
  }
}

TEST_P(EveryLevel, suspending_and_resuming_twice_is_once) {
  for (int i = 0; i < 2; ++i) EXPECT_EQ(XQueueSuspend(xqueue_, kQueueSuspendFlagNone), kXSchedSuccess);
  Launch(3);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(XQueueResume(xqueue_, kQueueResumeFlagNone), kXSchedSuccess);
  SoftSynchronize(hwq_);
  EXPECT_EQ(Finished(), 3u);
}

TEST_P(EveryLevel, commands_that_were_submitted_and_not_launched_can_be_dropped) {
  ASSERT_EQ(XQueueSuspend(xqueue_, kQueueSuspendFlagSyncHwQueue), kXSchedSuccess);
  std::vector<HwCommandHandle> commands(20);
  for (HwCommandHandle& command : commands) {
    ASSERT_EQ(SoftCommandCreate(&command, kMillisecond), kXSchedSuccess);
    ASSERT_EQ(XQueueSubmit(xqueue_, command), kXSchedSuccess);
  }
  EXPECT_EQ(XQueueSubmit(xqueue_, commands[0]), kXSchedErrorNotAllowed) << "it was submitted already";
  ASSERT_EQ(XQueueResume(xqueue_, kQueueResumeFlagDropCommands), kXSchedSuccess);
  ASSERT_EQ(XQueueWaitAll(xqueue_), kXSchedSuccess);
  EXPECT_EQ(Finished(), 0u);
  EXPECT_EQ(XQueueWait(xqueue_, commands[0]), kXSchedErrorNotFound);
  for (HwCommandHandle command : commands) EXPECT_EQ(HwCommandDestroy(command), kXSchedSuccess);
}

TEST_P(EveryLevel, waiting_for_a_command_returns_when_it_has_finished) {
  std::vector<HwCommandHandle> commands(20);
  for (HwCommandHandle& command : commands) {
    SoftCommandCreate(&command, kMillisecond);
    ASSERT_EQ(XQueueSubmit(xqueue_, command), kXSchedSuccess);
  }
  ASSERT_EQ(XQueueWait(xqueue_, commands[9]), kXSchedSuccess);
  EXPECT_GE(Finished(), 10u);
  ASSERT_EQ(XQueueWaitAll(xqueue_), kXSchedSuccess);
  EXPECT_EQ(Finished(), 20u);
  XQueueState state = kQueueStateUnknown;
  ASSERT_EQ(XQueueQuery(xqueue_, &state), kXSchedSuccess);
  EXPECT_EQ(state, kQueueStateIdle);
  int64_t count = 0;
  ASSERT_EQ(XQueueProfileHwCommandCount(xqueue_, &count), kXSchedSuccess);
  EXPECT_EQ(count, 20);
  HwCommandHandle never_submitted = 0;
  SoftCommandCreate(&never_submitted, kMillisecond);
  EXPECT_EQ(XQueueWait(xqueue_, never_submitted), kXSchedErrorNotAllowed);
  HwCommandDestroy(never_submitted);
  for (HwCommandHandle command : commands) HwCommandDestroy(command);
}

TEST_P(EveryLevel, commands_that_have_finished_are_given_back_though_the_program_destroys_none) {
  constexpr int kMany = 20000;
  HwCommandHandle first = 0;
  HwCommandHandle last = 0;
  std::set<uint32_t> places;  // parts of the handles that name a slot
  for (int i = 0; i < kMany; ++i) {
    ASSERT_EQ(SoftCommandCreate(&last, 0), kXSchedSuccess);
    if (i == 0) first = last;
    places.insert(static_cast<uint32_t>(last & 0xffffffu));
    ASSERT_EQ(XQueueSubmit(xqueue_, last), kXSchedSuccess);
    if (i % 100 == 0) XQueueWaitAll(xqueue_);
  }
  ASSERT_EQ(XQueueWait(xqueue_, last), kXSchedSuccess);
  EXPECT_LT(places.size(), 1000u);
  // Calls that work with a finished command.
  EXPECT_EQ(XQueueWait(xqueue_, first), kXSchedSuccess);
  EXPECT_EQ(XQueueSubmit(xqueue_, first), kXSchedErrorNotAllowed);
  EXPECT_EQ(HwCommandDestroy(first), kXSchedSuccess);
  EXPECT_EQ(HwCommandDestroy(last), kXSchedSuccess);
}

TEST_P(EveryLevel, waiting_goes_on_while_the_queue_is_suspended) {
  XQueueSuspend(xqueue_, kQueueSuspendFlagNone);
  Launch(1);
  HwCommandHandle command = 0;
  SoftCommandCreate(&command, kMillisecond);
  XQueueSubmit(xqueue_, command);
  std::atomic<int> returned = 0;
  std::thread one([&] { EXPECT_EQ(XQueueWait(xqueue_, command), kXSchedSuccess), ++returned; });
  std::thread all([&] { EXPECT_EQ(XQueueWaitAll(xqueue_), kXSchedSuccess), ++returned; });
  std::thread program([&] { EXPECT_EQ(SoftSynchronize(hwq_), kXSchedSuccess), ++returned; });
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(returned, 0);
  XQueueResume(xqueue_, kQueueResumeFlagNone);
  one.join();
  all.join();
  program.join();
  HwCommandDestroy(command);
}

TEST_P(EveryLevel, destroying_a_suspended_queue_lets_its_commands_run) {
  XQueueSuspend(xqueue_, kQueueSuspendFlagNone);
  Launch(20);
  EXPECT_EQ(HwQueueDestroy(hwq_), kXSchedErrorNotAllowed) << "its XQueue must go first";
  ASSERT_EQ(XQueueDestroy(xqueue_), kXSchedSuccess);
  ASSERT_EQ(SoftSynchronize(hwq_), kXSchedSuccess);
  EXPECT_EQ(Finished(), 20u);
}

INSTANTIATE_TEST_SUITE_P(Level, EveryLevel,
                         testing::Values(kPreemptLevelBlock, kPreemptLevelDeactivate, kPreemptLevelInterrupt),
                         [](const auto& tested) { return std::to_string(tested.param); });

using PreemptLevels = XQueueApi;

TEST_P(PreemptLevels, each_stops_what_it_promises_and_loses_nothing) {
  Launch(4, 250 * kMillisecond);
  std::this_thread::sleep_for(milliseconds(20));  // one runs, and the others are launched
  uint64_t before = Finished();
  ASSERT_EQ(XQueueSuspend(xqueue_, kQueueSuspendFlagSyncHwQueue), kXSchedSuccess);
  uint64_t finished = Finished();
  if (GetParam() == kPreemptLevelBlock) {
    EXPECT_EQ(finished, 4u);
  } else {
    EXPECT_EQ(finished - before, GetParam() == kPreemptLevelDeactivate ? 1u : 0u);
  }
  EXPECT_EQ(FinishedIn(milliseconds(300)), 0u);
  XQueueResume(xqueue_, kQueueResumeFlagNone);
  EXPECT_EQ(HwQueueSynchronize(hwq_), kXSchedSuccess);
  EXPECT_EQ(Finished(), 4u);
}

INSTANTIATE_TEST_SUITE_P(Level, PreemptLevels,
                         testing::Values(kPreemptLevelBlock, kPreemptLevelDeactivate, kPreemptLevelInterrupt),
                         [](const auto& tested) { return std::to_string(tested.param); });

// What follows is as in XSched 1.2, whose programs do not check results.

TEST(Levels, for_one_that_a_queue_does_not_have_it_gets_the_best_below) {
  for (XPreemptLevel has : {kPreemptLevelBlock, kPreemptLevelDeactivate}) {
    HwQueueHandle hwq = 0;
    ASSERT_EQ(SoftQueueCreate(&hwq, 0, has), kXSchedSuccess);
    XQueueHandle xqueue = 0;
    ASSERT_EQ(XQueueCreate(&xqueue, hwq, kPreemptLevelInterrupt, 0), kXSchedSuccess);
    EXPECT_EQ(XQueueSetPreemptLevel(xqueue, kPreemptLevelInterrupt), kXSchedSuccess);
    XPreemptLevel level = kPreemptLevelUnknown;
    EXPECT_EQ(XQueueGetPreemptLevel(xqueue, &level), kXSchedSuccess);
    EXPECT_EQ(level, has);
    for (int i = 0; i < 4; ++i) SoftLaunch(hwq, 100 * kMillisecond, nullptr, nullptr);
    std::this_thread::sleep_for(milliseconds(20));
    ASSERT_EQ(XQueueSuspend(xqueue, kQueueSuspendFlagSyncHwQueue), kXSchedSuccess);
    uint64_t finished = 0;
    SoftQueueReport(hwq, &finished, nullptr);
    EXPECT_EQ(finished, has == kPreemptLevelBlock ? 4u : 1u);
    EXPECT_EQ(XQueueDestroy(xqueue), kXSchedSuccess);
    EXPECT_EQ(HwQueueSynchronize(hwq), kXSchedSuccess);
    EXPECT_EQ(HwQueueDestroy(hwq), kXSchedSuccess);
  }
}

TEST(Creation, a_second_one_returns_the_queue_that_there_is_and_hints_reach_it) {
  HwQueueHandle hwq = 0;
  ASSERT_EQ(SoftQueueCreate(&hwq, 0, kPreemptLevelInterrupt), kXSchedSuccess);
  XQueueHandle first = 0;
  XQueueHandle second = 0xbad;
  ASSERT_EQ(XQueueCreate(&first, hwq, kPreemptLevelBlock, 0), kXSchedSuccess);
  ASSERT_EQ(XQueueCreate(&second, hwq, kPreemptLevelInterrupt, 0), kXSchedSuccess);
  EXPECT_EQ(second, first);
  EXPECT_EQ(XHintPriority(second, 3), kXSchedSuccess);
  EXPECT_EQ(XQueueDestroy(second), kXSchedSuccess);
  ASSERT_EQ(XQueueCreate(&second, hwq, kPreemptLevelBlock, 0), kXSchedSuccess) << "there is none any more";
  EXPECT_NE(second, first);
  EXPECT_EQ(XQueueDestroy(second), kXSchedSuccess);
  EXPECT_EQ(HwQueueDestroy(hwq), kXSchedSuccess);
}

TEST(Creation, one_that_fails_leaves_no_handle_that_a_program_could_use) {
  XQueueHandle xqueue = 0xbad;
  EXPECT_EQ(XQueueCreate(&xqueue, 1, kPreemptLevelBlock, 0), kXSchedErrorNotFound);
  EXPECT_EQ(xqueue, 0u);
}

class Commands : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(SoftQueueCreate(&hwq_, 0, kPreemptLevelBlock), kXSchedSuccess); }
  void TearDown() override { HwQueueDestroy(hwq_); }

  HwCommandHandle Create() {
    HwCommandHandle command = 0;
    auto count = [](HwQueueHandle, void* launches) {
      ++*static_cast<int*>(launches);
      return kXSchedSuccess;
    };
    EXPECT_EQ(HwCommandCreateCallback(&command, count, &launches_), kXSchedSuccess);
    return command;
  }

  HwQueueHandle hwq_ = 0;
  int launches_ = 0;
};

TEST_F(Commands, those_that_are_launched_are_consumed) {
  std::set<uint32_t> places;  // parts of the handles that name a slot
  for (int i = 0; i < 1000; ++i) {
    HwCommandHandle command = Create();
    places.insert(static_cast<uint32_t>(command & 0xffffffu));
    ASSERT_EQ(HwQueueLaunch(hwq_, command), kXSchedSuccess);
    EXPECT_EQ(HwQueueLaunch(hwq_, command), kXSchedErrorNotFound);
    EXPECT_EQ(HwCommandKeep(command), kXSchedErrorNotAllowed) << "too late";
    EXPECT_EQ(HwCommandDestroy(command), kXSchedSuccess) << "not needed, and no error";
  }
  EXPECT_EQ(places.size(), 1u);
  EXPECT_EQ(launches_, 1000);
}

TEST_F(Commands, those_that_are_kept_can_be_launched_until_they_are_destroyed) {
  HwCommandHandle command = Create();
  ASSERT_EQ(HwCommandKeep(command), kXSchedSuccess);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(HwQueueLaunch(hwq_, command), kXSchedSuccess);
  EXPECT_EQ(launches_, 3);
  EXPECT_EQ(HwCommandDestroy(command), kXSchedSuccess);
  EXPECT_EQ(HwQueueLaunch(hwq_, command), kXSchedErrorNotFound);
}

TEST_F(Commands, those_that_were_submitted_and_kept_can_be_waited_for_until_they_are_destroyed) {
  XQueueHandle xqueue = 0;
  ASSERT_EQ(XQueueCreate(&xqueue, hwq_, kPreemptLevelBlock, 0), kXSchedSuccess);
  HwCommandHandle kept = Create();
  ASSERT_EQ(HwCommandKeep(kept), kXSchedSuccess);
  ASSERT_EQ(XQueueSubmit(xqueue, kept), kXSchedSuccess);
  HwCommandHandle other = Create();
  ASSERT_EQ(XQueueSubmit(xqueue, other), kXSchedSuccess);
  ASSERT_EQ(XQueueWaitAll(xqueue), kXSchedSuccess);
  ASSERT_EQ(XQueueDestroy(xqueue), kXSchedSuccess);
  EXPECT_EQ(HwQueueLaunch(hwq_, kept), kXSchedSuccess) << "it is still there";
  EXPECT_EQ(HwQueueLaunch(hwq_, other), kXSchedErrorNotFound);
  EXPECT_EQ(HwCommandDestroy(kept), kXSchedSuccess);
  EXPECT_EQ(launches_, 3);
}

TEST_F(Commands, those_that_are_submitted_cannot_be_launched_by_another_call) {
  XQueueHandle xqueue = 0;
  ASSERT_EQ(XQueueCreate(&xqueue, hwq_, kPreemptLevelBlock, 0), kXSchedSuccess);
  ASSERT_EQ(XQueueSuspend(xqueue, 0), kXSchedSuccess);
  HwCommandHandle command = Create();
  ASSERT_EQ(XQueueSubmit(xqueue, command), kXSchedSuccess);
  EXPECT_EQ(HwQueueLaunch(hwq_, command), kXSchedErrorNotAllowed);
  ASSERT_EQ(XQueueResume(xqueue, 0), kXSchedSuccess);
  EXPECT_EQ(XQueueWait(xqueue, command), kXSchedSuccess);
  EXPECT_EQ(XQueueDestroy(xqueue), kXSchedSuccess);
  EXPECT_EQ(launches_, 1);
}

TEST(Handles, stale_and_made_up_ones_are_errors_for_every_function) {
  HwQueueHandle stale_hwq = 0;
  XQueueHandle stale_xqueue = 0;
  HwCommandHandle stale_command = 0;
  ASSERT_EQ(SoftQueueCreate(&stale_hwq, 0, kPreemptLevelInterrupt), kXSchedSuccess);
  ASSERT_EQ(XQueueCreate(&stale_xqueue, stale_hwq, kPreemptLevelBlock, 0), kXSchedSuccess);
  ASSERT_EQ(SoftCommandCreate(&stale_command, 1), kXSchedSuccess);
  ASSERT_EQ(HwCommandDestroy(stale_command), kXSchedSuccess);
  ASSERT_EQ(XQueueDestroy(stale_xqueue), kXSchedSuccess);
  ASSERT_EQ(HwQueueDestroy(stale_hwq), kXSchedSuccess);
  // An existing queue, so that not every handle is unknown.
  HwQueueHandle hwq = 0;
  XQueueHandle xqueue = 0;
  HwCommandHandle command = 0;
  SoftQueueCreate(&hwq, 0, kPreemptLevelInterrupt);
  XQueueCreate(&xqueue, hwq, kPreemptLevelBlock, 0);
  SoftCommandCreate(&command, 1);

  auto of_every_value = [](uint64_t stale, const char* name, const std::function<XResult(uint64_t)>& call) {
    for (uint64_t handle : {uint64_t{0}, stale, ~uint64_t{0}, uint64_t{0xdeadbeef}, uint64_t{1} << 63}) {
      EXPECT_EQ(call(handle), kXSchedErrorNotFound) << name << " of " << handle;
    }
  };
#define OF_XQUEUE(...) \
  of_every_value(stale_xqueue, #__VA_ARGS__, [&](uint64_t handle) { return __VA_ARGS__; })
#define OF_HWQUEUE(...) of_every_value(stale_hwq, #__VA_ARGS__, [&](uint64_t handle) { return __VA_ARGS__; })
#define OF_COMMAND(...) \
  of_every_value(stale_command, #__VA_ARGS__, [&](uint64_t handle) { return __VA_ARGS__; })
  XQueueHandle made = 0;
  XQueueState state = kQueueStateUnknown;
  int64_t count = 0;
  OF_XQUEUE(XQueueDestroy(handle));
  OF_XQUEUE(XQueueSetPreemptLevel(handle, kPreemptLevelBlock));
  XPreemptLevel level = kPreemptLevelUnknown;
  OF_XQUEUE(XQueueGetPreemptLevel(handle, &level));
  OF_XQUEUE(XQueueSetLaunchConfig(handle, 8, 4));
  OF_XQUEUE(XQueueSubmit(handle, command));
  OF_XQUEUE(XQueueWait(handle, command));
  OF_XQUEUE(XQueueWaitAll(handle));
  OF_XQUEUE(XQueueQuery(handle, &state));
  OF_XQUEUE(XQueueSuspend(handle, 0));
  OF_XQUEUE(XQueueResume(handle, 0));
  OF_XQUEUE(XQueueProfileHwCommandCount(handle, &count));
  OF_XQUEUE(XHintPriority(handle, 1));
  OF_XQUEUE(XHintUtilization(handle, 50));
  OF_XQUEUE(XHintLaxity(handle, 100, 1, 2));
  OF_XQUEUE(XHintDeadline(handle, 100));
  OF_HWQUEUE(XQueueCreate(&made, handle, kPreemptLevelBlock, 0));
  OF_HWQUEUE(XQueueGet(&made, handle));
  OF_HWQUEUE(HwQueueDestroy(handle));
  OF_HWQUEUE(HwQueueLaunch(handle, command));
  OF_HWQUEUE(HwQueueSynchronize(handle));
  OF_HWQUEUE(SoftLaunch(handle, 1, nullptr, nullptr));
  OF_HWQUEUE(SoftSynchronize(handle));
  OF_HWQUEUE(SoftQueueReport(handle, nullptr, nullptr));
  OF_COMMAND(XQueueSubmit(xqueue, handle));
  OF_COMMAND(XQueueWait(xqueue, handle));
  OF_COMMAND(HwQueueLaunch(hwq, handle));
  OF_COMMAND(HwCommandDestroy(handle));

  EXPECT_EQ(HwCommandDestroy(command), kXSchedSuccess);
  EXPECT_EQ(XQueueDestroy(xqueue), kXSchedSuccess);
  EXPECT_EQ(HwQueueDestroy(hwq), kXSchedSuccess);
}

TEST(Handles, a_hardware_queue_can_be_destroyed_right_after_its_xqueue) {
  // With a scheduler there is the agent's thread. A hint wakes it, and it may use the queue at this time.
  ASSERT_EQ(XHintSetScheduler(kSchedulerLocal, kPolicyHighestPriorityFirst), kXSchedSuccess);
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    HwQueueHandle hwq = 0;
    XQueueHandle xqueue = 0;
    ASSERT_EQ(SoftQueueCreate(&hwq, 0, kPreemptLevelInterrupt), kXSchedSuccess);
    ASSERT_EQ(XQueueCreate(&xqueue, hwq, kPreemptLevelInterrupt, kQueueCreateFlagNone), kXSchedSuccess);
    ASSERT_EQ(XHintPriority(xqueue, i % 2), kXSchedSuccess);
    ASSERT_EQ(XQueueDestroy(xqueue), kXSchedSuccess);
    refused += HwQueueDestroy(hwq) != kXSchedSuccess;
  }
  EXPECT_EQ(refused, 0);
}

TEST(Arguments, null_pointers_and_levels_that_are_none_are_invalid) {
  HwQueueHandle hwq = 0;
  XQueueHandle xqueue = 0;
  ASSERT_EQ(SoftQueueCreate(&hwq, 0, kPreemptLevelInterrupt), kXSchedSuccess);
  EXPECT_EQ(XQueueCreate(nullptr, hwq, kPreemptLevelBlock, 0), kXSchedErrorInvalidValue);
  EXPECT_EQ(XQueueCreate(&xqueue, hwq, kPreemptLevelMax, 0), kXSchedErrorInvalidValue);
  ASSERT_EQ(XQueueCreate(&xqueue, hwq, kPreemptLevelBlock, 0), kXSchedSuccess);
  EXPECT_EQ(XQueueGet(nullptr, hwq), kXSchedErrorInvalidValue);
  EXPECT_EQ(XQueueQuery(xqueue, nullptr), kXSchedErrorInvalidValue);
  EXPECT_EQ(XQueueProfileHwCommandCount(xqueue, nullptr), kXSchedErrorInvalidValue);
  EXPECT_EQ(XQueueSetPreemptLevel(xqueue, kPreemptLevelMax), kXSchedErrorInvalidValue);
  EXPECT_EQ(HwCommandCreateCallback(nullptr, nullptr, nullptr), kXSchedErrorInvalidValue);
  EXPECT_EQ(SoftQueueCreate(nullptr, 0, kPreemptLevelBlock), kXSchedErrorInvalidValue);
  EXPECT_EQ(SoftCommandCreate(nullptr, 1), kXSchedErrorInvalidValue);
  EXPECT_EQ(XQueueDestroy(xqueue), kXSchedSuccess);
  EXPECT_EQ(HwQueueDestroy(hwq), kXSchedSuccess);
}

TEST(Arguments, flags_and_hints_that_xsched_1_2_accepts_are_no_errors) {
  HwQueueHandle hwq = 0;
  XQueueHandle xqueue = 0;
  ASSERT_EQ(SoftQueueCreate(&hwq, 0, kPreemptLevelInterrupt), kXSchedSuccess);
  ASSERT_EQ(XQueueCreate(&xqueue, hwq, kPreemptLevelBlock, 0x40), kXSchedSuccess);
  EXPECT_EQ(XQueueSuspend(xqueue, kQueueSuspendFlagMaskAll), kXSchedSuccess);
  EXPECT_EQ(XQueueResume(xqueue, kQueueResumeFlagMaskAll), kXSchedSuccess);
  for (Priority priority : {PRIORITY_MAX + 1, PRIORITY_NO_EXECUTE - 1})
    EXPECT_EQ(XHintPriority(xqueue, priority), kXSchedSuccess);
  EXPECT_EQ(XHintUtilization(xqueue, UTILIZATION_MAX + 1), kXSchedSuccess);
  EXPECT_EQ(XHintLaxity(xqueue, -7, PRIORITY_MIN, PRIORITY_MAX + 7), kXSchedSuccess);
  EXPECT_EQ(XHintDeadline(xqueue, -7), kXSchedSuccess);
  for (Timeslice timeslice :
       {Timeslice{0}, Timeslice{TIMESLICE_DEFAULT}, static_cast<Timeslice>(TIMESLICE_UNLIMITED)})
    EXPECT_EQ(XHintTimeslice(timeslice), kXSchedSuccess) << "also without a scheduler";
  EXPECT_EQ(XHintKDeadline(16), kXSchedSuccess) << "also without the policy";
  EXPECT_EQ(XQueueDestroy(xqueue), kXSchedSuccess);
  EXPECT_EQ(HwQueueDestroy(hwq), kXSchedSuccess);
}

}  // namespace
