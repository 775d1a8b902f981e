#include "server/tools.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "server/limits.h"
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

TEST_F(ToolsTest, a_list_says_how_much_memory_a_process_has_of_the_device) {
  ipc::SegmentHeader& header = mine_.segment.mapping->header;
  header.memory_limit.store(5000);
  header.memory[0].device.store(7);
  header.memory[0].used.store(1);
  header.memory[1].device.store(1);
  header.memory[1].used.store(3000);
  ASSERT_TRUE(Ask(tool_, ipc::List{}));
  auto info = tool_.ReceiveA<ipc::QueueInfo>();
  ASSERT_TRUE(info);
  EXPECT_EQ(info->memory_used, 3000u);
  EXPECT_EQ(info->memory_limit, 5000u);
}

class ListedIdentityTest : public ToolsTest {
 protected:
  // Its container, pod and Slurm job.
  std::vector<std::string> IdentityIn(const Client& tool) {
    EXPECT_TRUE(Ask(tool, ipc::List{}));
    const auto info = tool.ReceiveA<ipc::QueueInfo>().value_or(ipc::QueueInfo{});
    EXPECT_EQ(tool.ReadAll<ipc::Reply>(), 1);
    return {info.container, info.pod, info.slurm_job};
  }
};

TEST_F(ListedIdentityTest, is_the_container_pod_and_slurm_job_that_the_kernel_says) {
  const std::string container(64, 'a');
  mine_.connection->identity = ProcessIdentity{.cgroup = "/x", .container = container, .pod = "0a1b-2c"};
  EXPECT_EQ(IdentityIn(tool_), (std::vector<std::string>{container, "0a1b-2c", ""}));
  mine_.connection->identity = ProcessIdentity{.cgroup = "/x", .job = "1234"};
  EXPECT_EQ(IdentityIn(tool_), (std::vector<std::string>{"", "", "1234"}));
  mine_.connection->identity.reset();
  EXPECT_EQ(IdentityIn(tool_), std::vector<std::string>(3));
}

TEST_F(ListedIdentityTest, moves_no_cursor_and_is_cut_to_what_a_message_has_room_for) {
  mine_.connection->identity = ProcessIdentity{.pod = "a\x1b[2J\xe2\x80\xa8" + std::string(100, 'b')};
  EXPECT_EQ(IdentityIn(tool_)[1], "a?[2J???" + std::string(55, 'b'));
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
  EXPECT_TRUE(tools_.IsAnswering(*tool_.connection));
  for (;;) {
    const bool goes_on = tools_.IsAnswering(*tool_.connection);
    while (auto packet = tool_.Receive()) {
      if (packet->header().type == ipc::MessageType::kReply) reply = packet->As<ipc::Reply>();
      listed += packet->header().type == ipc::MessageType::kQueueInfo;
    }
    if (!goes_on) break;
    ASSERT_TRUE(tools_.Continue(*tool_.connection, now_));
  }
  EXPECT_EQ(listed, ipc::kMaxQueues);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->count, ipc::kMaxQueues);
}

TEST_F(ToolsTest, a_tool_that_leaves_answers_unread_may_ask_again_when_it_has_read_them) {
  EXPECT_TRUE(tools_.MayAsk(*tool_.connection, now_));
  while (tools_.MayAsk(*tool_.connection, now_)) ASSERT_TRUE(Ask(tool_, ipc::GetStatus{}));
  EXPECT_TRUE(tools_.IsAnswering(*tool_.connection));
  EXPECT_EQ(tools_.CloseUnreading(now_), now_ + 5s);
  EXPECT_GT(tool_.ReadAll<ipc::Status>(), 5);
  ASSERT_TRUE(tools_.Continue(*tool_.connection, now_));
  EXPECT_TRUE(tools_.MayAsk(*tool_.connection, now_));
}

