#include "preempt/queue/given_work.h"

#include <gtest/gtest.h>

#include <functional>

#include "preempt/queue/testing/fake_process.h"

namespace xsched::preempt::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kContext = 77;
constexpr Duration kPatience = milliseconds(10);

// What happens while a thread naps.
std::function<void()> on_nap;

void Nap(Duration time) {
  fake_now += time;
  if (on_nap) on_nap();
}

class GivenWorkTest : public FakeProcess {
 protected:
  GivenWorkTest() { on_nap = nullptr; }

  XQueue& MakeIn(FakeDriver& driver, uint64_t context = kContext, Priority priority = 0) {
    XQueue& queue = Make(driver);
    LetRun(queue);
    queue.hwq().context = context;
    sched::Hints hints = queue.hints();
    hints.priority = priority;
    queue.SetHints(hints);
    return queue;
  }
  GivenWork Given(const AwaitedQueues& awaited = {.context = kContext}) {
    return {table, awaited, {&FakeNow, &Nap}};
  }
  // Returns how long `given` was awaited, or kNever if that gave up.
  struct Awaited {
    bool done;
    Duration time;
  };
  Awaited Await(GivenWork&& given) {
    const TimePoint start = fake_now;
    const bool done = given.Await(kPatience, *this);
    return {done, fake_now - start};
  }
  Duration AwaitNotHeld() {
    const TimePoint start = fake_now;
    Given().AwaitNotHeld(kPatience);
    return fake_now - start;
  }
  bool AnyTaken() override { return sliced_; }

  FakeDriver driver_{kGatingDeviceGates};
  FakeDriver urgent_driver_{kGatingDeviceGates};
  FakeDriver host_driver_{kGatingHostGates};
  bool sliced_ = false;
};

TEST_F(GivenWorkTest, what_has_finished_is_not_awaited) {
  MakeIn(driver_);
  Launch(driver_, 3);
  driver_.Run();
  const Awaited awaited = Await(Given());
  EXPECT_TRUE(awaited.done);
  EXPECT_EQ(awaited.time, Duration::zero());
}

TEST_F(GivenWorkTest, it_is_awaited_until_all_has_retired_as_long_as_there_is_progress) {
  XQueue& queue = MakeIn(driver_);
  Launch(driver_, 100);
  TimePoint next = fake_now + milliseconds(5);
  on_nap = [&] {
    if (fake_now < next) return;
    queue.RetiredUpTo(queue.retired() + 1);
    next = fake_now + milliseconds(5);
  };
  const Awaited awaited = Await(Given());
  EXPECT_TRUE(awaited.done);
  EXPECT_GE(awaited.time, 100 * milliseconds(5));
}

TEST_F(GivenWorkTest, what_is_launched_afterwards_is_not_awaited) {
  XQueue& queue = MakeIn(driver_);
  Launch(driver_, 2);
  GivenWork given = Given();
  Launch(driver_, 2);
  queue.RetiredUpTo(2);
  EXPECT_TRUE(Await(std::move(given)).done);
}

TEST_F(GivenWorkTest, without_progress_it_gives_up_when_its_patience_ends) {
  MakeIn(driver_);
  Launch(driver_);
  const Awaited awaited = Await(Given());
  EXPECT_FALSE(awaited.done);
  EXPECT_GE(awaited.time, kPatience);
  EXPECT_LT(awaited.time, 2 * kPatience);
}

TEST_F(GivenWorkTest, a_process_that_has_only_its_turns_gets_more_patience) {
  sliced_ = true;
  MakeIn(driver_);
  Launch(driver_);
  const Awaited awaited = Await(Given());
  EXPECT_FALSE(awaited.done);
  EXPECT_GE(awaited.time, 10 * kPatience);
}

TEST_F(GivenWorkTest, queues_that_no_scheduler_can_hold_get_less_patience) {
  sliced_ = true;
  XQueue& queue = MakeIn(driver_);
  Schedule(queue, ipc::kGateRun, ipc::kFlagTracked);
  Launch(driver_);
  const Awaited awaited = Await(Given());
  EXPECT_FALSE(awaited.done);
  EXPECT_LT(awaited.time, kPatience);
}

