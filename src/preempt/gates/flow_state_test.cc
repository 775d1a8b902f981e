#include "preempt/gates/flow_state.h"

#include <gmock/gmock.h>

#include "preempt/gates/testing/flow_test.h"

namespace xsched::preempt::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class FlowStateTest : public FlowTest {
 protected:
  FlowStateTest() : FlowTest(kGatingHostGates) { Begin(); }
};

TEST_F(FlowStateTest, a_launch_gets_the_next_number_and_makes_the_queue_busy_until_it_retires) {
  EXPECT_TRUE(state.Idle());
  EXPECT_EQ(state.CountLaunch(), 1u);
  EXPECT_EQ(state.CountLaunch(), 2u);
  EXPECT_TRUE(state.Launching());
  state.CountIssued();
  state.CountIssued();
  EXPECT_FALSE(state.Launching());
  state.RetiredUpTo(1);
  EXPECT_FALSE(state.Idle());
  state.RetiredUpTo(2);
  EXPECT_TRUE(state.Idle());
}

TEST_F(FlowStateTest, known_progress_never_goes_back) {
  Launch(3);
  state.RetiredUpTo(3);
  state.RetiredUpTo(1);
  EXPECT_EQ(state.retired(), 3u);
}

TEST_F(FlowStateTest, a_launch_that_began_on_the_slots_former_queue_counts_no_command_of_this_one) {
  state.CountIssued();
  EXPECT_EQ(state.issued(), 0u);
  EXPECT_EQ(state.CountLaunch(), 1u);
  EXPECT_EQ(state.issued(), 1u);
}

TEST_F(FlowStateTest, a_scheduler_that_asked_hears_of_the_next_progress_once) {
  LetRun();
  Launch(3);
  state.ReportNextProgress(true);
  state.RetiredUpTo(1);
  EXPECT_THAT(rung, ElementsAre(3));
  state.RetiredUpTo(2);
  EXPECT_EQ(rung.size(), 1u);
}

TEST_F(FlowStateTest, the_end_of_all_commands_rings_a_scheduler_and_nobody_else) {
  Launch();
  state.RetiredUpTo(1);
  EXPECT_THAT(rung, IsEmpty());
  LetRun();
  Launch();
  state.RetiredUpTo(2);
  EXPECT_THAT(rung, ElementsAre(3));
}

TEST_F(FlowStateTest, a_queue_that_is_only_recorded_counts_its_bursts_and_rings_nobody) {
  Record();
  Launch(2);
  state.RetiredUpTo(1);
  EXPECT_EQ(ipc::ReadBursts(state.block()).ended, 0u);
  state.RetiredUpTo(2);
  state.RetiredUpTo(2);
  EXPECT_EQ(ipc::ReadBursts(state.block()).ended, 1u);
  EXPECT_EQ(state.flags(), 0u) << "it is launched as if nobody recorded it";
  EXPECT_THAT(rung, IsEmpty());
}

TEST_F(FlowStateTest, a_burst_that_went_on_when_counting_ended_is_over_when_it_begins_again) {
  Record();
  fake_now = std::chrono::ceil<std::chrono::seconds>(fake_now);  // bursts begin at even times
  state.CountLaunch();
  ipc::BeginBurst(state.block(), fake_now);
  state.block().flags = 0;
  state.RetiredUpTo(1);
  EXPECT_EQ(ipc::ReadBursts(state.block()).ended, 0u);
  Record();
  fake_now += std::chrono::hours(1);
  state.CountLaunch();
  ipc::BeginBurst(state.block(), fake_now);
  fake_now += std::chrono::milliseconds(2);
  state.RetiredUpTo(2);
  EXPECT_EQ(ipc::ReadBursts(state.block()).ended, 1u);
  EXPECT_EQ(ipc::ReadBursts(state.block()).busy, std::chrono::milliseconds(2));
}

FlowState* launching_in_between = nullptr;

// A clock that another thread is faster than: it launches between the check for the end and the count of it.
TimePoint NowAfterALaunch() {
  if (FlowState* queue = std::exchange(launching_in_between, nullptr)) {
    queue->CountLaunch();
    ipc::BeginBurst(queue->block(), FakeNow());
  }
  return FakeNow();
}

TEST_F(FlowStateTest, a_launch_that_comes_while_the_end_of_a_burst_is_counted_begins_another_one) {
  state.Begin({3, &block, &process, this, kGatingHostGates, kPreemptLevelBlock, {}, &NowAfterALaunch});
  Record();
  fake_now = std::chrono::ceil<std::chrono::seconds>(fake_now);
  state.CountLaunch();
  ipc::BeginBurst(block, fake_now);
  fake_now += std::chrono::milliseconds(2);
  launching_in_between = &state;
  state.RetiredUpTo(1);
  EXPECT_EQ(ipc::ReadBursts(block).ended, 1u);
  EXPECT_EQ(ipc::ReadBursts(block).began, fake_now);
  fake_now += std::chrono::milliseconds(3);
  state.RetiredUpTo(2);
  EXPECT_EQ(ipc::ReadBursts(block).ended, 2u);
  EXPECT_EQ(ipc::ReadBursts(block).busy, std::chrono::milliseconds(5));
}

TEST_F(FlowStateTest, progress_wakes_the_agent_only_while_gates_are_closed) {
  Launch(2);
  state.RetiredUpTo(1);
  EXPECT_EQ(wakes, 0);
  state.closed_gates = 1;
  state.RetiredUpTo(2);
  EXPECT_EQ(wakes, 1);
}

