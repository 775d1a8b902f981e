#include "preempt/scheduling/gate_openers.h"

#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <thread>

#include "preempt/queue/testing/fake_process.h"

namespace xsched::preempt::testing {
namespace {

using ::testing::ElementsAre;

class GateOpenersTest : public FakeProcess {
 protected:
  GateOpenersTest() {
    threads = 0;
    for (FakeDriver* driver : {&driver_, &other_driver_}) {
      driver->ops.opening_runs_commands = true;
      driver->ops.open_gate = [](void* self, uint64_t gate) {
        auto& queue = *static_cast<FakeHwQueue*>(self);
        if (queue.on_opening) queue.on_opening();
        queue.opened = gate;
        return kXSchedSuccess;
      };
    }
  }
  // A queue with a gate that may be opened.
  XQueue& MakeGated(FakeDriver& driver) {
    XQueue& queue = Make(driver);
    Hold(queue);
    Launch(driver);
    LetRun(queue);
    EXPECT_TRUE(queue.HasClosedGates());
    return queue;
  }

  // For openers, whose threads never end, and must not use the table when it is gone.
  static int StartCounted(const char* name, void* (*main)(void*), void* argument) {
    ++threads;
    return StartDetachedThread(name, main, argument);
  }
  static void AwaitRest(GateOpeners& openers) {
    while (!openers.AtRest(threads)) std::this_thread::yield();
  }

  inline static std::atomic<uint32_t> threads;
  FakeDriver driver_{kGatingHostGates};
  FakeDriver other_driver_{kGatingHostGates};
};

TEST_F(GateOpenersTest, a_thread_that_must_not_call_the_driver_leaves_its_gates_to_others) {
  XQueue& queue = MakeGated(driver_);
  {
    const NoDriverCalls here;
    EXPECT_FALSE(queue.Attend().anything());
  }
  EXPECT_EQ(driver_.opened, 0u);
  EXPECT_THAT(requests, ElementsAre(Requested{queue.index(), kGates}));
  queue.flow().Advance();
  EXPECT_EQ(driver_.opened, 1u);
}

TEST_F(GateOpenersTest, nobody_is_asked_to_open_the_gates_of_a_held_queue) {
  XQueue& queue = MakeGated(driver_);
  Hold(queue);
  const NoDriverCalls here;
  EXPECT_FALSE(queue.Attend().anything());
  EXPECT_TRUE(requests.empty());
}

TEST_F(GateOpenersTest, a_thread_opens_gates_itself_if_no_other_one_can_be_started) {
  XQueue& queue = MakeGated(driver_);
  takes_requests = false;
  const NoDriverCalls here;
  queue.Attend();
  EXPECT_EQ(driver_.opened, 1u);
}

TEST_F(GateOpenersTest, gates_that_the_driver_refuses_to_open_are_tried_again_by_one_thread) {
  static GateOpeners* openers;
  static std::atomic<int> refusals;
  static std::atomic<bool> refuses;
  refusals = 0;
  refuses = true;
  openers = new GateOpeners(table, &StartCounted);
  driver_.ops.open_gate = [](void* self, uint64_t gate) {
    refusals += refuses;
    if (refuses) return kXSchedErrorHardware;
    static_cast<FakeHwQueue*>(self)->opened = gate;
    return kXSchedSuccess;
  };
  XQueue& queue = MakeGated(driver_);
  for (int before = 0; refusals < 50; before = refusals) {
    ASSERT_TRUE(openers->Request(queue.index()));
    while (refusals == before) std::this_thread::yield();
  }
  EXPECT_EQ(threads, 1u);
  refuses = false;
  ASSERT_TRUE(openers->Request(queue.index()));
  while (queue.HasClosedGates()) std::this_thread::yield();
  AwaitRest(*openers);
}

TEST_F(GateOpenersTest, an_opening_that_does_not_return_keeps_no_other_queues_gate_closed) {
  // Its threads never end.
  static GateOpeners* openers;
  openers = new GateOpeners(table, &StartCounted);
  std::promise<void> entered;
  std::promise<void> let_go;
  std::promise<void> opened;
  driver_.on_opening = [&] {
    entered.set_value();
    let_go.get_future().wait();
  };
  other_driver_.on_opening = [&] { opened.set_value(); };
  XQueue& blocked = MakeGated(driver_);
  XQueue& other = MakeGated(other_driver_);
  ASSERT_TRUE(openers->Request(blocked.index()));
  entered.get_future().wait();
  for (int again = 0; again < 3; ++again) ASSERT_TRUE(openers->Request(blocked.index()));
  ASSERT_TRUE(openers->Request(other.index()));
  EXPECT_EQ(opened.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_TRUE(blocked.HasClosedGates());
  let_go.set_value();
  AwaitRest(*openers);
  for (const XQueue* queue : {&blocked, &other}) EXPECT_FALSE(queue->HasClosedGates());
  EXPECT_EQ(threads, 2u) << "one of the blocked queue, however often it is requested";
}

}  // namespace
}  // namespace xsched::preempt::testing
