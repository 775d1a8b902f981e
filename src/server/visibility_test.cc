// Which users see and hint which queues. Needs root, to act as other users.
#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <thread>

#include "sched/core/scheduler.h"
#include "server/testing/server_fixture.h"

namespace xsched::server::testing {
namespace {

constexpr uid_t kAlice = 54321;
constexpr uid_t kBob = 54322;
constexpr gid_t kAdminGroup = 0;  // root's: a group that exists everywhere

class Visibility : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
    ASSERT_TRUE(server_.ready()) << server_.errors();
  }
  // Runs `check` in a process of that user; true: it returned true.
  static bool As(uid_t user, std::vector<gid_t> groups, const std::function<bool()>& check) {
    pid_t child = fork();
    if (child == 0) {
      bool became = setgroups(groups.size(), groups.data()) == 0 && setgid(user) == 0 && setuid(user) == 0;
      _exit(became && check() ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  TempFolder folder_;
  ServerProcess server_{kServerProgram, folder_.path() + "/s", {"--system", "--admin-group", "root"}};
};

TEST_F(Visibility, users_see_and_hint_their_own_queues_only) {
  TestAgent roots(server_.socket());
  ASSERT_TRUE(roots.CreateQueue(0, 0));
  ASSERT_TRUE(roots.IsAlive());
  auto socket = server_.socket();
  auto roots_queues = TestTool(socket).List();
  ASSERT_TRUE(roots_queues && roots_queues->size() == 1);
  uint64_t roots_queue = roots_queues->front().queue_id;
  EXPECT_TRUE(As(kAlice, {}, [&] {
    TestAgent agent(socket);
    TestTool tool(socket);
    if (!agent.CreateQueue(0, 0) || !agent.IsAlive()) return false;
    auto queues = tool.List();
    return queues && queues->size() == 1 && queues->front().uid == kAlice &&
           tool.SetPriority(queues->front().queue_id, 7)->result == kXSchedSuccess &&
           tool.List()->front().hints.priority == 7 &&
           tool.SetPriority(roots_queue, 7)->result == kXSchedErrorNotFound;
  }));
  EXPECT_TRUE(As(kBob, {}, [&] { return TestTool(socket).List()->empty(); }));
  EXPECT_EQ(TestTool(socket).List()->front().hints.priority, 0);
}

TEST_F(Visibility, the_reason_of_a_hold_names_only_queues_that_the_caller_may_see) {
  TestAgent roots(server_.socket());
  ASSERT_TRUE(roots.CreateQueue(0, 10));
  ASSERT_TRUE(roots.IsAlive());
  auto socket = server_.socket();
  std::jthread at_work([&roots](const std::stop_token& stop) {
    roots.Submit(0);
    for (; !stop.stop_requested(); usleep(1000)) {
      roots.Submit(0);
      roots.block(0).retired.fetch_add(1, std::memory_order_release);
      roots.ReadAll();
    }
  });
  EXPECT_TRUE(As(kAlice, {}, [&] {
    TestAgent agent(socket);
    agent.CreateQueue(0, 0);
    agent.Submit(0);
    if (!Eventually([&] { return agent.IsHeld(0); })) return false;
    auto queues = TestTool(socket).List();
    return queues && queues->size() == 1 &&
           queues->front().wait_reason == static_cast<uint32_t>(sched::WaitReason::kHeld) &&
           queues->front().waits_for_queue == 0 &&
           queues->front().waits_for_pid == ipc::kWaitsForAnotherUser &&
           queues->front().waits_for_name[0] == '\0';
  }));
}

TEST_F(Visibility, only_administrators_set_the_policy_and_the_timeslice) {
  auto socket = server_.socket();
  EXPECT_TRUE(As(kAlice, {}, [&] {
    TestTool tool(socket);
    TestAgent agent(socket);
    ipc::TimesliceHint hint{};
    hint.timeslice_us = 9000;
    ipc::KDeadlineHint k{};
    k.at_a_time = 4;
    return tool.Status()->is_admin == 0 &&
           tool.SetPolicy(kPolicyUtilizationPartition)->result == kXSchedErrorNotAllowed &&
           agent.Send(hint) && agent.Send(k) && agent.IsAlive() &&
           tool.Status()->timeslice_us == TIMESLICE_DEFAULT && tool.Status()->at_a_time == 1;
  }));
  EXPECT_EQ(TestTool(socket).SetPolicy(kPolicyUtilizationPartition, 9000)->result, kXSchedSuccess);
  EXPECT_EQ(TestTool(socket).Status()->timeslice_us, 9000);
  TestAgent admins(socket);
  ipc::KDeadlineHint k{};
  k.at_a_time = 4;
  ASSERT_TRUE(admins.Send(k) && admins.IsAlive());
  EXPECT_EQ(TestTool(socket).Status()->at_a_time, 4u);
}

TEST_F(Visibility, members_of_the_admin_group_may_do_everything) {
  TestAgent roots(server_.socket());
  ASSERT_TRUE(roots.CreateQueue(0, 0));
  ASSERT_TRUE(roots.IsAlive());
  auto socket = server_.socket();
  EXPECT_TRUE(As(kBob, {4242, kAdminGroup}, [&] {
    TestTool tool(socket);
    auto queues = tool.List();
    return tool.Status()->is_admin == 1 && queues && queues->size() == 1 &&
           tool.SetPriority(queues->front().queue_id, 3)->result == kXSchedSuccess &&
           tool.SetPolicy(kPolicyUtilizationPartition)->result == kXSchedSuccess;
  }));
  EXPECT_EQ(TestTool(socket).List()->front().hints.priority, 3);
}

TEST_F(Visibility, one_user_cannot_use_up_what_the_others_need) {
  auto socket = server_.socket();
  EXPECT_TRUE(As(kAlice, {}, [&] {
    std::vector<std::unique_ptr<TestAgent>> agents;
    bool refused = false;
    for (int i = 0; i < 9 && !refused; ++i) {
      auto& agent = agents.emplace_back(std::make_unique<TestAgent>(socket));
      for (uint32_t index = 0; index < ipc::kMaxQueues; ++index) agent->CreateQueue(index, 0);
      refused = !agent->IsAlive();
    }
    return refused;
  }));
  // Not at once: under a sanitizer, the server takes seconds to forget all of Alice's queues.
  EXPECT_TRUE(Eventually(
      [&] {
        return As(kBob, {}, [&] {
          TestAgent agent(socket);
          return agent.CreateQueue(0, 0) && agent.IsAlive();
        });
      },
      std::chrono::seconds(20)));
}

}  // namespace
}  // namespace xsched::server::testing
