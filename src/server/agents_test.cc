#include "server/agents.h"

#include <gtest/gtest.h>

#include <vector>

#include "ipc/control_access.h"
#include "ipc/hints.h"
#include "ipc/job.h"
#include "server/testing/server_parts.h"

namespace xsched::server::testing {
namespace {

class AgentsTest : public ServerParts {
 protected:
  Client urgent_ = ConnectAgent({100, 1000, {}});
  Client other_ = ConnectAgent({200, 1000, {}});
  const bool queues_made_ = CreateQueue(urgent_, 0, 10) && CreateQueue(other_, 0, 0);
};

TEST_F(AgentsTest, a_queue_is_held_while_a_more_urgent_one_has_work_and_released_when_that_agent_leaves) {
  ASSERT_TRUE(queues_made_);
  Submit(urgent_, 0);
  Submit(other_, 0);
  agents_.Decide(now_);
  EXPECT_TRUE(other_.IsHeld(0));
  EXPECT_TRUE(queues_.any_held());
  connections_.Close(*urgent_.connection, nullptr);
  RemoveClosed();
  agents_.Decide(now_);
  EXPECT_FALSE(other_.IsHeld(0));
  EXPECT_FALSE(queues_.any_held());
  EXPECT_EQ(agents_.size(), 1u);
  EXPECT_EQ(queues_.size(), 1u);
}

TEST_F(AgentsTest, an_agent_is_woken_once_when_the_round_is_over) {
  agents_.Decide(now_);
  other_.ReadAll<ipc::Wake>();
  for (int i = 0; i < 3; ++i) wakes_.Add(AgentOf(other_));
  EXPECT_EQ(other_.ReadAll<ipc::Wake>(), 0);
  wakes_.Send(now_);
  EXPECT_EQ(other_.ReadAll<ipc::Wake>(), 1);
  wakes_.Send(now_);
  EXPECT_EQ(other_.ReadAll<ipc::Wake>(), 0);
}

// As a server does that hung, was left by its clients, and goes on.
TEST_F(AgentsTest, a_gate_that_another_writer_has_closed_is_opened_when_the_agent_pings) {
  ASSERT_TRUE(queues_made_);
  agents_.Decide(now_);
  other_.block(0).submitted.fetch_add(1);  // blocked at the gate: it does not ring
  other_.block(0).gate.store(ipc::kGateHold);
  agents_.Decide(now_);
  ASSERT_TRUE(other_.IsHeld(0));
  EXPECT_TRUE(agents_.HandleMessage(AgentOf(other_), PacketOf(ipc::Ping{}), now_));
  EXPECT_FALSE(other_.IsHeld(0));
  other_.ReadAll<ipc::Wake>();
  wakes_.Send(now_);
  EXPECT_EQ(other_.ReadAll<ipc::Wake>(), 1) << "the agent lets the launching thread go on";
}

TEST_F(AgentsTest, pings_are_charged_for_the_queues_that_they_look_at) {
  for (uint32_t index = 1; index < ipc::kMaxQueues; ++index) ASSERT_TRUE(CreateQueue(other_, index, 0));
  work_.BeginRound();
  for (int ping = 0; ping < 2; ++ping)
    ASSERT_TRUE(agents_.HandleMessage(AgentOf(other_), PacketOf(ipc::Ping{}), now_));
  EXPECT_TRUE(work_.IsSpent(1000));
}

TEST_F(AgentsTest, a_reservation_is_charged_for_the_queues_that_are_looked_at_for_it) {
  for (uint32_t index = 1; index < ipc::kMaxQueues; ++index) ASSERT_TRUE(CreateQueue(other_, index, 0));
  const auto reserve = [&](int64_t guarantee_us, int64_t limit_us) {
    sched::Hints reservation;
    reservation.guarantee_us = guarantee_us;
    reservation.limit_us = limit_us;
    reservation.period_us = 100'000;
    ipc::QueueHints hints{};
    ipc::SetHintsIn(hints, reservation);
    ASSERT_TRUE(agents_.HandleMessage(AgentOf(other_), PacketOf(hints), now_));
  };
  work_.BeginRound();
  for (int64_t limit_us = 100; limit_us < 200; ++limit_us) reserve(0, limit_us);
  EXPECT_FALSE(work_.IsSpent(1000)) << "without a guarantee, nothing is looked at";
  for (int64_t guarantee_us = 1; guarantee_us <= 2; ++guarantee_us) reserve(guarantee_us, 0);
  EXPECT_TRUE(work_.IsSpent(1000));
}

TEST_F(AgentsTest, an_agent_that_leaves_is_charged_for_the_queues_that_are_forgotten) {
  for (uint32_t index = 1; index < ipc::kMaxQueues; ++index) ASSERT_TRUE(CreateQueue(other_, index, 0));
  work_.BeginRound();
  ASSERT_FALSE(work_.IsSpent(1000));
  connections_.Close(*other_.connection, nullptr);
  RemoveClosed();
  EXPECT_TRUE(work_.IsSpent(1000));
}

TEST_F(AgentsTest, an_agent_that_leaves_before_it_is_woken_is_not_woken) {
  wakes_.Add(AgentOf(other_));
  connections_.Close(*other_.connection, nullptr);
  RemoveClosed();
  wakes_.Send(now_);
  EXPECT_EQ(other_.ReadAll<ipc::Wake>(), 0);
}

TEST_F(AgentsTest, slices_are_given_back_as_soon_as_the_more_urgent_process_has_ended) {
  const Client low = ConnectAgent({300, 1000, {}});
  const Client high = ConnectAgent({400, 1000, {}});
  ASSERT_TRUE(CreateQueue(low, 1, 0, true) && CreateQueue(high, 1, 10, true));
  connections_.Close(*urgent_.connection, nullptr);  // those of level 1 have no slices
  connections_.Close(*other_.connection, nullptr);
  RemoveClosed();
  const auto last_slice = [&] {
    std::optional<uint64_t> slice_us;
    agents_.Decide(now_);
    while (std::optional<ipc::Packet> packet = low.Receive()) {
      if (packet->header().type == ipc::MessageType::kProcessSlice)
        slice_us = packet->As<ipc::ProcessSlice>().slice_us;
    }
    return slice_us;
  };
  EXPECT_EQ(last_slice(), 1u) << "the shortest";
  connections_.Close(*high.connection, nullptr);
  RemoveClosed();
  EXPECT_EQ(last_slice(), 0u) << "the driver's";
}

TEST_F(AgentsTest, a_held_queue_is_charged_until_its_client_says_that_the_device_has_nothing_more_of_it) {
  scheduler_.SetPolicy(*sched::FindPolicy(kPolicyUtilizationPartition));
  for (const Client* client : {&urgent_, &other_}) {
    client->block(0).submitted.store(1000);
    Ring(*client, 0);
  }
  agents_.Decide(now_);
  const Client& runs = urgent_.IsHeld(0) ? other_ : urgent_;
  while (!runs.IsHeld(0)) {
    now_ += std::chrono::milliseconds(1);
    agents_.Decide(now_);
  }
  EXPECT_TRUE(runs.block(0).flags.load() & ipc::kFlagChargesOverruns);
  const sched::QueueId queue = AgentOf(runs).queues.at(0).id;
  const auto service = [&] { return scheduler_.Stats(queue, now_)->service; };
  const Duration before = service();
  now_ += std::chrono::milliseconds(2);
  EXPECT_EQ(service() - before, std::chrono::milliseconds(2)) << "the other one has retired nothing";
  ipc::CountDrain(runs.block(0));
  Ring(runs, 0);
  now_ += std::chrono::milliseconds(1);
  EXPECT_EQ(service() - before, std::chrono::milliseconds(2));
}

TEST_F(AgentsTest, a_segment_that_comes_again_belongs_to_the_new_connection_at_once) {
  Client again = Connect({200, 1000, {}});
  again.segment.memfd.Reset(dup(other_.segment.memfd.get()));
  EXPECT_TRUE(SayHello(again, ipc::Role::kAgent));
  EXPECT_TRUE(other_.connection->closed);
  EXPECT_EQ(agents_.Find(other_.connection->id), nullptr);
  EXPECT_EQ(queues_.size(), 1u) << "the former connection's queue is gone";
  RemoveClosed();
  EXPECT_NE(agents_.Find(again.connection->id), nullptr);
}

TEST_F(AgentsTest, a_hello_of_another_major_version_or_an_unknown_role_is_refused) {
  const Client client = Connect({300, 1000, {}});
  ipc::Hello hello{};
  hello.major = ipc::kMajor + 1;
  hello.role = ipc::Role::kTool;
  ipc::Packet packet = PacketOf(hello);
  EXPECT_FALSE(handshake_.HandleMessage(*client.connection, packet, now_));
  EXPECT_TRUE(client.ReceiveA<ipc::Rejected>());
  hello.major = ipc::kMajor;
  hello.role = static_cast<ipc::Role>(3);
  packet = PacketOf(hello);
  EXPECT_FALSE(handshake_.HandleMessage(*client.connection, packet, now_));
  EXPECT_FALSE(client.connection->role);
}

TEST_F(AgentsTest, all_gates_open_at_the_end) {
  Submit(urgent_, 0);
  Submit(other_, 0);
  agents_.Decide(now_);
  ASSERT_TRUE(other_.IsHeld(0));
  queues_.OpenAllGates();
  EXPECT_FALSE(other_.IsHeld(0));
  EXPECT_EQ(other_.block(0).flags.load(), 0u);
}

// Ranks of jobs that come to their devices in different orders.
class AgentsOfJobs : public ServerParts {
 protected:
  struct Rank {
    Client client;
    bool off = false;
  };
  Rank Start(uint64_t device, int32_t priority, uint64_t job) {
    Rank rank{ConnectAgent({static_cast<pid_t>(++pids_), 1000, {}}, job)};
    EXPECT_TRUE(CreateQueue(rank.client, 0, priority, true, device));
    if (priority == 0) Submit(rank.client, 0);
    return rank;
  }
  static void ReadSlices(Rank& rank) {
    while (std::optional<ipc::Packet> packet = rank.client.Receive()) {
      if (packet->header().type == ipc::MessageType::kProcessSlice)
        rank.off = packet->As<ipc::ProcessSlice>().slice_us == ~uint64_t{0};
    }
  }
  // Of two ranks each, which come to devices 1 and 2 in different orders. On both there is an urgent program.
  void StartTwoJobs(uint64_t first_here, uint64_t second_there, uint64_t second_here, uint64_t first_there) {
    for (uint64_t device : {1, 2}) urgent_.push_back(Start(device, 10, 0));
    ranks_.push_back(Start(1, 0, first_here));
    ranks_.push_back(Start(2, 0, second_there));
    ranks_.push_back(Start(1, 0, second_here));
    ranks_.push_back(Start(2, 0, first_there));
  }
  void ExpectTurnsOfJobs() {
    agents_.Decide(now_);
    for (Rank& rank : ranks_) ReadSlices(rank);
    const Rank &first_here = ranks_[0], &second_there = ranks_[1];
    const Rank &second_here = ranks_[2], &first_there = ranks_[3];
    EXPECT_EQ(first_here.off, first_there.off);
    EXPECT_EQ(second_here.off, second_there.off);
    EXPECT_NE(first_here.off, second_here.off);
  }