TEST_F(ToolsTest, a_tool_that_leaves_its_answer_unread_is_closed_after_5_s) {
  for (uint32_t index = 1; index < ipc::kMaxQueues; ++index) ASSERT_TRUE(CreateQueue(mine_, index, 0));
  EXPECT_EQ(tools_.CloseUnreading(now_), kNever);
  ASSERT_TRUE(Ask(tool_, ipc::List{}));
  ASSERT_TRUE(tools_.IsAnswering(*tool_.connection));
  EXPECT_EQ(tools_.CloseUnreading(now_ + 4999ms), now_ + 5s);
  EXPECT_FALSE(tool_.connection->closed);
  now_ += 4s;
  tool_.Receive();
  ASSERT_TRUE(tools_.Continue(*tool_.connection, now_)) << "it has read a little";
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
  EXPECT_FALSE(tools_.Continue(*tool_.connection, now_));
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

TEST_F(ToolsTest, an_agent_of_many_queues_is_sent_their_hints_in_parts) {
  constexpr auto kQueues = static_cast<uint32_t>(kMaxHintsPerRound + 1);
  for (uint32_t index = 1; index < kQueues; ++index) ASSERT_TRUE(CreateQueue(mine_, index, 0));
  EXPECT_EQ(Answer(tool_, Priority(100, 7)).count, kQueues);
  EXPECT_EQ(mine_.ReadAll<ipc::QueueHints>(), kMaxHintsPerRound);
  EXPECT_EQ(agents_.SendUnsent(AgentOf(mine_)), 1u);
  EXPECT_EQ(mine_.ReadAll<ipc::QueueHints>(), 1);
  EXPECT_EQ(agents_.SendUnsent(AgentOf(mine_)), 0u);
}

TEST_F(ToolsTest, a_long_list_is_sent_in_parts_however_fast_the_tool_reads) {
  constexpr auto kQueues = static_cast<uint32_t>(kMaxListedPerRound + 1);
  for (uint32_t index = 1; index < kQueues; ++index) ASSERT_TRUE(CreateQueue(mine_, index, 0));
  const int roomy = 1 << 20;
  ASSERT_EQ(setsockopt(tool_.connection->socket.get(), SOL_SOCKET, SO_SNDBUF, &roomy, sizeof roomy), 0);
  ASSERT_TRUE(Ask(tool_, ipc::List{}));
  EXPECT_EQ(tool_.ReadAll<ipc::QueueInfo>(), kMaxListedPerRound);
  ASSERT_TRUE(tools_.IsAnswering(*tool_.connection));
  ASSERT_TRUE(tools_.Continue(*tool_.connection, now_));
  EXPECT_EQ(tool_.ReadAll<ipc::QueueInfo>(), 1);
  EXPECT_FALSE(tools_.IsAnswering(*tool_.connection));
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

TEST_F(ToolsTest, a_processs_many_queues_are_changed_in_parts_and_answered_once) {
  constexpr auto kQueues = static_cast<uint32_t>(2 * kMaxChangedPerRound + 1);
  for (uint32_t index = 1; index < kQueues; ++index) ASSERT_TRUE(CreateQueue(mine_, index, 0));
  const auto changed = [&] {
    size_t count = 0;
    for (const auto& [index, queue] : AgentOf(mine_).queues) count += queue.hints.priority == 7;
    return count;
  };
  ASSERT_TRUE(Ask(tool_, Priority(100, 7)));
  EXPECT_EQ(changed(), kMaxChangedPerRound);
  for (size_t parts = 2; parts <= 3; ++parts) {
    ASSERT_TRUE(tools_.IsAnswering(*tool_.connection));
    EXPECT_FALSE(tool_.Receive()) << "not before all is done";
    ASSERT_TRUE(tools_.Continue(*tool_.connection, now_));
    EXPECT_EQ(changed(), std::min<size_t>(parts * kMaxChangedPerRound, kQueues));
  }
  EXPECT_FALSE(tools_.IsAnswering(*tool_.connection));
  const auto reply = tool_.ReceiveA<ipc::Reply>();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->count, kQueues);
  EXPECT_FALSE(tool_.Receive());
}

TEST_F(ToolsTest, reservations_of_many_queues_take_as_many_rounds_as_the_users_share_allows) {
  for (uint32_t index = 1; index < ipc::kMaxQueues; ++index) ASSERT_TRUE(CreateQueue(mine_, index, 0));
  const auto reserved = [&] {
    size_t count = 0;
    for (const auto& [index, queue] : AgentOf(mine_).queues) count += queue.hints.guarantee_us != 0;
    return count;
  };
  ipc::SetHints request{};
  request.pid = 100;
  request.mask = ipc::kHintReservation;
  request.more_hints.guarantee_us = 10'000;
  request.more_hints.period_us = 100'000;
  for (int round = 0; round < 10'000; ++round) work_.BeginRound();
  ASSERT_TRUE(Ask(tool_, request));
  EXPECT_LE(reserved(), 2u) << "each takes a look at all queues";
  while (tools_.IsAnswering(*tool_.connection)) ASSERT_TRUE(tools_.Continue(*tool_.connection, now_));
  EXPECT_EQ(reserved(), ipc::kMaxQueues);
}

TEST_F(ToolsTest, queues_that_go_while_a_processs_queues_are_changed_are_left_out) {
  constexpr auto kQueues = static_cast<uint32_t>(kMaxChangedPerRound + 10);
  for (uint32_t index = 1; index < kQueues; ++index) ASSERT_TRUE(CreateQueue(mine_, index, 0));
  ASSERT_TRUE(Ask(tool_, Priority(100, 7)));
  ASSERT_TRUE(tools_.IsAnswering(*tool_.connection));
  connections_.Close(*mine_.connection, nullptr);
  RemoveClosed();
  ASSERT_TRUE(tools_.Continue(*tool_.connection, now_));
  const auto reply = tool_.ReceiveA<ipc::Reply>();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->count, kMaxChangedPerRound);
}

TEST_F(ToolsTest,
       an_answer_that_the_buffer_has_no_room_for_comes_when_the_tool_has_read_and_changes_nothing_again) {
  while (tool_.connection->Send(ipc::Wake{})) {
  }
  ASSERT_TRUE(Ask(tool_, Priority(100, 7)));
  EXPECT_TRUE(tools_.IsAnswering(*tool_.connection));
  EXPECT_EQ(Answer(admin_, Priority(100, 9)).count, 1u);
  tool_.ReadAll<ipc::Wake>();
  ASSERT_TRUE(tools_.Continue(*tool_.connection, now_));
  EXPECT_EQ(tool_.ReadAll<ipc::Reply>(), 1);
  EXPECT_EQ(PriorityOf(mine_), 9);
}

TEST_F(ToolsTest, hints_out_of_range_change_nothing) {
  EXPECT_EQ(Answer(tool_, Priority(100, PRIORITY_MAX + 1)).result,
            static_cast<uint32_t>(kXSchedErrorInvalidValue));
  ipc::SetHints unknown = Priority(100, 7);
  unknown.mask = 1u << 30;
  EXPECT_EQ(Answer(tool_, unknown).result, static_cast<uint32_t>(kXSchedErrorInvalidValue));
  EXPECT_EQ(PriorityOf(mine_), 0);
}

TEST_F(ToolsTest, a_config_is_asked_of_the_agent_where_the_user_may_and_only_what_is_named) {
  ipc::SetConfig request{};
  request.pid = 100;
  request.level = kPreemptLevelDeactivate;
  EXPECT_EQ(Answer(tool_, request).count, 1u);
  auto sent = mine_.ReceiveA<ipc::QueueConfig>();
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->level, static_cast<uint32_t>(kPreemptLevelDeactivate));
  EXPECT_EQ(sent->threshold, 0);
  EXPECT_EQ(sent->handle, AgentOf(mine_).queues.at(0).handle);
  EXPECT_NE(AgentOf(mine_).queues.at(0).level, static_cast<uint32_t>(kPreemptLevelDeactivate))
      << "it is what the agent reports";
  request.pid = 200;
  EXPECT_EQ(Answer(tool_, request).result, static_cast<uint32_t>(kXSchedErrorNotFound));
  EXPECT_FALSE(theirs_.Receive());
}

