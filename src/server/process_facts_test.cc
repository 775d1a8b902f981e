// The server reads the CPU priority of processes, and is told which process has the active window.
#include "server/process_facts.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <vector>

#include "server/limits.h"
#include "server/testing/server_parts.h"

namespace xsched::server::testing {
namespace {

using namespace std::chrono_literals;

const Peer kOne{100, 1000, {}};
const Peer kTwo{200, 1000, {}};
const Peer kOfAnother{300, 1001, {}};
constexpr uid_t kUser = 1000;

class ProcessFactsTest : public ServerParts {
 protected:
  ProcessFactsTest() { cpu_priorities_.clear(); }
  void Use(XPolicyType policy) { scheduler_.SetPolicy(*sched::FindPolicy(policy)); }
  void Round() { agents_.Decide(now_); }
  Client Busy(const Peer& peer) {
    Client client = ConnectAgent(peer);
    EXPECT_TRUE(CreateQueue(client, 0, 0));
    Submit(client, 0);
    return client;
  }
};

TEST_F(ProcessFactsTest, a_renice_counts_within_a_second) {
  Use(kPolicyCPUHighestPriorityFirst);
  cpu_priorities_ = {{100, 0}, {200, 5}};
  const Client one = Busy(kOne);
  const Client two = Busy(kTwo);
  Round();
  EXPECT_TRUE(one.IsHeld(0) && !two.IsHeld(0));
  TimePoint read_at = process_facts_.Refresh(now_);
  EXPECT_LE(read_at, now_ + 1s);
  cpu_priorities_[100] = 22;
  now_ = read_at;
  process_facts_.Refresh(now_);
  Round();
  EXPECT_TRUE(!one.IsHeld(0) && two.IsHeld(0));
}

TEST_F(ProcessFactsTest, who_has_the_connection_of_a_process_that_has_ended_has_the_lowest_priority) {
  Use(kPolicyCPUHighestPriorityFirst);
  Peer peer{getpid(), 1000, {}};
  cpu_priorities_ = {{peer.pid, 22}, {200, -18}};
  peer.started = StartOf(peer.pid) - 1;  // this is another process now
  const Client ended = Busy(peer);
  const Client two = Busy(kTwo);
  Round();
  EXPECT_TRUE(ended.IsHeld(0) && !two.IsHeld(0));
  peer.started = StartOf(peer.pid);
  const Client present = Busy(peer);
  EXPECT_EQ(AgentOf(present).facts.cpu_priority, 22);
  std::vector<Agent*> found;
  agents_.ForEachOf(peer.pid, [&](Agent& agent) { found.push_back(&agent); });
  EXPECT_EQ(found, std::vector<Agent*>{&AgentOf(present)});
}

TEST_F(ProcessFactsTest, are_read_of_a_bounded_number_of_processes_in_a_round) {
  Use(kPolicyCPUHighestPriorityFirst);
  constexpr size_t kProcesses = 3 * kMaxCheckedPerRound - 1;
  std::vector<Client> clients;
  for (pid_t pid = 1; clients.size() < kProcesses; ++pid) {
    clients.push_back(ConnectAgent({pid, 1000, {}}));
    cpu_priorities_[pid] = 7;
  }
  const auto read = [&] {
    return static_cast<size_t>(std::count_if(clients.begin(), clients.end(), [&](const Client& client) {
      return AgentOf(client).facts.cpu_priority == 7;
    }));
  };
  EXPECT_EQ(process_facts_.Refresh(now_), now_);
  EXPECT_EQ(read(), kMaxCheckedPerRound);
  EXPECT_EQ(process_facts_.Refresh(now_), now_);
  EXPECT_EQ(read(), 2 * kMaxCheckedPerRound);
  EXPECT_EQ(process_facts_.Refresh(now_), now_ + 1s);
  EXPECT_EQ(read(), kProcesses);
}

TEST_F(ProcessFactsTest, are_read_by_time_only_for_policies_that_use_them) {
  EXPECT_EQ(process_facts_.Refresh(now_), kNever);
}

TEST_F(ProcessFactsTest, the_active_window_is_of_one_process_of_a_display) {
  Use(kPolicyActiveWindowFirst);
  const Client one = Busy(kOne);
  const Client two = Busy(kTwo);
  EXPECT_EQ(process_facts_.SetActiveWindow(kUser, 0, 100), 1);
  Round();
  EXPECT_TRUE(!one.IsHeld(0) && two.IsHeld(0));
  EXPECT_EQ(process_facts_.SetActiveWindow(kUser, 0, 200), 1);
  Round();
  EXPECT_TRUE(one.IsHeld(0) && !two.IsHeld(0));
  EXPECT_EQ(process_facts_.SetActiveWindow(kUser, 1, 100), 1);
  Round();
  EXPECT_TRUE(!one.IsHeld(0) && !two.IsHeld(0)) << "each display has its own";
  EXPECT_EQ(process_facts_.SetActiveWindow(kUser, 0, 0), 0);
  Round();
  EXPECT_TRUE(!one.IsHeld(0) && two.IsHeld(0)) << "display 0 has none now";
}

TEST_F(ProcessFactsTest, an_active_window_may_be_of_a_process_that_has_no_queue_yet) {
  Use(kPolicyActiveWindowFirst);
  const Client two = Busy(kTwo);
  EXPECT_EQ(process_facts_.SetActiveWindow(kUser, 0, 100), 0);
  const Client one = Busy(kOne);
  Round();
  EXPECT_TRUE(!one.IsHeld(0) && two.IsHeld(0));
}

TEST_F(ProcessFactsTest, a_users_displays_say_nothing_of_the_processes_of_others) {
  Use(kPolicyActiveWindowFirst);
  const Client one = Busy(kOne);
  const Client other = Busy(kOfAnother);
  EXPECT_EQ(process_facts_.SetActiveWindow(kUser, 0, 300), 0);
  Round();
  EXPECT_FALSE(one.IsHeld(0));
  for (uint32_t display = 1; display < kMaxDisplaysOfUser; ++display)
    EXPECT_GE(process_facts_.SetActiveWindow(kUser, display, 100), 0);
  EXPECT_LT(process_facts_.SetActiveWindow(kUser, kMaxDisplaysOfUser, 100), 0) << "too many";
  EXPECT_GE(process_facts_.SetActiveWindow(kOfAnother.uid, 0, 300), 0);
}

TEST_F(ProcessFactsTest, tools_set_windows_of_their_own_users_displays) {
  const Client one = Busy(kOne);
  const Client tool = ConnectTool(kTwo);
  auto ask = [&](uid_t user, int32_t pid) {
    ipc::SetActiveWindow request{};
    request.user = user;
    request.pid = pid;
    EXPECT_TRUE(tools_.HandleMessage(*tool.connection, PacketOf(request), now_));
    return tool.ReceiveA<ipc::Reply>().value_or(ipc::Reply{});
  };
  EXPECT_EQ(ask(kUser, 100).count, 1u);
  EXPECT_TRUE(AgentOf(one).facts.window_active);
  EXPECT_EQ(ask(kOfAnother.uid, 300).result, static_cast<uint32_t>(kXSchedErrorNotAllowed));
  EXPECT_EQ(ask(kUser, -1).result, static_cast<uint32_t>(kXSchedErrorInvalidValue));
}

TEST_F(ProcessFactsTest, windows_are_charged_for_the_queues_that_they_may_be_about) {
  const Client one = Busy(kOne);
  for (uint32_t index = 1; index < ipc::kMaxQueues; ++index) ASSERT_TRUE(CreateQueue(one, index, 0));
  const Client tool = ConnectTool(kOne);
  ipc::SetActiveWindow request{};
  request.user = kUser;
  work_.BeginRound();
  for (request.pid = 100; request.pid < 102; ++request.pid)
    ASSERT_TRUE(tools_.HandleMessage(*tool.connection, PacketOf(request), now_));
  EXPECT_TRUE(work_.IsSpent(kUser));
}

// ---- the kernel's side ----

// Runs `lower()` in a child, and returns its priority as seen from here; nullopt: `lower` is not permitted.
template <typename Lower>
std::optional<int> PriorityOfChild(Lower&& lower) {
  int ready[2];
  EXPECT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const char done = lower() ? 'y' : 'n';
    if (write(ready[1], &done, 1) == 1) pause();
    _exit(0);
  }
  char done = 'n';
  EXPECT_EQ(read(ready[0], &done, 1), 1);
  const int priority = CpuPriorityOf(child);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
  if (done != 'y') return std::nullopt;
  return priority;
}

TEST(CpuPriority, is_the_opposite_of_the_nice_value) {
  EXPECT_EQ(PriorityOfChild([] { return setpriority(PRIO_PROCESS, 0, 19) == 0; }), -19);
  EXPECT_EQ(PriorityOfChild([] { return true; }), -getpriority(PRIO_PROCESS, 0));
  EXPECT_EQ(CpuPriorityOf(0), 0) << "a process of another pid namespace";
}

TEST(CpuPriority, of_real_time_processes_is_above_all_nice_values_and_grows_with_theirs) {
  auto real_time = [](int priority) {
    return PriorityOfChild([priority] {
      sched_param parameters{};
      parameters.sched_priority = priority;
      return sched_setscheduler(0, SCHED_FIFO, &parameters) == 0;
    });
  };
  const std::optional<int> low = real_time(1);
  const std::optional<int> high = real_time(50);
  if (!low || !high) GTEST_SKIP() << "this user may not have real-time processes";
  EXPECT_GT(*low, 20);
  EXPECT_EQ(*high - *low, 49);
}

}  // namespace
}  // namespace xsched::server::testing
