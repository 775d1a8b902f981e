// Level 1: a thread that launches on a full or held queue waits, and our polling disturbs no stream.
#include "hal/hip/queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "hal/hip/runtime.h"
#include "hal/hip/stream_key.h"
#include "hal/hip/testing/instances.h"
#include "preempt/api/launch.h"
#include "preempt/api/stream_captures.h"
#include "xsched/hip/hal.h"
#include "xsched/xsched.h"

namespace xsched::hip {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kThreshold = 4;
constexpr int64_t kBatch = 2;

// A stream of the fake runtime with an XQueue. It launches as the shim does.
class Stream {
 public:
  Stream(const Instance& instance, Priority priority) : instance_(instance), stream_(instance.MakeStream()) {
    EXPECT_EQ(HipQueueCreate(&hwq_, stream_), kXSchedSuccess);
    MakeXQueue(priority);
  }
  // The null stream, beside a blocking one. The test lets all of it finish.
  struct BesideBlocking {};
  Stream(const Instance& instance, Priority priority, BesideBlocking)
      : instance_(instance), stream_(kHipStreamNull) {
    static const std::atomic<uint32_t> blocking_streams{1};
    const Runtime* runtime = RuntimeAt(instance.Get<void>("FakeLaunch"));
    key_ = NullStreamKey(runtime->index(), 0);
    EXPECT_EQ(HipQueueRegister(runtime, 0, stream_, key_, &blocking_streams, &hwq_), kXSchedSuccess);
    MakeXQueue(priority);
  }
  // The default stream of this thread.
  struct OfThread {};
  Stream(const Instance& instance, Priority priority, OfThread)
      : instance_(instance), stream_(kHipStreamPerThread) {
    const Runtime* runtime = RuntimeAt(instance.Get<void>("FakeLaunch"));
    key_ = PerThreadStreamKey(runtime->index(), 0, 1);
    EXPECT_EQ(HipQueueRegister(runtime, 0, stream_, key_, nullptr, &hwq_), kXSchedSuccess);
    MakeXQueue(priority);
  }
  ~Stream() {
    if (stream_ != kHipStreamNull) instance_.Finish(stream_, instance_.Launched(stream_));
    if (xqueue_ != 0) Destroy();
    if (launcher_.joinable()) launcher_.join();
    EXPECT_EQ(HwQueueDestroy(hwq_), kXSchedSuccess);
  }

  void Launch(int count) {
    for (int i = 0; i < count; ++i) {
      preempt::LaunchScope launch(preempt::FindXQueue(kPlatformHIP, key_));
      launch.Finish(instance_.Launch(stream_) == hipSuccess);
    }
  }
  void LaunchOnAnotherThread(int count) {
    launcher_ = std::thread([this, count] {
      Launch(count);
      done_ = true;
    });
  }
  void Join() { launcher_.join(); }
  void Detach() { launcher_.detach(); }
  bool done() const { return done_; }
  void Finish(uint64_t count) const { instance_.Finish(stream_, count); }
  uint64_t Launched() const { return instance_.Launched(stream_); }
  // Waits until `count` commands are launched, and checks for a moment that there are no more.
  void ExpectLaunched(uint64_t count) const {
    for (int i = 0; i < 2000 && Launched() < count; ++i) std::this_thread::sleep_for(milliseconds(5));
    std::this_thread::sleep_for(milliseconds(20));
    EXPECT_EQ(Launched(), count);
  }
  void Suspend(int64_t flags = 0) { EXPECT_EQ(XQueueSuspend(xqueue_, flags), kXSchedSuccess); }
  void Resume() { EXPECT_EQ(XQueueResume(xqueue_, 0), kXSchedSuccess); }
  void Destroy() { EXPECT_EQ(XQueueDestroy(std::exchange(xqueue_, 0)), kXSchedSuccess); }
  XQueueState State() const {
    XQueueState state = kQueueStateUnknown;
    EXPECT_EQ(XQueueQuery(xqueue_, &state), kXSchedSuccess);
    return state;
  }

  const Instance& instance() const { return instance_; }
  hipStream_t stream() const { return stream_; }
  HwQueueHandle hwq() const { return hwq_; }
  XQueueHandle xqueue() const { return xqueue_; }

