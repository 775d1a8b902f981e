// Gates follow the policy, whatever happens to other clients.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "base/clock.h"
#include "ipc/hints.h"
#include "sched/core/types.h"
#include "server/testing/server_fixture.h"

namespace xsched::server::testing {
namespace {

using Scheduling = ServerTest;
using namespace std::chrono_literals;

TEST_F(Scheduling, an_agent_is_welcomed_and_gets_an_id) {
  TestAgent first(socket());
  TestAgent second(socket());
  ASSERT_TRUE(first.welcome() && second.welcome());
  EXPECT_EQ(first.welcome()->major, ipc::kMajor);
  EXPECT_NE(first.welcome()->client_id, second.welcome()->client_id);
}

TEST_F(Scheduling, a_lone_queue_is_neither_tracked_nor_gated) {
  TestAgent agent(socket());
  ASSERT_TRUE(agent.CreateQueue(0, 0));
  agent.Submit(0);
  ASSERT_TRUE(agent.IsAlive());
  EXPECT_EQ(agent.block(0).flags.load(), 0u);
  EXPECT_FALSE(agent.IsHeld(0));
}

TEST_F(Scheduling, the_lower_queue_is_held_while_the_higher_one_of_another_process_has_work) {
  TestAgent high(socket());
  TestAgent low(socket());
  ASSERT_TRUE(high.CreateQueue(0, 10) && low.CreateQueue(3, 0));
  low.Submit(3);
  ASSERT_TRUE(low.IsAlive());
  EXPECT_FALSE(low.IsHeld(3));
  high.Submit(0);
  EXPECT_TRUE(Eventually([&] { return low.IsHeld(3); }));
  high.RetireAll(0);
  EXPECT_TRUE(Eventually([&] { return !low.IsHeld(3); }));
  EXPECT_FALSE(high.IsHeld(0));
}

TEST_F(Scheduling, queues_of_different_devices_do_not_wait_for_each_other) {
  TestAgent high(socket());
  TestAgent low(socket());
  ASSERT_TRUE(high.CreateQueue(0, 10, 1) && low.CreateQueue(0, 0, 2));
  high.Submit(0);
  low.Submit(0);
  ASSERT_TRUE(high.IsAlive() && low.IsAlive());
  EXPECT_FALSE(low.IsHeld(0));
}

TEST_F(Scheduling, an_agent_is_woken_when_its_queue_may_run_again) {
  TestAgent high(socket());
  TestAgent low(socket());
  ASSERT_TRUE(high.CreateQueue(0, 10) && low.CreateQueue(0, 0));
  low.Submit(0);
  high.Submit(0);
  ASSERT_TRUE(Eventually([&] { return low.IsHeld(0); }));
  ASSERT_TRUE(low.IsAlive());
  ipc::Packet packet;
  while (ipc::ReceivePacket(low.fd(), packet) == ipc::Received::kMessage) {
  }
  high.RetireAll(0);
  EXPECT_TRUE(Eventually([&] {
    return ipc::ReceivePacket(low.fd(), packet) == ipc::Received::kMessage &&
           packet.header().type == ipc::MessageType::kWake;
  }));
  EXPECT_FALSE(low.IsHeld(0));
}

TEST_F(Scheduling, a_queue_that_was_busy_before_anybody_tracked_it_counts_from_the_first_competitor) {
  TestAgent high(socket());
  ASSERT_TRUE(high.CreateQueue(0, 10));
  ASSERT_TRUE(high.IsAlive());
  high.block(0).submitted.store(5);  // not tracked: it does not ring
  TestAgent low(socket());
  ASSERT_TRUE(low.CreateQueue(0, 0));
  low.Submit(0);
  EXPECT_TRUE(Eventually([&] { return low.IsHeld(0); }));
}

TEST_F(Scheduling, a_waiter_lends_its_right_to_run_to_what_it_waits_for) {
  TestAgent other(socket());
  TestAgent agent(socket());
  ASSERT_TRUE(other.CreateQueue(0, 5) && agent.CreateQueue(0, 10) && agent.CreateQueue(1, 0));
  agent.Submit(1);
  agent.Submit(0);
  ASSERT_TRUE(Eventually([&] { return agent.IsHeld(1); }));
  ipc::DependencySlot& slot = agent.segment().depends[0][0];
  slot.queue.store(1);
  slot.until.store(1);
  ipc::RingScheduler(agent.segment(), 0, agent.bell());
  EXPECT_TRUE(Eventually([&] { return !agent.IsHeld(1); }));
}

TEST_F(Scheduling, it_lends_nothing_to_the_queue_that_has_the_block_by_now) {
  TestAgent agent(socket());
  agent.SetGeneration(1);
  ASSERT_TRUE(agent.CreateQueue(0, 10) && agent.CreateQueue(1, 0));
  ipc::DependencySlot& slot = agent.segment().depends[0][0];
  slot.queue.store(1);
  slot.generation.store(1);
  slot.until.store(5);
  ASSERT_TRUE(agent.DestroyQueue(1));
  agent.SetGeneration(2);
  ASSERT_TRUE(agent.CreateQueue(1, 0));
  agent.Submit(1);
  agent.Submit(0);
  EXPECT_TRUE(Eventually([&] { return agent.IsHeld(1); }));
  slot.generation.store(2);
  ipc::RingScheduler(agent.segment(), 0, agent.bell());
  EXPECT_TRUE(Eventually([&] { return !agent.IsHeld(1); }));
}

TEST_F(Scheduling, it_does_so_for_a_queue_of_another_device) {
  TestAgent other(socket());
  TestAgent agent(socket());
  ASSERT_TRUE(other.CreateQueue(0, 5, 1) && agent.CreateQueue(0, 10, 2) && agent.CreateQueue(1, 0, 1));
  agent.Submit(1);
  other.Submit(0);
  ASSERT_TRUE(Eventually([&] { return agent.IsHeld(1); }));
  ipc::DependencySlot& slot = agent.segment().depends[0][0];
  slot.queue.store(1);
  slot.until.store(1);
  ipc::RingScheduler(agent.segment(), 0, agent.bell());
  EXPECT_TRUE(Eventually([&] { return (agent.block(0).flags.load() & ipc::kFlagTracked) != 0; }));
  agent.Submit(0);
  EXPECT_TRUE(Eventually([&] { return !agent.IsHeld(1) && other.IsHeld(0); }));
  agent.RetireAll(1);
  EXPECT_TRUE(Eventually([&] { return !other.IsHeld(0); }));
}

TEST_F(Scheduling, when_a_client_leaves_its_queues_hold_nobody) {
  TestAgent low(socket());
  ASSERT_TRUE(low.CreateQueue(0, 0));
  low.Submit(0);
  {
    TestAgent high(socket());
    ASSERT_TRUE(high.CreateQueue(0, 10));
    high.Submit(0);
    ASSERT_TRUE(Eventually([&] { return low.IsHeld(0); }));
  }
  EXPECT_TRUE(Eventually([&] { return !low.IsHeld(0); }, 100ms));
}

TEST_F(Scheduling, a_suspended_queue_holds_nobody) {
  TestAgent high(socket());
  TestAgent low(socket());
  ASSERT_TRUE(high.CreateQueue(0, 10) && low.CreateQueue(0, 0));
  high.Submit(0);
  low.Submit(0);
  ASSERT_TRUE(Eventually([&] { return low.IsHeld(0); }));
  ipc::QueueAbsent absent{};
  absent.absent = 1;
  ASSERT_TRUE(high.Send(absent));
  EXPECT_TRUE(Eventually([&] { return !low.IsHeld(0); }));
}

TEST_F(Scheduling, a_stopped_process_holds_nobody_and_takes_its_place_again_when_it_goes_on) {
  TestAgent low(socket());
  ASSERT_TRUE(low.CreateQueue(0, 0));
  low.Submit(0);
  const pid_t child = ForkWorkingAgent(socket(), 10);
  auto low_is_held = [&] {
    low.ReadAll();
    return low.IsHeld(0);
  };
  ASSERT_TRUE(Eventually(low_is_held));
  for (int round = 0; round < 3; ++round) {
    kill(child, SIGSTOP);
    EXPECT_TRUE(Eventually([&] { return !low_is_held(); }, 100ms)) << round;
    kill(child, SIGCONT);
    EXPECT_TRUE(Eventually(low_is_held, 200ms)) << round;
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

// The kernel does not report its process as stopped, but nothing comes from it.
TEST_F(Scheduling, a_process_that_does_not_answer_holds_nobody_and_takes_its_place_again_when_it_does) {
  TestAgent high(socket());
  TestAgent low(socket());
  TestTool tool(socket());
  ASSERT_TRUE(high.CreateQueue(0, 10) && low.CreateQueue(0, 0));
  low.Submit(0);
  // The device goes on with its work. That is not a sign that the process lives.
  high.Submit(0, 1'000'000);
  uint64_t retired = 0;
  auto low_is_held = [&] {
    high.block(0).retired.store(++retired);
    low.ReadAll();
    return low.IsHeld(0);
  };
  for (int round = 0; round < 3; ++round) {
    // It sends nothing, but it reads, and that is a sign of life.
    EXPECT_TRUE(Eventually(
        [&] {
          high.ReadAll();
          return low_is_held();
        },
        200ms))
        << round;
    TimePoint begin = MonotonicClock::now();
    EXPECT_TRUE(Eventually([&] { return !low_is_held(); }));
    EXPECT_LT(MonotonicClock::now() - begin, 100ms) << round;
  }
  EXPECT_EQ(tool.Status()->incidents, 0u) << "the queue was not stalled";
}

TEST_F(Scheduling, a_process_that_reads_what_it_is_asked_is_not_taken_for_one_that_hangs) {
  TestAgent high(socket());
  TestAgent low(socket());
  ASSERT_TRUE(high.CreateQueue(0, 10) && low.CreateQueue(0, 0));
  low.Submit(0);
  high.Submit(0, 1'000'000);
  ASSERT_TRUE(Eventually([&] { return low.IsHeld(0); }));
  uint64_t retired = 0;
  EXPECT_FALSE(Eventually(
      [&] {
        high.block(0).retired.store(++retired);
        high.ReadAll();
        low.ReadAll();
        return !low.IsHeld(0);
      },
      400ms));
}

TEST_F(Scheduling, a_stuck_queue_holds_nobody_for_long) {
  TestAgent high(socket());
  TestAgent low(socket());
  ASSERT_TRUE(high.CreateQueue(0, 10) && low.CreateQueue(0, 0));
  low.Submit(0);
  high.Submit(0);
  ASSERT_TRUE(Eventually([&] { return low.IsHeld(0); }));
  EXPECT_TRUE(Eventually(
      [&] {
        high.ReadAll();
        return !low.IsHeld(0);
      },
      200ms));
  TestTool tool(socket());
  auto status = tool.Status();
  ASSERT_TRUE(status);
  EXPECT_GE(status->incidents, 1u);
}

TEST_F(Scheduling, the_progress_of_a_queue_that_others_wait_for_is_asked_for) {
  TestAgent high(socket());
  TestAgent low(socket());
  ASSERT_TRUE(high.CreateQueue(0, 10) && low.CreateQueue(0, 0));
  low.Submit(0);
  high.Submit(0);
  EXPECT_TRUE(Eventually([&] { return high.block(0).query.load() != 0; }));
}

TEST_F(Scheduling, hints_and_a_change_of_policy_take_effect) {
  TestAgent first(socket());
  TestAgent second(socket());
  ASSERT_TRUE(first.CreateQueue(0, 1) && first.IsAlive() && second.CreateQueue(0, 0));
  ipc::QueueHints hints{};
  hints.hints = {2, UTILIZATION_DEFAULT, NO_DEADLINE, NO_LAXITY, 0, 0};
  ASSERT_TRUE(second.Send(hints));
  first.Submit(0);
  second.Submit(0);
  EXPECT_TRUE(Eventually([&] { return first.IsHeld(0) && !second.IsHeld(0); }));
  TestTool tool(socket());
  auto reply = tool.SetPolicy(kPolicyUtilizationPartition, 20'000);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->result, kXSchedSuccess);
  // Now both run, in turns.
  EXPECT_TRUE(Eventually([&] { return second.IsHeld(0) && !first.IsHeld(0); }));
  auto status = tool.Status();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->policy, static_cast<uint32_t>(kPolicyUtilizationPartition));
  EXPECT_EQ(status->timeslice_us, 20'000);
  auto queues = tool.List();
  ASSERT_TRUE(queues && queues->size() == 2);
  EXPECT_EQ((*queues)[1].hints.priority, 2);
}

TEST_F(Scheduling, processes_are_given_time_slices_where_the_device_divides_its_time) {
  TestAgent first(socket());
  TestAgent second(socket());
  ASSERT_EQ(TestTool(socket()).SetPolicy(kPolicyUtilizationPartition, 20'000)->result, kXSchedSuccess);
  ASSERT_TRUE(first.CreateInterruptibleQueue(0, ipc::kTraitTimeSlices) &&
              second.CreateInterruptibleQueue(0, ipc::kTraitTimeSlices));
  first.Submit(0);
  second.Submit(0);
  EXPECT_TRUE(first.ReceiveA<ipc::ProcessSlice>() && second.ReceiveA<ipc::ProcessSlice>());
  EXPECT_FALSE(first.IsHeld(0) || second.IsHeld(0));
}

TEST_F(Scheduling, processes_that_can_be_interrupted_only_are_held_in_turns) {
  TestAgent first(socket());
  TestAgent second(socket());
  ASSERT_EQ(TestTool(socket()).SetPolicy(kPolicyUtilizationPartition, 20'000)->result, kXSchedSuccess);
  ASSERT_TRUE(first.CreateInterruptibleQueue(0, 0) &&
              second.CreateInterruptibleQueue(0, ipc::kTraitTimeSlices));
  first.Submit(0, 1'000'000);
  second.Submit(0, 1'000'000);
  // An agent that is not held finishes commands. If no agent finishes any, the scheduler holds none.
  const auto is_held = [&](TestAgent& agent) {
    for (TestAgent* any : {&first, &second}) {
      if (any->IsHeld(0)) continue;
      any->block(0).retired.fetch_add(1, std::memory_order_release);
      ipc::RingScheduler(any->segment(), 0, any->bell());
    }
    return agent.IsHeld(0);
  };
  EXPECT_TRUE(Eventually([&] { return is_held(first); }));
  EXPECT_TRUE(Eventually([&] { return is_held(second); }));
}

TEST_F(Scheduling, an_agent_gets_the_hints_that_others_set) {
  TestAgent agent(socket());
  constexpr uint32_t kQueues = 1000;  // more than its buffer takes
  for (uint32_t index = 0; index < kQueues; ++index)
    ASSERT_TRUE(agent.CreateQueue(index, 0, 1 + index % 100));
  ASSERT_TRUE(agent.IsAlive());
  TestTool tool(socket());
  ipc::SetHints request{};
  request.pid = getpid();
  request.mask = ipc::kHintPriority;
  request.hints.priority = 9;
  auto reply = tool.SetHints(request);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->count, kQueues);
  for (uint32_t index = 0; index < kQueues; ++index) {
    auto told = agent.ReceiveA<ipc::QueueHints>();
    ASSERT_TRUE(told) << index;
    EXPECT_EQ(told->index, index);
    EXPECT_EQ(told->handle, index + 1);
    EXPECT_EQ(told->hints.priority, 9);
    EXPECT_EQ(told->hints.utilization, UTILIZATION_DEFAULT);
  }
  EXPECT_TRUE(agent.IsAlive());
  long before = server_.cpu_ticks();
  usleep(200'000);
  EXPECT_LE(server_.cpu_ticks() - before, 1) << "it does not go on waiting for the buffer";
}

TEST_F(Scheduling, a_weight_is_kept_when_an_agent_that_knows_none_gives_other_hints) {
  TestAgent agent(socket());
  ASSERT_TRUE(agent.CreateQueue(0, 0));
  TestTool tool(socket());
  ASSERT_TRUE(agent.IsAlive());
  ipc::SetHints request{};
  request.pid = getpid();
  request.mask = ipc::kHintWeight;
  for (int32_t weight : {WEIGHT_MIN - 1, WEIGHT_MAX + 1}) {
    request.more_hints.weight = weight;
    EXPECT_EQ(tool.SetHints(request)->result, kXSchedErrorInvalidValue);
  }
  request.more_hints.weight = 300;
  EXPECT_EQ(tool.SetHints(request)->result, kXSchedSuccess);
  auto told = agent.ReceiveA<ipc::QueueHints>();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->more_hints.weight, 300);
  ipc::QueueHints given = *told;
  given.hints.priority = 4;
  given.more_hints = {};
  ASSERT_TRUE(ipc::SendWithin(agent.fd(), 2000, given));
  ASSERT_TRUE(agent.IsAlive());
  const auto queues = tool.List();
  ASSERT_TRUE(queues && queues->size() == 1);
  EXPECT_EQ(queues->front().hints.priority, 4);
  EXPECT_EQ(queues->front().more_hints.weight, 300);
}

TEST_F(Scheduling, guarantees_of_more_than_the_device_are_refused_and_the_earlier_ones_stay) {
  TestAgent one(socket());
  TestAgent other(socket());
  ASSERT_TRUE(one.CreateQueue(0, 0) && one.IsAlive());  // so it is the first of the list
  ASSERT_TRUE(other.CreateQueue(0, 0) && other.IsAlive());
  TestTool tool(socket());
  auto queues = tool.List();
  ASSERT_TRUE(queues && queues->size() == 2);
  auto reserve = [&](size_t queue, int64_t guarantee_us) {
    ipc::SetHints request{};
    request.queue_id = (*queues)[queue].queue_id;
    request.mask = ipc::kHintReservation;
    request.more_hints.guarantee_us = guarantee_us;
    request.more_hints.period_us = 10'000;
    return *tool.SetHints(request);
  };
  EXPECT_EQ(reserve(0, 6000).result, kXSchedSuccess);
  EXPECT_EQ(reserve(1, 4000).result, kXSchedSuccess);
  const ipc::Reply refused = reserve(1, 5000);
  EXPECT_EQ(refused.result, kXSchedErrorInvalidValue);
  EXPECT_STREQ(refused.text,
               "the guarantees on device 1 would be 110.0 % of it: the reservation stays as it was");
  EXPECT_EQ(reserve(1, 10'001).result, kXSchedErrorInvalidValue);
  EXPECT_EQ(tool.List()->back().more_hints.guarantee_us, 4000);

  // Its program asks for too much, together with another hint.
  ASSERT_TRUE(other.ReceiveA<ipc::QueueHints>());
  ipc::QueueHints given{};
  ipc::SetHintsIn(given, sched::Hints{.priority = 3, .guarantee_us = 5000, .period_us = 10'000});
  ASSERT_TRUE(ipc::SendWithin(other.fd(), 2000, given));
  const auto kept = other.ReceiveA<ipc::QueueHints>();
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->hints.priority, 3);
  EXPECT_EQ(kept->more_hints.guarantee_us, 4000);
  const auto reply = other.ReceiveA<ipc::Reply>();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->result, kXSchedErrorInvalidValue);
  EXPECT_EQ(tool.List()->back().more_hints.guarantee_us, 4000);
}

TEST_F(Scheduling, a_list_tells_what_clients_said_and_did) {
  TestAgent agent(socket());
  ASSERT_TRUE(agent.CreateQueue(7, -3, 42));
  agent.block(7).submitted.store(9);
  agent.block(7).retired.store(4);
  TestTool tool(socket());
  ASSERT_TRUE(agent.IsAlive());
  auto queues = tool.List();
  ASSERT_TRUE(queues && queues->size() == 1);
  const ipc::QueueInfo& info = queues->front();
  EXPECT_EQ(info.pid, getpid());
  EXPECT_EQ(info.uid, getuid());
  EXPECT_EQ(info.device, 42u);
  EXPECT_EQ(info.handle, 8u);
  EXPECT_EQ(info.hints.priority, -3);
  EXPECT_EQ(info.submitted, 9u);
  EXPECT_EQ(info.retired, 4u);
  EXPECT_STREQ(info.name, "test-client");
  EXPECT_STREQ(info.device_name, "device 42");
}

TEST_F(Scheduling, two_hundred_and_fifty_six_clients_are_served_with_little_memory) {
  std::vector<std::unique_ptr<TestAgent>> agents;
  for (int i = 0; i < 256; ++i) {
    auto& agent = agents.emplace_back(std::make_unique<TestAgent>(socket()));
    ASSERT_TRUE(agent->welcome()) << i << server_.errors();
    for (uint32_t queue = 0; queue < 4; ++queue) ASSERT_TRUE(agent->CreateQueue(queue, i == 0 ? 1 : 0));
  }
  for (auto& agent : agents) agent->Submit(0);
  EXPECT_TRUE(Eventually([&] {
    for (int i = 1; i < 256; ++i) {
      if (!agents[static_cast<size_t>(i)]->IsHeld(0)) return false;
    }
    return true;
  }));
  TestTool tool(socket());
  auto queues = tool.List();
  ASSERT_TRUE(queues);
  EXPECT_EQ(queues->size(), 1024u);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(server_.resident_kb(), 64 * 1024);
#endif
}

TEST_F(Scheduling, a_server_without_events_uses_no_processor_time) {
  TestAgent high(socket());
  TestAgent low(socket());
  ASSERT_TRUE(high.CreateQueue(0, 10) && low.CreateQueue(0, 0));
  high.Submit(0);
  high.RetireAll(0);
  ASSERT_TRUE(high.IsAlive());
  usleep(50'000);
  long before = server_.cpu_ticks();
  usleep(1'000'000);
  EXPECT_LE(server_.cpu_ticks() - before, 1);
}

TEST_F(Scheduling, gates_are_open_when_the_server_has_stopped) {
  TestAgent high(socket());
  TestAgent low(socket());
  ASSERT_TRUE(high.CreateQueue(0, 10) && low.CreateQueue(0, 0));
  low.Submit(0);
  high.Submit(0);
  ASSERT_TRUE(Eventually([&] { return low.IsHeld(0); }));
  server_.Signal(SIGTERM);
  EXPECT_EQ(server_.WaitForExit(), 0);
  EXPECT_FALSE(low.IsHeld(0));
  EXPECT_EQ(low.block(0).flags.load(), 0u);
}

}  // namespace
}  // namespace xsched::server::testing
