#include "preempt/scheduling/gate_openers.h"

#include <gmock/gmock.h>

#include <functional>
#include <future>
#include <memory>

#include "preempt/queue/testing/fake_process.h"

namespace xsched::preempt::testing {
namespace {

using ::testing::ElementsAre;

class GateOpenersTest : public FakeProcess {
 protected:
  GateOpenersTest() {
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

TEST_F(GateOpenersTest, an_opening_that_does_not_return_keeps_no_other_queues_gate_closed) {
  // Its threads never end.
  static GateOpeners* openers;
  openers = new GateOpeners(table, &StartDetachedThread);
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
  ASSERT_TRUE(openers->Request(blocked.index())) << "again, which does not help";
  ASSERT_TRUE(openers->Request(other.index()));
  EXPECT_EQ(opened.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_TRUE(blocked.HasClosedGates());
  let_go.set_value();
  for (XQueue* queue : {&blocked, &other}) {
    const XQueuePin pin = table.Pin(queue->handle());
    table.AwaitOthers(*pin);
    EXPECT_FALSE(queue->HasClosedGates());
  }
}

}  // namespace
}  // namespace xsched::preempt::testing