TEST_F(FlowStateTest, a_closed_gate_holds_only_while_there_is_a_scheduler) {
  Hold();
  EXPECT_TRUE(state.Held());
  EXPECT_NE(state.flags(), 0u);
  process.SetScheduled(false);
  EXPECT_FALSE(state.Held());
  EXPECT_EQ(state.flags(), 0u);
  EXPECT_NE(state.raw_flags(), 0u);
}

TEST_F(FlowStateTest, a_suspended_queue_is_held_without_a_scheduler) {
  state.SetSuspended(true);
  EXPECT_TRUE(state.Held());
  EXPECT_FALSE(state.Unhindered());
}

TEST_F(FlowStateTest, nothing_holds_a_queue_that_is_destroyed_or_whose_process_ends) {
  Hold();
  state.SetSuspended(true);
  EXPECT_FALSE(state.ForcedOpen());
  state.SetDestroying(true);
  EXPECT_FALSE(state.Held());
  EXPECT_TRUE(state.ForcedOpen());
  state.SetDestroying(false);
  process.ShutDown();
  EXPECT_FALSE(state.Held());
  EXPECT_TRUE(state.ForcedOpen());
}

TEST_F(FlowStateTest, a_barrier_forces_a_held_queue_open) {
  Hold();
  process.ForceOpen(true);
  EXPECT_TRUE(state.ForcedOpen());
  process.ForceOpen(false);
  EXPECT_FALSE(state.ForcedOpen());
}

TEST_F(FlowStateTest, only_the_thread_that_changes_a_mark_is_told_so) {
  EXPECT_TRUE(state.SetDraining(true));
  EXPECT_FALSE(state.SetDraining(true));
  EXPECT_TRUE(state.SetDestroying(true));
  EXPECT_FALSE(state.SetDestroying(true));
}

TEST_F(FlowStateTest, the_slots_next_queue_inherits_nothing) {
  LetRun();
  Launch();
  state.RetiredUpTo(1);
  state.SetSuspended(true);
  state.self_gated = true;
  state.SetDraining(true);
  block.submitted = block.retired = 0;
  rung.clear();
  Begin({32, 4}, kPreemptLevelInterrupt);
  EXPECT_TRUE(state.Unhindered());
  EXPECT_FALSE(state.draining());
  EXPECT_EQ(state.issued(), 0u);
  EXPECT_EQ(state.config().threshold, 32);
  EXPECT_EQ(state.config().batch_size, 4);
  EXPECT_EQ(state.level(), kPreemptLevelInterrupt);
  Launch();
  state.RetiredUpTo(1);
  EXPECT_THAT(rung, ElementsAre(3)) << "the scheduler does not know yet that this one is idle";
}

TEST_F(FlowStateTest, a_forked_childs_queue_is_not_suspended_and_has_no_gates) {
  state.SetSuspended(true);
  state.closed_gates = 2;
  state.ResetAfterFork();
  EXPECT_TRUE(state.Unhindered());
}

// ---- markers ----

TEST(TicketTest, a_ticket_is_unpacked_as_it_was_packed) {
  for (const Ticket ticket : {Ticket{0, 1}, Ticket{ipc::kMaxQueues - 1, (uint64_t{1} << 48) - 1}}) {
    EXPECT_EQ(Ticket::Unpack(ticket.Pack()).queue, ticket.queue);
    EXPECT_EQ(Ticket::Unpack(ticket.Pack()).number, ticket.number);
  }
}

TEST(MarkersTest, a_marker_is_under_way_until_its_report_is_done) {
  Markers markers;
  markers.Count();
  const TimePoint now(std::chrono::seconds(7));
  markers.Reached(now, [&] { EXPECT_TRUE(markers.UnderWay()); });
  EXPECT_FALSE(markers.UnderWay());
  EXPECT_EQ(markers.reached_at(), now);
}

TEST(MarkersTest, a_marker_that_the_driver_refused_is_not_under_way) {
  Markers markers;
  markers.Count();
  markers.Forget();
  EXPECT_FALSE(markers.UnderWay());
}

// ---- the process ----

TEST(ProcessStateTest, barriers_nest_and_the_last_to_end_says_so) {
  ProcessState process;
  EXPECT_TRUE(process.ForceOpen(true));
  EXPECT_FALSE(process.ForceOpen(true));
  EXPECT_FALSE(process.ForceOpen(false));
  EXPECT_TRUE(process.forced_open());
  EXPECT_TRUE(process.ForceOpen(false));
  EXPECT_FALSE(process.forced_open());
  EXPECT_TRUE(process.LiftSuspensions(true));
  EXPECT_TRUE(process.suspensions_lifted());
  EXPECT_FALSE(process.forced_open());
}

TEST(ProcessStateTest, a_forked_child_begins_unscheduled_and_outside_of_its_parents_calls) {
  ProcessState process;
  process.SetScheduled(true);
  process.ForceOpen(true);
  process.LiftSuspensions(true);
  process.CountHardStop(1);
  process.ResetAfterFork();
  EXPECT_FALSE(process.scheduled() || process.forced_open() || process.suspensions_lifted());
  EXPECT_EQ(process.hard_stops(), 0);
}

}  // namespace
}  // namespace xsched::preempt::testing