 private:
  void MakeXQueue(Priority priority) {
    EXPECT_EQ(XQueueCreate(&xqueue_, hwq_, kPreemptLevelBlock, 0), kXSchedSuccess);
    EXPECT_EQ(XQueueSetLaunchConfig(xqueue_, kThreshold, kBatch), kXSchedSuccess);
    EXPECT_EQ(XHintPriority(xqueue_, priority), kXSchedSuccess);
  }

  const Instance& instance_;
  hipStream_t stream_;
  uint64_t key_ = reinterpret_cast<uint64_t>(stream_);
  HwQueueHandle hwq_ = 0;
  XQueueHandle xqueue_ = 0;
  std::thread launcher_;
  std::atomic<bool> done_{false};
};

class HipLevel1 : public testing::Test {
 protected:
  void UseLocalScheduler() {
    // The count alone bounds what is in flight, however long a command takes.
    setenv("XSCHED_PREEMPT_LATENCY_US", "10000000", 1);
    ASSERT_EQ(XHintSetScheduler(kSchedulerLocal, kPolicyHighestPriorityFirst), kXSchedSuccess);
  }
  void TearDown() override { XHintSetScheduler(kSchedulerAppManaged, kPolicyUnknown); }

  Instance instance_{kInstanceA};
};

TEST_F(HipLevel1, is_the_only_one_unless_more_is_asked_for) {
  Stream stream(instance_, 0);
  testing::internal::CaptureStderr();
  EXPECT_EQ(XQueueSetPreemptLevel(stream.xqueue(), kPreemptLevelDeactivate), kXSchedSuccess);
  EXPECT_EQ(XQueueSetPreemptLevel(stream.xqueue(), kPreemptLevelInterrupt), kXSchedSuccess);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("has no preemption level 2: using level 1"),
            std::string::npos);
}

TEST_F(HipLevel1, a_queue_that_nobody_schedules_is_not_bounded_and_asks_nothing) {
  Stream stream(instance_, 0);
  stream.Launch(1);
  const uint64_t calls = instance_.Calls();
  stream.Launch(100);
  EXPECT_EQ(instance_.Calls(), calls + 100) << "the launches themselves";
  EXPECT_EQ(instance_.Events(), 0);
}

TEST_F(HipLevel1, a_launch_on_a_suspended_queue_waits_until_it_is_resumed) {
  Stream stream(instance_, 0);
  stream.Launch(1);
  stream.Suspend();
  stream.LaunchOnAnotherThread(3);
  stream.ExpectLaunched(1);
  EXPECT_FALSE(stream.done());
  stream.Resume();
  stream.Join();
  EXPECT_EQ(stream.Launched(), 4u);
}

TEST_F(HipLevel1, suspending_waits_for_what_is_in_flight_where_that_is_asked_for) {
  Stream stream(instance_, 0);
  stream.Launch(3);
  std::thread device([&] {
    std::this_thread::sleep_for(milliseconds(20));
    stream.Finish(3);
  });
  stream.Suspend(kQueueSuspendFlagSyncHwQueue);
  EXPECT_EQ(stream.State(), kQueueStateIdle);
  device.join();
}

TEST_F(HipLevel1, what_is_in_flight_of_a_queue_that_its_program_suspends_is_bounded) {
  setenv("XSCHED_PREEMPT_LATENCY_US", "10000000", 1);
  Stream stream(instance_, 0);
  stream.Suspend();
  stream.Resume();
  stream.LaunchOnAnotherThread(20);
  for (uint64_t finished = 0; finished < 20 && !stream.done(); ++finished) {
    for (int i = 0; i < 2000 && stream.Launched() <= finished; ++i)
      std::this_thread::sleep_for(milliseconds(1));
    EXPECT_LE(stream.Launched(), finished + kThreshold);
    stream.Finish(1);
  }
  stream.Join();
  EXPECT_EQ(stream.Launched(), 20u);
}

TEST_F(HipLevel1, destroying_the_queue_ends_the_wait_of_a_launch) {
  Stream stream(instance_, 0);
  stream.Suspend();
  stream.LaunchOnAnotherThread(5);
  stream.ExpectLaunched(0);
  stream.Destroy();
  stream.Join();
  EXPECT_EQ(stream.Launched(), 5u);
}

