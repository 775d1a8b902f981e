#include "server/tools.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "server/testing/server_parts.h"

namespace xsched::server::testing {
namespace {

using namespace std::chrono_literals;

const Peer kUser{100, 1000, {}};
const Peer kOtherUser{200, 1001, {}};
const Peer kAdmin{300, kServerUser, {}};

class ToolsTest : public ServerParts {
 protected:
  template <typename T>
  bool Ask(const Client& tool, const T& request) {
    return tools_.HandleMessage(*tool.connection, PacketOf(request), now_);
  }
  template <typename T>
  ipc::Reply Answer(const Client& tool, const T& request) {
    EXPECT_TRUE(Ask(tool, request));
    auto reply = tool.ReceiveA<ipc::Reply>();
    EXPECT_TRUE(reply);
    return reply.value_or(ipc::Reply{});
  }
  // The pids of the queues that the tool sees.
  std::vector<pid_t> List(const Client& tool) {
    EXPECT_TRUE(Ask(tool, ipc::List{}));
    std::vector<pid_t> pids;
    while (auto info = tool.ReceiveA<ipc::QueueInfo>()) pids.push_back(info->pid);
    std::sort(pids.begin(), pids.end());
    return pids;
  }
  static ipc::SetHints Priority(pid_t pid, int32_t priority) {
    ipc::SetHints request{};
    request.pid = pid;
    request.mask = ipc::kHintPriority;
    request.hints.priority = priority;
    return request;
  }
  int32_t PriorityOf(const Client& agent) {
    return scheduler_.GetHints(AgentOf(agent).queues.at(0).id)->priority;
  }

  Client mine_ = ConnectAgent(kUser);
  Client theirs_ = ConnectAgent(kOtherUser);
  const bool queues_made_ = CreateQueue(mine_, 0, 0) && CreateQueue(theirs_, 0, 0);
  Client tool_ = ConnectTool(kUser);
  Client admin_ = ConnectTool(kAdmin);
};

TEST_F(ToolsTest, a_list_has_the_queues_that_the_tools_user_may_see) {
  ASSERT_TRUE(queues_made_);
  EXPECT_EQ(List(tool_), std::vector<pid_t>{100});
  EXPECT_EQ(List(admin_), (std::vector<pid_t>{100, 200}));
}

TEST_F(ToolsTest, a_list_has_no_queues_of_a_connection_that_is_closed) {
  connections_.Close(*theirs_.connection, nullptr);
  EXPECT_EQ(List(admin_), std::vector<pid_t>{100});
}

TEST_F(ToolsTest, a_list_that_the_buffer_has_no_room_for_goes_on_when_the_tool_has_read) {
  for (uint32_t index = 1; index < ipc::kMaxQueues; ++index) ASSERT_TRUE(CreateQueue(mine_, index, 0));
  ASSERT_TRUE(Ask(tool_, ipc::List{}));
  uint32_t listed = 0;
  std::optional<ipc::Reply> reply;
  EXPECT_TRUE(tools_.IsListing(*tool_.connection));
  for (;;) {
    const bool goes_on = tools_.IsListing(*tool_.connection);
    while (auto packet = tool_.Receive()) {
      if (packet->header().type == ipc::MessageType::kReply) reply = packet->As<ipc::Reply>();
      listed += packet->header().type == ipc::MessageType::kQueueInfo;
    }
    if (!goes_on) break;
    ASSERT_TRUE(tools_.ContinueListing(*tool_.connection, now_));
  }
  EXPECT_EQ(listed, ipc::kMaxQueues);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->count, ipc::kMaxQueues);
}

TEST_F(ToolsTest, a_tool_that_leaves_its_answer_unread_is_closed_after_5_s) {
  for (uint32_t index = 1; index < ipc::kMaxQueues; ++index) ASSERT_TRUE(CreateQueue(mine_, index, 0));
  EXPECT_EQ(tools_.CloseUnreading(now_), kNever);
  ASSERT_TRUE(Ask(tool_, ipc::List{}));
  ASSERT_TRUE(tools_.IsListing(*tool_.connection));
  EXPECT_EQ(tools_.CloseUnreading(now_ + 4999ms), now_ + 5s);
  EXPECT_FALSE(tool_.connection->closed);
  now_ += 4s;
  tool_.Receive();
  ASSERT_TRUE(tools_.ContinueListing(*tool_.connection, now_)) << "it has read a little";
  tools_.CloseUnreading(now_ + 4999ms);
  EXPECT_FALSE(tool_.connection->closed);
  tools_.CloseUnreading(now_ + 5s);
  EXPECT_TRUE(tool_.connection->closed);
  RemoveClosed();
  EXPECT_EQ(tools_.CloseUnreading(now_ + 10s), kNever);
}

TEST_F(ToolsTest, a_tool_that_has_gone_ends_its_list) {
  for (uint32_t index = 1; index < ipc::kMaxQueues; ++index) ASSERT_TRUE(CreateQueue(mine_, index, 0));
  ASSERT_TRUE(Ask(tool_, ipc::List{}));
  tool_.socket.Reset();
  EXPECT_FALSE(tools_.ContinueListing(*tool_.connection, now_));
}

TEST_F(ToolsTest, hints_are_set_where_the_user_may_and_the_agent_is_sent_them) {
  EXPECT_EQ(Answer(tool_, Priority(100, 7)).count, 1u);
  EXPECT_EQ(PriorityOf(mine_), 7);
  auto sent = mine_.ReceiveA<ipc::QueueHints>();
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->hints.priority, 7);
  EXPECT_EQ(Answer(tool_, Priority(200, 7)).result, static_cast<uint32_t>(kXSchedErrorNotFound));
  EXPECT_EQ(PriorityOf(theirs_), 0);
  EXPECT_EQ(Answer(admin_, Priority(200, 7)).count, 1u);
  EXPECT_EQ(PriorityOf(theirs_), 7);
}