TEST_F(ToolsTest, configs_that_the_agents_buffer_has_no_room_for_are_sent_as_one_when_it_has_read) {
  while (mine_.connection->Send(ipc::Wake{})) {
  }
  ipc::SetConfig request{};
  request.pid = 100;
  request.level = kPreemptLevelBlock;
  EXPECT_EQ(Answer(tool_, request).count, 1u);
  request.level = 0;
  request.batch_size = 1;
  EXPECT_EQ(Answer(tool_, request).count, 1u);
  EXPECT_EQ(mine_.ReadAll<ipc::QueueConfig>(), 0);
  agents_.SendUnsent(AgentOf(mine_));
  auto sent = mine_.ReceiveA<ipc::QueueConfig>();
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->level, static_cast<uint32_t>(kPreemptLevelBlock));
  EXPECT_EQ(sent->batch_size, 1);
  EXPECT_FALSE(mine_.Receive()) << "once";
}

TEST_F(ToolsTest, a_config_that_an_older_agent_would_ignore_is_not_said_to_be_changed) {
  const Client older = ConnectAgent({300, kUser.uid, {}}, /*job=*/0, /*minor=*/2);
  ASSERT_TRUE(CreateQueue(older, 0, 0));
  ASSERT_TRUE(CreateQueue(older, 1, 0));
  ipc::SetConfig request{};
  request.pid = 300;
  request.threshold = 4;
  const ipc::Reply reply = Answer(tool_, request);
  EXPECT_EQ(reply.result, static_cast<uint32_t>(kXSchedErrorNotSupported));
  EXPECT_EQ(reply.count, 0u);
  EXPECT_EQ(std::string(reply.text).find("2 of 2 queues"), 0u) << reply.text;
  EXPECT_FALSE(older.Receive());
}