TEST_F(HipLevel1, several_threads_that_wait_on_one_queue_all_go_on) {
  Stream stream(instance_, 0);
  stream.Suspend();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { stream.Launch(3); });
  stream.ExpectLaunched(0);
  stream.Resume();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(stream.Launched(), 12u);
}

TEST_F(HipLevel1, what_is_in_flight_of_a_queue_that_may_be_held_is_bounded) {
  UseLocalScheduler();
  Stream urgent(instance_, 1);
  Stream stream(instance_, 0);
  stream.LaunchOnAnotherThread(12);
  stream.ExpectLaunched(2);  // nothing is known of its commands so far
  stream.Finish(1);
  stream.ExpectLaunched(1 + kThreshold);
  stream.Finish(kThreshold);
  stream.ExpectLaunched(1 + 2 * kThreshold);
  stream.Finish(kThreshold);
  stream.ExpectLaunched(12);
  stream.Join();
}

TEST_F(HipLevel1, threads_that_launch_on_one_queue_share_the_bound) {
  UseLocalScheduler();
  Stream urgent(instance_, 1);
  Stream stream(instance_, 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back([&] { stream.Launch(8); });
  uint64_t finished = 0;
  while (finished < 24) {
    const uint64_t launched = stream.Launched();
    ASSERT_LE(launched - finished, static_cast<uint64_t>(kThreshold));
    if (launched > finished) {
      stream.Finish(1);
      ++finished;
    }
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(stream.Launched(), 24u);
}

TEST_F(HipLevel1, a_more_urgent_queue_holds_the_others_until_it_is_done) {
  UseLocalScheduler();
  Stream urgent(instance_, 1);
  Stream stream(instance_, 0);
  urgent.Launch(1);
  stream.LaunchOnAnotherThread(100'000);
  // The hold comes a moment later. From then on nothing is in flight that could go on.
  uint64_t seen = UINT64_MAX;
  for (uint64_t finished = 0; seen != finished; std::this_thread::sleep_for(milliseconds(20))) {
    seen = finished;
    const uint64_t launched = stream.Launched();
    stream.Finish(launched - finished);
    finished = launched;
  }
  ASSERT_FALSE(stream.done());
  urgent.Finish(1);
  while (stream.Launched() == seen) std::this_thread::yield();
  stream.Destroy();
  stream.Join();
  EXPECT_EQ(stream.Launched(), 100'000u);
}

TEST_F(HipLevel1, the_end_of_a_queue_that_others_wait_for_is_found_without_its_programs_help) {
  UseLocalScheduler();
  Stream urgent(instance_, 1);
  Stream stream(instance_, 0);
  urgent.Launch(5);  // more than a batch: some are behind the last marker
  stream.LaunchOnAnotherThread(1);
  urgent.Finish(5);
  stream.ExpectLaunched(1);
  stream.Join();
}

// On any other thread, the handle means that thread's stream, and the runtime makes one.
TEST_F(HipLevel1, a_threads_default_stream_is_looked_at_without_making_another_one) {
  UseLocalScheduler();
  Stream urgent(instance_, 1, Stream::OfThread());
  Stream stream(instance_, 0);
  urgent.Launch(4);
  stream.LaunchOnAnotherThread(1);
  urgent.Finish(4);
  stream.ExpectLaunched(1);
  stream.Join();
  EXPECT_EQ(instance_.ThreadStreams(), 1);
}

TEST_F(HipLevel1, a_runtime_that_was_loaded_later_is_not_asked_after_its_end) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        UseLocalScheduler();
        auto& first = *new Stream(instance_, 0);
        first.Launch(1);
        auto& later = *new Instance(kInstanceB);
        later.Get<decltype(FakeEndSlowly)>("FakeEndSlowly")();
        auto& urgent = *new Stream(later, 1);
        urgent.Launch(4);
        first.LaunchOnAnotherThread(1);
        first.Detach();  // the process ends while it waits
        exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(HipLevel1, the_null_stream_is_asked_without_an_effect_on_blocking_streams) {
  UseLocalScheduler();
  Stream null(instance_, 1, Stream::BesideBlocking{});
  Stream stream(instance_, 0);
  null.Launch(1);
  EXPECT_EQ(instance_.Events(), 0) << "its end is known without a marker";
  stream.LaunchOnAnotherThread(1);
  null.Finish(1);
  stream.Join();
  EXPECT_EQ(instance_.NullWaits(), 0);
}

TEST_F(HipLevel1, before_hip_6_4_the_null_stream_waits_for_others_only_behind_its_programs_launches) {
  instance_.SetVersion(60'342'133);
  UseLocalScheduler();
  Stream null(instance_, 1, Stream::BesideBlocking{});
  Stream stream(instance_, 0);
  null.Launch(1);
  EXPECT_EQ(instance_.NullWaits(), 1) << "the marker";
  stream.LaunchOnAnotherThread(1);
  null.Finish(1);
  stream.Join();
  EXPECT_EQ(instance_.NullWaits(), 1);
}

// Otherwise the two would wait for each other forever.
TEST_F(HipLevel1, a_full_queue_that_makes_no_progress_lets_its_thread_go) {
  UseLocalScheduler();
  Stream urgent(instance_, 1);
  Stream stream(instance_, 0);
  stream.LaunchOnAnotherThread(kThreshold + 3);
  stream.Join();
  EXPECT_EQ(stream.Launched(), static_cast<uint64_t>(kThreshold + 3));
}

TEST_F(HipLevel1, events_are_used_again_and_given_back) {
  UseLocalScheduler();
  {
    Stream urgent(instance_, 1);
    Stream stream(instance_, 0);
    for (int i = 0; i < 50; ++i) {
      stream.Launch(1);
      stream.Finish(1);
    }
    EXPECT_GT(instance_.Events(), 0);
    EXPECT_LE(instance_.Events(), 4);
  }
  EXPECT_EQ(instance_.Events(), 0);
}

TEST_F(HipLevel1, the_programs_device_and_last_error_stay_as_they_are) {
  UseLocalScheduler();
  Stream urgent(instance_, 1);
  Stream stream(instance_, 0);  // of device 0
  instance_.SetDevice(1);
  stream.Launch(2);
  stream.Finish(1);
  EXPECT_EQ(stream.State(), kQueueStateReady);
  int device = 0;
  EXPECT_EQ(instance_.Get<hipError_t(int*)>("hipGetDevice")(&device), hipSuccess);
  EXPECT_EQ(device, 1);
  EXPECT_EQ(stream.State(), kQueueStateReady) << "some of our calls return hipErrorNotReady";
  EXPECT_EQ(instance_.PeekAtLastError(), hipSuccess);
}

// A stream captures while it has so many commands in flight.
void CaptureAmongCommands(Instance& instance, int commands, int least_events) {
  Stream urgent(instance, 1);
  Stream stream(instance, 0);
  urgent.Launch(commands);
  ASSERT_GE(instance.Events(), least_events);
  instance.Capture(urgent.stream(), true);
  EXPECT_EQ(urgent.State(), kQueueStateReady);
  std::this_thread::sleep_for(milliseconds(20));  // the agent polls as well
  EXPECT_FALSE(instance.Spoiled());
  instance.Capture(urgent.stream(), false);
  urgent.Finish(commands);
  EXPECT_EQ(urgent.State(), kQueueStateIdle);
}

// The shim did not see that these captures began.
TEST_F(HipLevel1, a_capture_is_not_spoiled_by_our_looking) {
  UseLocalScheduler();
  CaptureAmongCommands(instance_, 1, 0);
}

TEST_F(HipLevel1, a_capture_is_not_spoiled_by_a_marker_from_before_it) {
  UseLocalScheduler();
  CaptureAmongCommands(instance_, 6, 1);  // more than a batch: some are in front of a marker
}

TEST_F(HipLevel1, before_a_capture_markers_are_put_away_and_their_events_are_used_again) {
  UseLocalScheduler();
  Stream urgent(instance_, 1);
  Stream stream(instance_, 0);
  urgent.Launch(6);
  const int events = instance_.Events();
  ASSERT_GT(events, 0);
  preempt::XQueue* queue = preempt::FindXQueue(kPlatformHIP, reinterpret_cast<uint64_t>(urgent.stream()));
  { const preempt::StreamCaptures begins(queue, true); }
  EXPECT_TRUE(queue->Idle()) << "for the scheduler";
  EXPECT_EQ(urgent.State(), kQueueStateReady) << "for the program";
  stream.Launch(1);
  urgent.Launch(6);
  urgent.Finish(12);
  EXPECT_EQ(urgent.State(), kQueueStateIdle);
  EXPECT_LE(instance_.Events(), events + 3);
}

TEST_F(HipLevel1, during_a_capture_nobody_says_that_what_was_launched_before_it_has_finished) {
  UseLocalScheduler();
  Stream stream(instance_, 0);
  stream.Launch(1);
  instance_.Capture(stream.stream(), true);
  EXPECT_EQ(XQueueWaitAll(stream.xqueue()), kXSchedErrorNotAllowed);
  EXPECT_EQ(XQueueSuspend(stream.xqueue(), kQueueSuspendFlagWaitIdle), kXSchedErrorNotAllowed);
  EXPECT_FALSE(instance_.Spoiled());
  instance_.Capture(stream.stream(), false);
  stream.Finish(1);
  EXPECT_EQ(XQueueWaitAll(stream.xqueue()), kXSchedSuccess);
}

// ---- commands that are submitted ----

struct Submission {
  const Stream& stream;
};

XResult LaunchSubmitted(HwQueueHandle, void* data) {
  const Stream& stream = static_cast<Submission*>(data)->stream;
  return stream.instance().Launch(stream.stream()) == hipSuccess ? kXSchedSuccess : kXSchedErrorHardware;
}

TEST_F(HipLevel1, submitted_commands_are_launched_as_room_is) {
  Stream stream(instance_, 0);
  Submission submission{stream};
  std::vector<HwCommandHandle> commands(10);
  for (HwCommandHandle& command : commands) {
    ASSERT_EQ(HwCommandCreateCallback(&command, LaunchSubmitted, &submission), kXSchedSuccess);
    ASSERT_EQ(XQueueSubmit(stream.xqueue(), command), kXSchedSuccess);
  }
  stream.ExpectLaunched(kThreshold);
  stream.Finish(kThreshold);
  stream.ExpectLaunched(2 * kThreshold);
  stream.Finish(kThreshold);
  stream.ExpectLaunched(10);
  stream.Finish(2);
  EXPECT_EQ(XQueueWait(stream.xqueue(), commands.back()), kXSchedSuccess);
  EXPECT_EQ(XQueueWaitAll(stream.xqueue()), kXSchedSuccess);
  EXPECT_EQ(stream.State(), kQueueStateIdle);
  for (HwCommandHandle command : commands) EXPECT_EQ(HwCommandDestroy(command), kXSchedSuccess);
}

TEST_F(HipLevel1, a_suspended_queue_takes_what_is_submitted_without_blocking) {
  Stream stream(instance_, 0);
  Submission submission{stream};
  stream.Suspend();
  HwCommandHandle command = 0;
  ASSERT_EQ(HwCommandCreateCallback(&command, LaunchSubmitted, &submission), kXSchedSuccess);
  ASSERT_EQ(XQueueSubmit(stream.xqueue(), command), kXSchedSuccess);
  stream.ExpectLaunched(0);
  stream.Resume();
  stream.ExpectLaunched(1);
  stream.Finish(1);
  EXPECT_EQ(XQueueWait(stream.xqueue(), command), kXSchedSuccess);
  EXPECT_EQ(HwCommandDestroy(command), kXSchedSuccess);
}

TEST_F(HipLevel1, what_was_submitted_has_been_launched_when_the_queue_is_gone) {
  Stream stream(instance_, 0);
  Submission submission{stream};
  stream.Suspend();
  HwCommandHandle commands[3];
  for (HwCommandHandle& command : commands) {
    ASSERT_EQ(HwCommandCreateCallback(&command, LaunchSubmitted, &submission), kXSchedSuccess);
    ASSERT_EQ(XQueueSubmit(stream.xqueue(), command), kXSchedSuccess);
  }
  std::this_thread::sleep_for(milliseconds(5));  // the worker is waiting by now
  stream.Destroy();
  EXPECT_EQ(stream.Launched(), 3u);
  for (HwCommandHandle command : commands) EXPECT_EQ(HwCommandDestroy(command), kXSchedSuccess);
}

}  // namespace
}  // namespace xsched::hip
