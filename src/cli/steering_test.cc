// xsched beside a real server with queues: looks, hints, policies, and who may.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/fd.h"
#include "base/system_calls.h"
#include "cli/exit_codes.h"
#include "cli/server_session.h"
#include "cli/testing/tool.h"
#include "cli/top/looks.h"
#include "server/testing/server_process.h"
#include "server/testing/test_client.h"

namespace xsched::cli::testing {
namespace {

using nlohmann::json;
using server::testing::ServerProcess;
using server::testing::TempFolder;
using server::testing::TestAgent;
using server::testing::TestTool;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr uid_t kStranger = 54321;
constexpr uint32_t kGeneration = 7;  // so that no handle is the number of a queue

class Steering : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(server_.ready()) << server_.errors();
    agent_ = std::make_unique<TestAgent>(server_.socket());
    agent_->SetGeneration(kGeneration);
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

TEST_F(Steering, list_shows_which_queues_are_held) {
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
  EXPECT_EQ(Queues()[0]["weight"], WEIGHT_DEFAULT);
  EXPECT_EQ(Run({"hint", "--queue", second, "--weight", "300"}).out, "1 queue changed\n");
  EXPECT_EQ(Queues()[1]["weight"], 300);
  EXPECT_EQ(
      Run({"hint", "--queue", second, "--guarantee-us", "2000", "--period-us", "10000", "--limit-us", "5000"})
          .out,
      "1 queue changed\n");
  EXPECT_EQ(Queues()[1]["guarantee_us"], 2000);
  EXPECT_EQ(Queues()[1]["period_us"], 10000);
  EXPECT_EQ(Queues()[1]["limit_us"], 5000);
  EXPECT_EQ(Queues()[1]["burst_us"], 0);
  EXPECT_EQ(Run({"hint", "--queue", second, "--latency-target-us", "20000", "--floor", "15"}).out,
            "1 queue changed\n");
  EXPECT_EQ(Queues()[1]["latency_target_us"], 20000);
  EXPECT_EQ(Queues()[1]["floor"], 15);
  EXPECT_EQ(Queues()[0]["floor"], FLOOR_DEFAULT);
  EXPECT_EQ(Run({"hint", "--queue", second, "--guarantee-us", "0"}).out, "1 queue changed\n");
  EXPECT_EQ(Queues()[1]["period_us"], 0);
  EXPECT_EQ(Queues()[1]["priority"], 9);
}

TEST_F(Steering, a_laxity_leaves_each_queue_its_own_urgency) {
  const std::string second = std::to_string(Queues()[1]["queue"].get<uint64_t>());
  EXPECT_EQ(Run({"hint", "--pid", std::to_string(getpid()), "--laxity-us", "5000"}).out,
            "2 queues changed\n");
  EXPECT_EQ(Queues()[0]["critical_priority"], 1);
  EXPECT_EQ(Queues()[1]["critical_priority"], 2);
  EXPECT_EQ(Queues()[1]["lax_priority"], PRIORITY_DEFAULT);
  EXPECT_EQ(Run({"hint", "-q", second, "--laxity-us", "5000", "--priority", "9"}).out, "1 queue changed\n");
  EXPECT_EQ(Run({"hint", "-q", second, "--priority", "3"}).out, "1 queue changed\n");
  EXPECT_EQ(Run({"hint", "-q", second, "--laxity-us", "700"}).out, "1 queue changed\n");
  EXPECT_EQ(Queues()[1]["laxity_us"], 700);
  EXPECT_EQ(Queues()[1]["critical_priority"], 9) << "those of a laxity that it has";
  EXPECT_EQ(Queues()[0]["critical_priority"], 1);
}

TEST_F(Steering, a_deadline_and_a_laxity_can_be_taken_away) {
  const std::string queue = std::to_string(Queues()[0]["queue"].get<uint64_t>());
  EXPECT_EQ(Run({"hint", "-q", queue, "--deadline-us", "700", "--laxity-us", "300"}).status, kExitOk);
  EXPECT_EQ(Queues()[0]["deadline_us"], 700);
  EXPECT_EQ(Queues()[0]["laxity_us"], 300);
  EXPECT_EQ(Run({"hint", "-q", queue, "--deadline-us", "0", "--laxity-us", "0"}).out, "1 queue changed\n");
  EXPECT_EQ(Queues()[0]["deadline_us"], NO_DEADLINE);
  EXPECT_EQ(Queues()[0]["laxity_us"], NO_LAXITY);
}

TEST_F(Steering, hint_of_no_process_is_refused_before_anything_is_set) {
  Outcome outcome = Run({"hint", "--pid", "-5", "--priority", "1", "--timeslice", "900"});
  EXPECT_EQ(outcome.status, kExitUsage);
  EXPECT_THAT(outcome.errors, HasSubstr("-5 is no process"));
  EXPECT_THAT(Run({"policy", "show"}).out, HasSubstr("timeslice 5000"));
}

TEST_F(Steering, hint_of_a_queue_that_is_not_there_fails) {
  Outcome outcome = Run({"hint", "--queue", "999999", "--priority", "1"});
  const std::string no_such_queue = "xsched: there is no queue 999999 of yours (see xsched list)\n";
  EXPECT_EQ(outcome.status, kExitFailed);
  EXPECT_EQ(outcome.errors, no_such_queue);
  outcome = Run({"hint", "--queue", "999999", "--laxity-us", "1"});
  EXPECT_EQ(outcome.status, kExitFailed);
  EXPECT_EQ(outcome.errors, no_such_queue);
  EXPECT_EQ(Run({"config", "--queue", "999999", "--level", "1"}).errors, no_such_queue);
}

TEST_F(Steering, a_process_without_queues_that_the_user_may_change_is_named) {
  for (const std::vector<std::string>& change :
       {std::vector<std::string>{"hint", "--priority", "1"}, {"config", "--level", "1"}}) {
    std::vector<std::string> arguments = change;
    arguments.insert(arguments.end(), {"--pid", "999999"});
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.status, kExitFailed);
    EXPECT_EQ(outcome.errors, "xsched: process 999999 has no queue that you may change (see xsched list)\n");
  }
}

TEST_F(Steering, a_guarantee_that_the_device_cannot_keep_is_no_lack_of_permission) {
  const std::string second = std::to_string(Queues()[1]["queue"].get<uint64_t>());
  TestAgent other(server_.socket());
  ASSERT_TRUE(other.CreateQueue(0, 0) && other.IsAlive());
  const auto reserve = [&](const std::string& queue) {
    return Run({"hint", "--queue", queue, "--guarantee-us", "6000", "--period-us", "10000"});
  };
  EXPECT_EQ(reserve(second).status, kExitOk);
  const Outcome refused = reserve(std::to_string(Queues()[2]["queue"].get<uint64_t>()));
  EXPECT_EQ(refused.status, kExitFailed);
  EXPECT_THAT(refused.errors, HasSubstr("would be 120.0 % of it"));
}

// ---- lines of XSched 1.2's manual ----

TEST_F(Steering, an_address_and_a_port_of_this_machine_are_accepted_and_another_machines_are_not) {
  EXPECT_EQ(Run({"-a", "127.0.0.1", "-p", "50000", "list"}).out, Run({"list"}).out);
  EXPECT_EQ(Run({"--addr", "10.0.0.1", "list"}).status, kExitUsage);
}

TEST_F(Steering, a_queue_is_named_by_its_number_or_its_programs_handle_in_decimal_or_hexadecimal) {
  TestTool tool(server_.socket());
  const ipc::QueueInfo queue = tool.List()->at(0);
  int priority = 10;
  for (const std::string& name : {fmt::format("{}", queue.queue_id), fmt::format("{:#x}", queue.queue_id),
                                  fmt::format("{}", queue.handle), fmt::format("{:#x}", queue.handle)}) {
    ++priority;
    EXPECT_EQ(Run({"hint", "-x", name, "-p", std::to_string(priority)}).out, "1 queue changed\n") << name;
    EXPECT_EQ(tool.List()->at(0).hints.priority, priority) << name;
  }
  TestAgent same(server_.socket());
  same.SetGeneration(kGeneration);
  ASSERT_TRUE(same.CreateQueue(0, 3) && same.IsAlive());
  Outcome outcome = Run({"hint", "-x", fmt::format("{:#x}", queue.handle), "-p", "1"});
  EXPECT_EQ(outcome.status, kExitUsage);
  EXPECT_THAT(outcome.errors, HasSubstr("of several programs have the handle"));
  EXPECT_EQ(tool.List()->at(0).hints.priority, priority);
}

TEST_F(Steering, config_of_a_queue_is_asked_of_its_program) {
  TestTool tool(server_.socket());
  const std::string name = fmt::format("{:#x}", tool.List()->at(1).queue_id);
  EXPECT_EQ(Run({"config", "-x", name, "-l", "2", "-t", "4", "-b", "2"}).out, "1 queue changed\n");
  auto config = agent_->ReceiveA<ipc::QueueConfig>();
  ASSERT_TRUE(config);
  EXPECT_EQ(config->index, 1u);
  EXPECT_EQ(config->level, 2u);
  EXPECT_EQ(config->threshold, 4);
  EXPECT_EQ(config->batch_size, 2);
  EXPECT_EQ(Run({"config", "--pid", std::to_string(getpid()), "-b", "1"}).out, "2 queues changed\n");
  EXPECT_EQ(Run({"config", "-x", name, "-t", "1", "-b", "2"}).status, kExitFailed);
  EXPECT_EQ(Run({"config", "-x", name}).status, kExitUsage);
  EXPECT_EQ(Run({"config", "-l", "2"}).status, kExitUsage);
}

TEST_F(Steering, the_policy_and_the_timeslice_are_asked_for_and_set) {
  EXPECT_THAT(Run({"policy", "-q"}).out, StartsWith("policy HPF"));
  EXPECT_THAT(Run({"policy", "-s", "-n", "UP"}).out, StartsWith("policy UP"));
  EXPECT_EQ(Run({"hint", "-t", "2000"}).status, kExitOk);
  EXPECT_EQ(Run({"policy", "show"}).out, "policy UP, timeslice 2000 µs\n");
  EXPECT_EQ(Run({"policy", "-s"}).status, kExitUsage);
  EXPECT_EQ(Run({"top", "-f", "10", "--batch", "-n", "1"}).status, kExitOk);
}

TEST_F(Steering, policies_change_and_hints_stay) {
  EXPECT_THAT(Run({"policy", "show"}).out, StartsWith("policy HPF, timeslice 5000"));
  EXPECT_THAT(Run({"policy", "set", "up", "--timeslice-us", "700"}).out,
              StartsWith("policy UP, timeslice 700"));
  EXPECT_THAT(Run({"policy", "show"}).out, StartsWith("policy UP, timeslice 700"));
  EXPECT_EQ(Queues()[1]["priority"], 2);
}

TEST_F(Steering, policies_are_combined_and_decide_about_what_they_are_told_to) {
  EXPECT_THAT(Run({"policy", "set", "CFS", "--by", "process"}).out, StartsWith("policy CFS:process,"));
  EXPECT_THAT(Run({"policy", "set", "hpf/CFS:process/KEDF", "--k", "4"}).out,
              StartsWith("policy HPF/CFS:process/KEDF,"));
  EXPECT_EQ(json::parse(Run({"policy", "show", "--json"}).out),
            json({{"policy", "HPF/CFS:process/KEDF"}, {"timeslice_us", 5000}, {"k", 4}}));
  EXPECT_THAT(Run({"top", "--batch", "--count", "1"}).out, HasSubstr("policy HPF/CFS:process/KEDF"));
  Outcome of_chain = Run({"policy", "set", "HPF/CFS", "--by", "process"});
  EXPECT_EQ(of_chain.status, kExitUsage);
  EXPECT_THAT(of_chain.errors, HasSubstr("NAME:process"));
  EXPECT_EQ(Run({"policy", "set", "HPF/NONE"}).status, kExitUsage);
  EXPECT_EQ(Run({"policy", "set", "KEDF", "--k", "65"}).status, kExitUsage);
  EXPECT_THAT(Run({"policy", "show"}).out, StartsWith("policy HPF/CFS:process/KEDF, timeslice 5000 µs, k 4"));
}

TEST_F(Steering, what_each_policy_decides_about_is_listed) {
  EXPECT_THAT(Run({"policy", "list"}).out, HasSubstr("(by process; hints: utilization, timeslice)"));
  bool found = false;
  for (const json& policy : json::parse(Run({"policy", "list", "--json"}).out)) {
    if (policy["name"] != "KEDF") continue;
    found = true;
    EXPECT_EQ(policy["number"], 7);
    EXPECT_EQ(policy["by"], "queue");
    EXPECT_EQ(policy["hints"], "deadline, timeslice, k");
  }
  EXPECT_TRUE(found);
}

TEST_F(Steering, the_active_window_is_of_a_process) {
  const std::string pid = std::to_string(getpid());
  EXPECT_EQ(Run({"hint", "--pid", pid, "--window-active"}).out,
            "the active window of display 0: process " + pid + ", queues: 2\n");
  EXPECT_EQ(Run({"hint", "--pid", "0", "--window-active", "3"}).out,
            "the active window of display 3: process 0, queues: 0\n");
  EXPECT_EQ(Run({"hint", "--window-active"}).status, kExitUsage);
}

TEST_F(Steering, top_prints_as_many_looks_as_asked_for_with_the_rates_of_each) {
  Outcome outcome = Run({"top", "--batch", "--count", "2", "--delay", "0.1"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.errors;
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 2 * (2 + 2));
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("policy HPF"), HasSubstr("test-client"), HasSubstr("idle")));
}

