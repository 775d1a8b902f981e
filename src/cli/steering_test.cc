// xsched beside a real server with queues: looks, hints, policies, and who may.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "cli/exit_codes.h"
#include "cli/testing/tool.h"
#include "server/testing/server_process.h"
#include "server/testing/test_client.h"

namespace xsched::cli::testing {
namespace {

using nlohmann::json;
using server::testing::ServerProcess;
using server::testing::TempFolder;
using server::testing::TestAgent;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr uid_t kStranger = 54321;

class Steering : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(server_.ready()) << server_.errors();
    agent_ = std::make_unique<TestAgent>(server_.socket());
    ASSERT_TRUE(agent_->CreateQueue(0, 1));
    ASSERT_TRUE(agent_->CreateQueue(1, 2));
    ASSERT_TRUE(agent_->IsAlive());
  }
  Outcome Run(const std::vector<std::string>& arguments, uid_t user = 0) {
    return RunXsched(arguments, {{"XSCHED_SOCKET", server_.socket().text}}, user);
  }
  json Queues(const std::vector<std::string>& filter = {}, uid_t user = 0) {
    std::vector<std::string> arguments = {"list", "--json"};
    arguments.insert(arguments.end(), filter.begin(), filter.end());
    return json::parse(Run(arguments, user).out);
  }

  TempFolder folder_;
  ServerProcess server_{XSERVER_PROGRAM, folder_.path() + "/s", {"--system"}};
  std::unique_ptr<TestAgent> agent_;
};

TEST_F(Steering, list_shows_each_queue_in_JSON_and_as_a_row) {
  json queues = Queues();
  ASSERT_EQ(queues.size(), 2u);
  EXPECT_EQ(queues[0]["priority"], 1);
  EXPECT_EQ(queues[1]["priority"], 2);
  EXPECT_EQ(queues[0]["pid"], getpid());
  EXPECT_EQ(queues[0]["process"], "test-client");
  EXPECT_EQ(queues[0]["state"], "idle");
  std::string table = Run({"list"}).out;
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 3);
  EXPECT_THAT(table, HasSubstr("test-client"));
}

// Keeps a queue at work: one that shows no progress loses its claim sooner than a busy machine starts a tool.
class AtWork {
 public:
  AtWork(TestAgent& agent, uint32_t queue)
      : thread_([&agent, queue](const std::stop_token& stop) {
          agent.Submit(queue);
          for (; !stop.stop_requested(); usleep(1000)) {
            agent.Submit(queue);
            agent.block(queue).retired.fetch_add(1, std::memory_order_release);
          }
        }) {}

 private:
  std::jthread thread_;
};

TEST_F(Steering, list_shows_who_is_held) {
  agent_->Submit(0);
  AtWork urgent(*agent_, 1);
  ASSERT_TRUE(server::testing::Eventually([&] { return agent_->IsHeld(0) && !agent_->IsHeld(1); }));
  json queues = Queues();
  EXPECT_EQ(queues[0]["state"], "held");
  EXPECT_EQ(queues[1]["state"], "run");
}

TEST_F(Steering, list_says_why_a_queue_with_work_does_not_run) {
  agent_->Submit(0);
  for (const json& queue : Queues()) {
    EXPECT_EQ(queue["why"], "");
    EXPECT_EQ(queue["waits_for"], nullptr);
  }
  ipc::QueueAbsent absent{};
  absent.absent = 1;
  ASSERT_TRUE(agent_->Send(absent));
  ASSERT_TRUE(agent_->IsAlive());
  EXPECT_EQ(Queues()[0]["why"], "suspended by the program");
  EXPECT_EQ(Queues()[0]["state"], "suspended");
  EXPECT_EQ(Queues()[1]["why"], "") << "it has no work";
  EXPECT_THAT(Run({"list"}).out, AllOf(HasSubstr("  WHY\n"), HasSubstr("  suspended by the program\n")));
  EXPECT_THAT(Run({"top", "--batch", "--count", "1", "--delay", "0.1"}).out,
              HasSubstr(": suspended by the program\n"));
}

TEST_F(Steering, list_names_the_queue_that_another_is_held_for) {
  agent_->Submit(0);
  AtWork urgent(*agent_, 1);
  ASSERT_TRUE(server::testing::Eventually([&] { return agent_->IsHeld(0) && !agent_->IsHeld(1); }));
  json queues = Queues();
  EXPECT_EQ(queues[0]["waits_for"], queues[1]["queue"]);
  EXPECT_THAT(queues[0]["why"].get<std::string>(),
              StartsWith("held for queue " + std::to_string(queues[1]["queue"].get<uint64_t>()) +
                         " (test-client, pid " + std::to_string(getpid()) + ") since "));
}

