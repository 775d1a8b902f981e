#include "preempt/scheduling/attendant.h"

#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "preempt/queue/testing/fake_process.h"

namespace xsched::preempt::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

// What happens when a host gate is opened, and what the drivers did, in order.
std::function<void()> on_open;
std::vector<std::string> done;

class AttendantTest : public FakeProcess {
 protected:
  AttendantTest() {
    on_open = nullptr;
    done.clear();
    gated_.ops.open_gate = [](void* self, uint64_t gate) {
      if (static_cast<FakeHwQueue*>(self)->refuses_opening) return kXSchedErrorHardware;
      static_cast<FakeHwQueue*>(self)->opened = gate;
      done.push_back("open");
      if (on_open) std::exchange(on_open, nullptr)();
      return kXSchedSuccess;
    };
    stopped_.ops.reactivate = [](void* self) {
      auto& driver = *static_cast<FakeHwQueue*>(self);
      if (driver.refuses_control) return kXSchedErrorHardware;
      driver.deactivated = false;
      done.push_back("reactivate");
      return kXSchedSuccess;
    };
  }
  TimePoint Attend(Duration later = {}) {
    fake_now += later;
    return attendant_.Attend(fake_now);
  }

  FakeDriver gated_{kGatingHostGates};
  FakeDriver stopped_{kGatingHostGates, kPreemptLevelDeactivate};
  FakeDriver device_{kGatingDeviceGates};
  ProcessSlices slices_;
  Attendant attendant_{table, urgencies, slices_, *this};
};

TEST_F(AttendantTest, where_nothing_is_to_be_given_back_there_is_no_next_time) {
  Make(gated_);
  EXPECT_EQ(Attend(), kNever);
  EXPECT_TRUE(attendant_.AttendLast(fake_now));
}

TEST_F(AttendantTest, all_queues_run_again_on_the_device_before_the_first_gate_is_opened) {
  XQueue& gated = Make(gated_);
  XQueue& stopped = Make(stopped_, kPreemptLevelDeactivate);
  Hold(gated);
  Launch(gated_);
  Hold(stopped);
  Attend();
  ASSERT_TRUE(stopped_.deactivated);
  LetRun(gated);
  LetRun(stopped);
  Attend();
  EXPECT_THAT(done, ElementsAre("reactivate", "open"));
}

TEST_F(AttendantTest, what_the_driver_does_not_give_back_is_tried_again_less_and_less_often) {
  XQueue& queue = Make(stopped_, kPreemptLevelDeactivate);
  Hold(queue);
  Attend();
  LetRun(queue);
  stopped_.refuses_control = true;
  EXPECT_EQ(Attend() - fake_now, milliseconds(5));
  EXPECT_EQ(Attend(milliseconds(5)) - fake_now, milliseconds(10));
  EXPECT_FALSE(attendant_.AttendLast(fake_now));
  stopped_.refuses_control = false;
  EXPECT_EQ(Attend(milliseconds(10)), kNever);
  EXPECT_FALSE(stopped_.deactivated);
}

TEST_F(AttendantTest, a_gate_that_the_driver_does_not_open_is_tried_again) {
  XQueue& queue = Make(gated_);
  Hold(queue);
  Launch(gated_, 3);
  LetRun(queue);
  gated_.refuses_opening = true;
  EXPECT_EQ(Attend(), fake_now + milliseconds(1));
  EXPECT_FALSE(attendant_.AttendLast(fake_now));
  Run(gated_);
  EXPECT_TRUE(gated_.ran.empty());
  gated_.refuses_opening = false;
  Attend(milliseconds(1));
  Run(gated_);
  EXPECT_FALSE(gated_.ran.empty());
}

TEST_F(AttendantTest, a_time_slice_that_the_hal_does_not_set_is_tried_again) {
  static bool refuses;
  refuses = true;
  XProcessOps ops{};
  ops.size = sizeof ops;
  ops.set_slice = [](XDevice, uint64_t) { return refuses ? kXSchedErrorHardware : kXSchedSuccess; };
  ops.refresh = [] {};
  slices_.Use(ops);
  slices_.Want(5, 1000);
  EXPECT_LT(Attend(), kNever);
  EXPECT_FALSE(attendant_.AttendLast(fake_now));
  refuses = false;
  EXPECT_EQ(Attend(milliseconds(200)), kNever);
}

TEST_F(AttendantTest, it_does_not_wait_for_a_thread_that_opens_gates) {
  XQueue& queue = Make(gated_);
  Hold(queue);
  Launch(gated_, 5);
  LetRun(queue);
  TimePoint again{};
  on_open = [&] { std::thread([&] { again = Attend(); }).join(); };
  Attend();
  EXPECT_EQ(again, kNever);
}

// It might not return from the driver.
TEST_F(AttendantTest, the_thread_that_ends_the_process_opens_no_gate) {
  XQueue& queue = Make(gated_);
  Hold(queue);
  Launch(gated_);
  state.ShutDown();
  EXPECT_FALSE(attendant_.AttendLast(fake_now));
  EXPECT_THAT(done, ElementsAre());
  Attend();
  EXPECT_THAT(done, ElementsAre("open"));
  EXPECT_TRUE(attendant_.AttendLast(fake_now));
}

TEST_F(AttendantTest, a_queue_that_has_drained_is_destroyed) {
  XQueue& queue = Make(gated_);
  gated_.ops.retain = [](void*) {};
  const XQueueHandle handle = queue.handle();
  queue.state().SetDraining(true);
  Attend();
  EXPECT_FALSE(table.Pin(handle));
  EXPECT_THAT(requests, ElementsAre(Requested{queue.index(), kFinish})) << "this thread calls no driver";
  table.Finish(queue.index());
}

TEST_F(AttendantTest, a_driver_is_asked_about_a_draining_queue_whose_device_reports_by_itself) {
  XQueue& queue = Make(device_);
  Schedule(queue, ipc::kGateRun, ipc::kFlagTracked);
  fake_now += milliseconds(10);
  Launch(device_);
  queue.state().SetDraining(true);
  Attend();
  EXPECT_THAT(requests, ElementsAre(Requested{queue.index(), kProgress}));
  queue.RetiredUpTo(1);
}

TEST_F(AttendantTest, drivers_are_asked_for_new_urgencies) {
  gated_.ops.apply_urgency = [](void*) { return kXSchedSuccess; };
  XQueue& queue = Make(gated_);
  Make(stopped_);
  sched::Hints hints = queue.hints();
  hints.priority = 3;
  queue.SetHints(hints);
  urgencies.Changed();
  Attend();
  EXPECT_THAT(requests, ElementsAre(Requested{queue.index(), kUrgency}));
}

}  // namespace
}  // namespace xsched::preempt::testing