TEST_F(Steering, top_says_the_same_in_sentences_for_screen_readers_and_where_the_cursor_cannot_move) {
  const auto says = AllOf(StartsWith("xserver "), HasSubstr("\nNobody waited in the last "),
                          HasSubstr("\ntest-client, pid "), HasSubstr(", idle: 0.0 percent of "));
  EXPECT_THAT(Run({"top", "--plain", "--count", "1", "--delay", "0.1"}).out, says);
  EXPECT_THAT(RunXsched({"top", "--count", "1", "--delay", "0.1"},
                        {{"XSCHED_SOCKET", server_.socket().text}, {"TERM", "dumb"}})
                  .out,
              says);
  EXPECT_EQ(Run({"top", "--plain", "--batch"}).status, kExitUsage);
}

TEST_F(Steering, top_still_shows_the_device_time_of_a_queue_that_is_gone) {
  agent_->Submit(1);
  ASSERT_TRUE(server::testing::Eventually([&] { return Queues()[1]["service_ns"] > 0; }));
  agent_->RetireAll(1);
  ASSERT_TRUE(agent_->DestroyQueue(1));
  ASSERT_TRUE(agent_->IsAlive());
  const std::string out = Run({"top", "--plain", "--count", "1", "--delay", "0.1"}).out;
  EXPECT_THAT(out, HasSubstr(" of device time so far."));
  EXPECT_THAT(out, Not(HasSubstr(" 0 µs of device time so far.")));
}