TEST_F(GivenWorkTest, work_that_a_scheduler_holds_is_awaited_however_long_that_takes) {
  XQueue& queue = MakeIn(driver_);
  Hold(queue);
  Launch(driver_);
  const TimePoint released = fake_now + seconds(5);
  on_nap = [&] {
    if (fake_now < released) return;
    LetRun(queue);
    driver_.Run();
  };
  const Awaited awaited = Await(Given());
  EXPECT_TRUE(awaited.done);
  EXPECT_GE(awaited.time, seconds(5));
}

TEST_F(GivenWorkTest, held_work_that_is_less_urgent_than_the_caller_may_be_is_not_awaited_for_long) {
  XQueue& queue = MakeIn(driver_);
  MakeIn(urgent_driver_, kContext, 5);
  Hold(queue);
  Launch(driver_);
  GivenWork given = Given();
  EXPECT_TRUE(given.of_several_classes());
  const Awaited awaited = Await(std::move(given));
  EXPECT_FALSE(awaited.done);
  EXPECT_LT(awaited.time, 2 * kPatience);
}

TEST_F(GivenWorkTest, equally_urgent_queues_are_of_one_class_and_so_are_none) {
  EXPECT_FALSE(Given().of_several_classes());
  MakeIn(driver_);
  MakeIn(urgent_driver_);
  EXPECT_FALSE(Given().of_several_classes());
}

TEST_F(GivenWorkTest, a_suspended_queue_is_not_awaited) {
  XQueue& queue = MakeIn(driver_);
  Launch(driver_);
  queue.Suspend(true);
  EXPECT_TRUE(Await(Given()).done);
  queue.Suspend(false);
  GivenWork given = Given();
  on_nap = [&] { queue.Suspend(true); };
  EXPECT_TRUE(Await(std::move(given)).done) << "it was suspended meanwhile";
}

TEST_F(GivenWorkTest, a_queue_that_is_destroyed_meanwhile_is_not_awaited_any_more) {
  XQueue& queue = MakeIn(driver_);
  Launch(driver_);
  on_nap = [&] { table.Destroy(queue.handle()); };
  EXPECT_TRUE(Await(Given()).done);
}

TEST_F(GivenWorkTest, queues_of_other_contexts_and_without_device_gates_are_not_awaited) {
  MakeIn(driver_, kContext + 1);
  MakeIn(host_driver_);
  Launch(driver_);
  Launch(host_driver_);
  EXPECT_TRUE(Await(Given()).done);
}

TEST_F(GivenWorkTest, queues_of_any_context_or_of_one_device_can_be_awaited) {
  MakeIn(driver_, kContext + 1);
  Launch(driver_);
  EXPECT_FALSE(Await(Given({})).done);
  EXPECT_FALSE(Await(Given({.device = 5})).done);
  EXPECT_TRUE(Await(Given({.device = 6})).done);
}

// ---- only while it is held ----

TEST_F(GivenWorkTest, work_that_runs_delays_no_call_that_may_not_wait_for_it) {
  MakeIn(driver_);
  Launch(driver_);
  EXPECT_EQ(AwaitNotHeld(), Duration::zero());
}

TEST_F(GivenWorkTest, such_a_call_waits_until_a_hold_has_ended) {
  XQueue& queue = MakeIn(driver_);
  Hold(queue);
  Launch(driver_);
  const TimePoint released = fake_now + seconds(5);
  on_nap = [&] {
    if (fake_now >= released) LetRun(queue);
  };
  EXPECT_GE(AwaitNotHeld(), seconds(5));
  EXPECT_FALSE(queue.Idle());
}

TEST_F(GivenWorkTest, such_a_call_does_not_wait_for_long_if_the_caller_may_be_more_urgent) {
  XQueue& queue = MakeIn(driver_);
  MakeIn(urgent_driver_, kContext, 5);
  Hold(queue);
  Launch(driver_);
  const Duration time = AwaitNotHeld();
  EXPECT_GE(time, kPatience);
  EXPECT_LT(time, 2 * kPatience);
}

TEST_F(GivenWorkTest, a_driver_is_not_asked_about_a_stream_that_may_be_full) {
  XQueue& queue = MakeIn(driver_);
  Launch(driver_, 700);
  driver_.Run();
  EXPECT_FALSE(Await(Given()).done);
  EXPECT_EQ(queue.retired(), 0u);
}

}  // namespace
}  // namespace xsched::preempt::testing