TEST_F(ToolsTest, configs_out_of_range_change_nothing) {
  ipc::SetConfig request{};
  request.pid = 100;
  EXPECT_EQ(Answer(tool_, request).result, static_cast<uint32_t>(kXSchedErrorInvalidValue)) << "nothing";
  for (auto [level, threshold, batch_size] :
       {std::array<int64_t, 3>{kPreemptLevelMax, 0, 0}, {0, -1, 0}, {0, 0, -1}, {0, 4, 8}}) {
    request.level = static_cast<uint32_t>(level);
    request.threshold = threshold;
    request.batch_size = batch_size;
    EXPECT_EQ(Answer(tool_, request).result, static_cast<uint32_t>(kXSchedErrorInvalidValue));
  }
  EXPECT_FALSE(mine_.Receive());
}

TEST_F(ToolsTest, the_policy_is_the_administrators) {
  ipc::SetPolicy request{};
  request.policy = kPolicyUtilizationPartition;
  EXPECT_EQ(Answer(tool_, request).result, static_cast<uint32_t>(kXSchedErrorNotAllowed));
  EXPECT_EQ(scheduler_.policy().type(), kPolicyHighestPriorityFirst);
  EXPECT_EQ(Answer(admin_, request).result, static_cast<uint32_t>(kXSchedSuccess));
  EXPECT_EQ(scheduler_.policy().type(), kPolicyUtilizationPartition);
}

TEST_F(ToolsTest, a_chain_of_policies_is_set_and_shown) {
  ipc::SetPolicy request{};
  request.policy = kPolicyUtilizationPartition;
  ipc::SetText(request.setting, std::string_view("HPF/cfs:process"));
  request.at_a_time = 4;
  EXPECT_EQ(Answer(admin_, request).result, static_cast<uint32_t>(kXSchedSuccess));
  ASSERT_TRUE(Ask(tool_, ipc::GetStatus{}));
  auto status = tool_.ReceiveA<ipc::Status>();
  ASSERT_TRUE(status);
  EXPECT_STREQ(status->setting, "HPF/CFS:process");
  EXPECT_EQ(status->policy, static_cast<uint32_t>(kPolicyHighestPriorityFirst));
  EXPECT_EQ(status->at_a_time, 4u);
}

TEST_F(ToolsTest, a_setting_that_makes_no_sense_is_answered_and_changes_nothing) {
  ipc::SetPolicy request{};
  for (const char* text : {"HPF/", "NONE", "HPF:all", "UP/UP/UP/UP", "/"}) {
    ipc::SetText(request.setting, std::string_view(text));
    EXPECT_EQ(Answer(admin_, request).result, static_cast<uint32_t>(kXSchedErrorNotSupported)) << text;
  }
  memset(request.setting, 'A', sizeof request.setting);  // without an end
  EXPECT_EQ(Answer(admin_, request).result, static_cast<uint32_t>(kXSchedErrorNotSupported));
  ipc::SetPolicy k{};
  k.at_a_time = sched::kMostAtATime + 1;
  EXPECT_EQ(Answer(admin_, k).result, static_cast<uint32_t>(kXSchedErrorInvalidValue));
  EXPECT_EQ(scheduler_.setting(), *sched::FindPolicy(kPolicyHighestPriorityFirst));
  EXPECT_EQ(scheduler_.at_a_time(), 1u);
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