TEST(SteeringTenants, top_shows_the_device_time_of_a_tenant_of_the_tenants_file) {
  TempFolder folder;
  const std::string file = folder.path() + "/tenants.toml";
  std::ofstream(file) << "[[tenant]]\nname = 'lab'\nusers = [" << geteuid() << "]\n";
  const ServerProcess server(XSERVER_PROGRAM, folder.path() + "/s", {"--system", "--tenants", file});
  ASSERT_TRUE(server.ready()) << server.errors();
  TestAgent agent(server.socket());
  ASSERT_TRUE(agent.CreateQueue(0, 0));
  ASSERT_TRUE(agent.IsAlive());
  EXPECT_THAT(RunXsched({"top", "--plain", "--count", "1", "--delay", "0.1"},
                        {{"XSCHED_SOCKET", server.socket().text}})
                  .out,
              HasSubstr("\nTenant lab: 0.0 percent of a device.\n"));
}

TEST_F(Steering, looks_of_top_at_the_past_follow_each_other_also_if_the_server_is_slow) {
  setenv("XSCHED_SOCKET", server_.socket().text, 1);
  Looks looks(std::chrono::milliseconds(100));
  unsetenv("XSCHED_SOCKET");
  kill(server_.pid(), SIGSTOP);
  TimePoint went_on;
  std::jthread later([&] {
    SleepFor(std::chrono::milliseconds(100));
    went_on = MonotonicClock::now();
    kill(server_.pid(), SIGCONT);
  });
  looks.Look();
  later.join();
  looks.Look();
  EXPECT_LE(looks.recent().span(), MonotonicClock::now() - went_on)
      << "what was before that, the look before has shown";
}