  std::vector<Rank> urgent_;
  std::vector<Rank> ranks_;
  int pids_ = 100;
};

TEST_F(AgentsOfJobs, the_ranks_of_a_job_have_their_turn_on_all_devices_at_the_same_time) {
  StartTwoJobs(7, 8, 8, 7);
  ExpectTurnsOfJobs();
}

TEST_F(AgentsOfJobs, ranks_that_name_one_job_later_on_are_one_with_all_that_belongs_to_them) {
  StartTwoJobs(7, 8, 9, 10);
  constexpr uint64_t kJobs[] = {1, 2, 2, 1};
  for (size_t i = 0; i < ranks_.size(); ++i) {
    ipc::JoinJob join{};
    join.number = kJobs[i];
    EXPECT_TRUE(agents_.HandleMessage(AgentOf(ranks_[i].client), PacketOf(join), now_));
  }
  ExpectTurnsOfJobs();
}

TEST_F(AgentsOfJobs, jobs_that_become_one_are_charged_to_their_user) {
  for (uint64_t job = 1; job <= 64; ++job) ranks_.push_back(Start(1, 0, job));
  work_.BeginRound();
  ipc::JoinJob join{};
  join.number = 1;
  for (const Rank& rank : ranks_)
    ASSERT_TRUE(agents_.HandleMessage(AgentOf(rank.client), PacketOf(join), now_));
  EXPECT_TRUE(work_.IsSpent(1000));
}

TEST_F(AgentsOfJobs, one_that_names_job_after_job_is_ignored_at_some_point_and_costs_nothing_then) {
  Rank rank = Start(1, 0, 7);
  ipc::JoinJob join{};
  for (join.number = 0; join.number < 1000; ++join.number)
    EXPECT_TRUE(agents_.HandleMessage(AgentOf(rank.client), PacketOf(join), now_));
  EXPECT_EQ(AgentOf(rank.client).jobs.size(), ipc::kMostJobs);
}

}  // namespace
}  // namespace xsched::server::testing