TEST_F(ToolsTest, hints_that_the_agents_buffer_has_no_room_for_are_sent_when_it_has_read) {
  while (mine_.connection->Send(ipc::Wake{})) {
  }
  EXPECT_EQ(Answer(tool_, Priority(100, 6)).count, 1u);
  EXPECT_EQ(Answer(tool_, Priority(100, 7)).count, 1u);
  EXPECT_EQ(mine_.ReadAll<ipc::QueueHints>(), 0);
  agents_.SendUnsent(AgentOf(mine_));
  auto sent = mine_.ReceiveA<ipc::QueueHints>();
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->hints.priority, 7);
  EXPECT_FALSE(mine_.Receive()) << "once";
}

TEST_F(ToolsTest, hints_out_of_range_change_nothing) {
  EXPECT_EQ(Answer(tool_, Priority(100, PRIORITY_MAX + 1)).result,
            static_cast<uint32_t>(kXSchedErrorInvalidValue));
  ipc::SetHints unknown = Priority(100, 7);
  unknown.mask = 1u << 30;
  EXPECT_EQ(Answer(tool_, unknown).result, static_cast<uint32_t>(kXSchedErrorInvalidValue));
  EXPECT_EQ(PriorityOf(mine_), 0);
}

TEST_F(ToolsTest, the_policy_is_the_administrators) {
  ipc::SetPolicy request{};
  request.policy = kPolicyUtilizationPartition;
  EXPECT_EQ(Answer(tool_, request).result, static_cast<uint32_t>(kXSchedErrorNotAllowed));
  EXPECT_EQ(scheduler_.policy().type(), kPolicyHighestPriorityFirst);
  EXPECT_EQ(Answer(admin_, request).result, static_cast<uint32_t>(kXSchedSuccess));
  EXPECT_EQ(scheduler_.policy().type(), kPolicyUtilizationPartition);
}

TEST_F(ToolsTest, a_number_that_is_no_policy_is_answered_and_changes_nothing) {
  ipc::SetPolicy request{};
  for (uint32_t policy : {uint32_t{kPolicyMax}, 4009477u, ~0u}) {
    request.policy = policy;
    EXPECT_EQ(Answer(admin_, request).result, static_cast<uint32_t>(kXSchedErrorNotSupported));
  }
  EXPECT_EQ(scheduler_.policy().type(), kPolicyHighestPriorityFirst);
}

TEST_F(ToolsTest, the_status_counts_what_there_is) {
  agents_.Decide(now_);
  Submit(mine_, 0);
  connections_.Close(*Connect(kOtherUser).connection, "no hello");
  now_ += 3s;
  ASSERT_TRUE(Ask(tool_, ipc::GetStatus{}));
  auto status = tool_.ReceiveA<ipc::Status>();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->clients, 2u);
  EXPECT_EQ(status->queues, 2u);
  EXPECT_EQ(status->decisions, 1u);
  EXPECT_EQ(status->state_changes, 1u);
  EXPECT_EQ(status->rejected, 1u);
  EXPECT_EQ(status->uptime_ns, 3'000'000'000u);
  EXPECT_FALSE(status->is_admin);
}

TEST_F(ToolsTest, an_agents_message_breaks_the_protocol) { EXPECT_FALSE(Ask(tool_, ipc::QueueCreated{})); }

}  // namespace
}  // namespace xsched::server::testing