TEST_F(Steering, top_needs_a_terminal_unless_in_batch_mode) {
  Outcome outcome = Run({"top"});
  EXPECT_EQ(outcome.status, kExitFailed);
  EXPECT_THAT(outcome.errors, HasSubstr("--batch"));
}

// A program whose terminal goes away, and which does not hear of it by SIGHUP.
pid_t StartOnTerminal(int terminal, const std::string& socket) {
  const pid_t child = fork();
  if (child != 0) return child;
  signal(SIGHUP, SIG_IGN);
  setsid();
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(terminal, fd);
  CloseDescriptors(STDERR_FILENO + 1);
  setenv("XSCHED_SOCKET", socket.c_str(), 1);
  setenv("TERM", "xterm", 1);
  execl(XSCHED_PROGRAM, "xsched", "top", "--delay", "0.1", nullptr);
  _exit(125);
}

TEST_F(Steering, top_ends_when_its_terminal_is_gone) {
  UniqueFd ours(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_EQ(grantpt(ours.get()) | unlockpt(ours.get()), 0);
  UniqueFd theirs(open(ptsname(ours.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  const pid_t top = StartOnTerminal(theirs.get(), server_.socket().text);
  theirs.Reset();
  std::string shown;
  char piece[4096];
  while (shown.find("test-client") == std::string::npos) {
    const ssize_t size = read(ours.get(), piece, sizeof piece);
    ASSERT_GT(size, 0) << shown;
    shown.append(piece, static_cast<size_t>(size));
  }
  ours.Reset();
  int status = 0;
  const bool has_ended = server::testing::Eventually([&] { return waitpid(top, &status, WNOHANG) == top; },
                                                     std::chrono::seconds(20));
  if (!has_ended) kill(top, SIGKILL);
  EXPECT_TRUE(has_ended && WIFEXITED(status) && WEXITSTATUS(status) == kExitFailed) << status;
}

TEST_F(Steering, top_ends_when_its_output_cannot_be_written) {
  const std::string command = fmt::format("{} top --batch --delay 0.1 > /dev/full", XSCHED_PROGRAM);
  setenv("XSCHED_SOCKET", server_.socket().text, 1);
  const int status = std::system(("timeout 20 " + command).c_str());
  unsetenv("XSCHED_SOCKET");
  EXPECT_EQ(WEXITSTATUS(status), kExitFailed);
}

TEST_F(Steering, an_answer_that_comes_too_late_is_not_taken_for_the_next_one) {
  setenv("XSCHED_SOCKET", server_.socket().text, 1);
  ServerSession session(std::chrono::milliseconds(500));
  unsetenv("XSCHED_SOCKET");
  server_.Signal(SIGSTOP);
  EXPECT_THROW(session.List(), CommandError);
  server_.Signal(SIGCONT);
  try {
    session.Status();
    ADD_FAILURE() << "it has an answer";
  } catch (const CommandError& error) {
    EXPECT_EQ(error.code, kExitNoServer) << error.what();
  }
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

TEST_F(Steering, a_recording_of_what_was_is_as_long_as_the_server_remembers) {
  const std::string path = folder_.path() + "/last.xrec";
  const Outcome outcome = Run({"record", "--last", "100000", "--output", path});
  ASSERT_EQ(outcome.status, kExitOk) << outcome.errors;
  EXPECT_THAT(outcome.errors, HasSubstr("the server remembers the last "));
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  ASSERT_GE(lines.size(), 2u);
  constexpr int64_t kLongAgo = 1000'000'000'000;  // ns, and more than this test takes
  EXPECT_LT(json::parse(lines.back())["t"].get<int64_t>(), kLongAgo) << lines.back();
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  EXPECT_GT(json::parse(lines.front())["recorded"]["started_unix_ns"].get<int64_t>(),
            Duration(now).count() - kLongAgo);
}

// Its output would go into whatever is opened first.
TEST_F(Steering, without_standard_output_a_command_says_nothing_to_the_server) {
  const Outcome outcome =
      RunShell("\"$0\" top --batch --count 1 >&-", {{"XSCHED_SOCKET", server_.socket().text}});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.errors;
  EXPECT_EQ(Queues().size(), 2u);
  EXPECT_THAT(server_.errors(), ::testing::Not(HasSubstr("malformed")));
}

TEST(WithoutHistory, top_and_explain_say_that_the_server_remembers_nothing) {
  const TempFolder folder;
  const ServerProcess server(XSERVER_PROGRAM, folder.path() + "/s", {"--user", "--history", "0"});
  ASSERT_TRUE(server.ready()) << server.errors();
  const Environment environment = {{"XSCHED_SOCKET", server.socket().text}};
  const std::string top = RunXsched({"top", "--plain", "--count=1", "--delay=0.1"}, environment).out;
  EXPECT_THAT(top, AllOf(HasSubstr("the server remembers nothing"), Not(HasSubstr("Nobody waited"))));
  const Outcome explain = RunXsched({"explain"}, environment);
  EXPECT_EQ(explain.status, kExitFailed);
  EXPECT_EQ(explain.out, "");
  EXPECT_THAT(explain.errors, HasSubstr("the server remembers nothing of this time"));
}

}  // namespace
}  // namespace xsched::cli::testing
