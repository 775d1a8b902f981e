#include "server/agents.h"

#include <gtest/gtest.h>

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

TEST_F(AgentsTest, an_agent_that_leaves_before_it_is_woken_is_not_woken) {
  wakes_.Add(AgentOf(other_));
  connections_.Close(*other_.connection, nullptr);
  RemoveClosed();
  wakes_.Send(now_);
  EXPECT_EQ(other_.ReadAll<ipc::Wake>(), 0);
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

}  // namespace
}  // namespace xsched::server::testing