TEST_F(Steering, list_says_of_a_process_that_it_is_stopped_or_does_not_answer) {
  pid_t child = fork();
  if (child == 0) {
    TestAgent other(server_.socket());
    other.CreateQueue(0, 9);
    other.Submit(0, 1'000'000);
    for (;; usleep(1000)) other.block(0).retired.fetch_add(1);
  }
  agent_->Submit(0);
  auto why = [&] { return Queues({"--pid", std::to_string(child)})[0]["why"].get<std::string>(); };
  EXPECT_TRUE(server::testing::Eventually([&] {
    agent_->ReadAll();
    return Queues({"--pid", std::to_string(child)}).size() == 1 && why() == "process does not answer";
  }));
  kill(child, SIGSTOP);
  EXPECT_TRUE(server::testing::Eventually([&] {
    agent_->ReadAll();
    return why() == "process stopped";
  }));
  EXPECT_EQ(Queues({"--pid", std::to_string(child)})[0]["state"], "stopped");
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_F(Steering, list_leaves_out_what_was_not_asked_for) {
  EXPECT_EQ(Queues({"--pid", std::to_string(getpid())}).size(), 2u);
  EXPECT_EQ(Queues({"--pid", "1"}).size(), 0u);
  EXPECT_EQ(Queues({"--mine"}).size(), 2u);
}

TEST_F(Steering, hint_changes_a_queue_or_all_of_a_process) {
  std::string second = std::to_string(Queues()[1]["queue"].get<uint64_t>());
  EXPECT_EQ(Run({"hint", "--queue", second, "--priority", "9"}).out, "1 queue changed\n");
  EXPECT_EQ(Queues()[0]["priority"], 1);
  EXPECT_EQ(Queues()[1]["priority"], 9);
  EXPECT_EQ(Run({"hint", "--pid", std::to_string(getpid()), "--utilization", "30"}).out,
            "2 queues changed\n");
  EXPECT_EQ(Queues()[0]["utilization"], 30);
  EXPECT_EQ(Queues()[1]["priority"], 9);
}

TEST_F(Steering, hint_of_a_queue_that_is_not_there_fails) {
  Outcome outcome = Run({"hint", "--queue", "999999", "--priority", "1"});
  EXPECT_EQ(outcome.status, kExitFailed);
  EXPECT_THAT(outcome.errors, HasSubstr("no such queue"));
}

TEST_F(Steering, policies_change_and_hints_stay) {
  EXPECT_THAT(Run({"policy", "show"}).out, StartsWith("policy HPF, timeslice 5000"));
  EXPECT_THAT(Run({"policy", "set", "up", "--timeslice-us", "700"}).out,
              StartsWith("policy UP, timeslice 700"));
  EXPECT_THAT(Run({"policy", "show"}).out, StartsWith("policy UP, timeslice 700"));
  EXPECT_EQ(Queues()[1]["priority"], 2);
}

TEST_F(Steering, top_prints_as_many_looks_as_asked_for_with_the_rates_of_each) {
  Outcome outcome = Run({"top", "--batch", "--count", "2", "--delay", "0.1"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.errors;
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 2 * (2 + 2));
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("policy HPF"), HasSubstr("test-client"), HasSubstr("idle")));
}

TEST_F(Steering, top_needs_a_terminal_unless_in_batch_mode) {
  Outcome outcome = Run({"top"});
  EXPECT_EQ(outcome.status, kExitFailed);
  EXPECT_THAT(outcome.errors, HasSubstr("--batch"));
}

TEST_F(Steering, another_user_sees_and_changes_nothing) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to be another user";
  std::string queue = std::to_string(Queues()[0]["queue"].get<uint64_t>());
  EXPECT_EQ(Queues({}, kStranger).size(), 0u);
  EXPECT_EQ(Run({"hint", "--queue", queue, "--priority", "9"}, kStranger).status, kExitFailed);
  Outcome policy = Run({"policy", "set", "UP"}, kStranger);
  EXPECT_EQ(policy.status, kExitNotPermitted);
  EXPECT_THAT(policy.errors, HasSubstr("only root"));
  EXPECT_EQ(Queues()[0]["priority"], 1);
  EXPECT_THAT(Run({"policy", "show"}, kStranger).out, StartsWith("policy HPF"));
}

TEST_F(Steering, run_with_a_policy_that_may_not_be_set_says_so_and_runs_the_program) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to be another user";
  Outcome outcome = Run({"run", "--policy", "UP", "--", "/bin/echo", "done"}, kStranger);
  EXPECT_EQ(outcome.status, kExitOk);
  EXPECT_EQ(outcome.out, "done\n");
  EXPECT_THAT(outcome.errors, StartsWith("xsched: policy not set: only root"));
  EXPECT_THAT(Run({"policy", "show"}).out, StartsWith("policy HPF"));
}

TEST_F(Steering, a_socket_that_the_user_may_not_use_is_not_permitted_rather_than_missing) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to be another user";
  TempFolder folder;
  ServerProcess closed(XSERVER_PROGRAM, folder.path() + "/s", {"--user", "--mode", "0600"});
  ASSERT_TRUE(closed.ready()) << closed.errors();
  Outcome outcome = RunXsched({"list"}, {{"XSCHED_SOCKET", closed.socket().text}}, kStranger);
  EXPECT_EQ(outcome.status, kExitNotPermitted);
  EXPECT_THAT(outcome.errors, Not(HasSubstr("start one")));
}

}  // namespace
}  // namespace xsched::cli::testing
