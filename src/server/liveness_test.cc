// What was taken from a program is given back, whatever happens to the server and to other programs.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "base/clock.h"
#include "ipc/testing/populated_segment.h"
#include "server/testing/server_fixture.h"

namespace xsched::server::testing {
namespace {

using Liveness = ServerTest;
using namespace std::chrono_literals;

// ---- slices ----

ipc::SetHints Utilization(uint64_t queue, int32_t utilization) {
  ipc::SetHints request{};
  request.queue_id = queue;
  request.mask = ipc::kHintUtilization;
  request.hints.utilization = utilization;
  return request;
}

// The last slice that it was sent, or gets within a moment; 0: none.
uint64_t LastSlice(TestAgent& agent) {
  uint64_t slice = 0;
  while (auto packet = agent.Receive(200)) {
    if (packet->header().type == ipc::MessageType::kProcessSlice)
      slice = packet->As<ipc::ProcessSlice>().slice_us;
  }
  return slice;
}

TEST_F(Liveness, a_client_that_did_not_read_for_long_keeps_the_last_slice_and_not_an_older_one) {
  TestTool tool(socket());
  ASSERT_EQ(tool.SetPolicy(kPolicyUtilizationPartition)->result, kXSchedSuccess);
  TestAgent reader(socket());
  TestAgent sleeper(socket());
  ASSERT_TRUE(reader.CreateInterruptibleQueue(0, ipc::kTraitTimeSlices));
  ASSERT_TRUE(reader.IsAlive());
  ASSERT_TRUE(sleeper.CreateInterruptibleQueue(0, ipc::kTraitTimeSlices));
  ASSERT_NE(LastSlice(sleeper), 0u);
  auto queues = tool.List();
  ASSERT_TRUE(queues && queues->size() == 2);
  uint64_t queue = (*queues)[1].queue_id;
  ASSERT_EQ(tool.SetHints(Utilization(queue, 7))->result, kXSchedSuccess);
  uint64_t expected = LastSlice(sleeper);
  ASSERT_NE(expected, 0u);
  for (int change = 0; change < 800; ++change) {
    ASSERT_EQ(tool.SetHints(Utilization(queue, 10 + change % 80))->result, kXSchedSuccess);
  }
  ASSERT_EQ(tool.SetHints(Utilization(queue, 7))->result, kXSchedSuccess);
  EXPECT_EQ(LastSlice(sleeper), expected);
  EXPECT_TRUE(sleeper.IsAlive()) << "it was not dropped for it";
}

TEST_F(Liveness, a_ping_is_answered_when_there_is_room_for_the_answer) {
  TestAgent agent(socket());
  ASSERT_TRUE(agent.CreateQueue(0, 0));
  ASSERT_TRUE(agent.IsAlive());
  TestTool tool(socket());
  uint64_t queue = tool.List()->front().queue_id;
  // Its process was stopped for a while. Its buffer is full of hints that others set.
  for (int change = 0; change < 800; ++change)
    ASSERT_EQ(tool.SetHints(Utilization(queue, 10 + change % 80))->result, kXSchedSuccess);
  ipc::Ping ping{};
  ping.cookie = 4711;
  ASSERT_TRUE(agent.Send(ping));
  usleep(20'000);
  uint64_t answer = 0;
  while (auto packet = agent.Receive(200)) {
    if (packet->header().type == ipc::MessageType::kPong) answer = packet->As<ipc::Pong>().cookie;
  }
  EXPECT_EQ(answer, 4711u);
  EXPECT_TRUE(agent.IsAlive());
}

// ---- one segment, one connection ----

TEST_F(Liveness, a_process_that_connects_anew_is_not_held_by_decisions_for_its_former_connection) {
  TestAgent high(socket());
  ASSERT_TRUE(high.CreateQueue(0, 10));
  ipc::OwnedSegment segment = ipc::PopulatedSegment();
  ipc::OwnedSegment again{UniqueFd(dup(segment.memfd.get())), {}};
  ipc::ControlBlock& block = segment.mapping->blocks[0];
  UniqueFd bell(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  UniqueFd bell_again(dup(bell.get()));
  TestAgent former(socket(), std::move(segment), std::move(bell));
  ASSERT_TRUE(former.CreateQueue(0, 0));
  former.Submit(0);
  ASSERT_TRUE(former.IsAlive());

  // Its former connection is still open when it connects again. The queue's work is done by then.
  former.RetireAll(0);
  TestConnection anew(socket());
  ASSERT_TRUE(anew.Send(HelloOf(ipc::Role::kAgent), {again.memfd.get(), bell_again.get()}));
  ASSERT_TRUE(anew.ReceiveA<ipc::Welcome>());
  EXPECT_TRUE(former.IsClosedByServer()) << "the segment belongs to the new connection";
  ipc::QueueCreated message{};
  message.level = kPreemptLevelBlock;
  message.device = 2;
  message.hints = {0, 100, NO_DEADLINE, NO_LAXITY, 0, 0};
  ASSERT_TRUE(anew.Send(message));
  ipc::Ping ping{};
  ASSERT_TRUE(anew.Send(ping));
  ASSERT_TRUE(anew.ReceiveA<ipc::Pong>());
  EXPECT_EQ(TestTool(socket()).List()->size(), 2u);

  // What would hold the former queue does not affect the new one, which is on another device.
  high.Submit(0);
  for (int i = 0; i < 20; ++i, usleep(1000)) {
    high.ReadAll();
    EXPECT_EQ(block.gate.load(), ipc::kGateRun);
  }
}

TEST_F(Liveness, a_hold_that_was_not_decided_ends_when_the_queue_is_next_observed) {
  TestAgent agent(socket());
  TestAgent other(socket());
  ASSERT_TRUE(agent.CreateQueue(0, 5) && other.CreateQueue(0, 0));
  ASSERT_TRUE(agent.IsAlive() && other.IsAlive());
  // A server that was stopped does this when it continues after its clients have connected to another one.
  agent.block(0).gate.store(ipc::kGateHold);
  agent.Submit(0);
  EXPECT_TRUE(Eventually([&] { return !agent.IsHeld(0); }, 100ms));
  // While others wait because of the queue, it is observed all the time.
  other.Submit(0);
  ASSERT_TRUE(Eventually([&] { return other.IsHeld(0); }));
  agent.block(0).gate.store(ipc::kGateHold);
  EXPECT_TRUE(Eventually(
      [&] {
        agent.ReadAll();
        return !agent.IsHeld(0);
      },
      100ms));
}

TEST_F(Liveness, a_client_that_has_left_owns_its_gates_though_its_end_has_not_been_heard_of) {
  TestAgent agent(socket());
  TestAgent other(socket());
  ASSERT_TRUE(agent.CreateQueue(0, 5) && other.CreateQueue(0, 0));
  ASSERT_TRUE(agent.IsAlive() && other.IsAlive());
  // A round answers before it decides, and may answer several times. So a decision that is counted after both
  // queues were there follows the one about them.
  TestTool tool(socket());
  const uint64_t decisions = tool.Status()->decisions;
  ASSERT_TRUE(Eventually([&] { return tool.Status()->decisions > decisions; }));
  server_.Signal(SIGSTOP);
  ASSERT_EQ(waitpid(server_.pid(), nullptr, WUNTRACED), server_.pid());
  agent.Submit(0);
  // It disconnects, and its local scheduler holds the queue.
  agent.Close();
  agent.block(0).gate.store(ipc::kGateHold);
  server_.Signal(SIGCONT);
  ASSERT_TRUE(other.IsAlive());
  usleep(20'000);
  EXPECT_TRUE(agent.IsHeld(0));
}

// ---- processes that are frozen ----

// A frozen process, which the kernel does not report as stopped. Empty: this machine does not allow freezing.
class Freezer {
 public:
  Freezer() {
    namespace fs = std::filesystem;
    std::string name = "xsched-test-" + std::to_string(getpid());
    std::error_code error;
    for (const char* root : {"/sys/fs/cgroup/freezer", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"}) {
      std::string folder = std::string(root) + "/" + name;
      if (!fs::is_directory(root, error) || !fs::create_directory(folder, error)) continue;
      folder_ = folder;
      if (fs::exists(folder + "/freezer.state", error) || fs::exists(folder + "/cgroup.freeze", error))
        return;
      rmdir(folder.c_str());
      folder_.clear();
    }
  }
  ~Freezer() {
    if (folder_.empty()) return;
    Freeze(false);
    Eventually([this] { return rmdir(folder_.c_str()) == 0; });
  }
  explicit operator bool() const { return !folder_.empty(); }
  bool Take(pid_t pid) const { return Write("cgroup.procs", std::to_string(pid)); }
  bool Freeze(bool freeze) const {
    return Write("freezer.state", freeze ? "FROZEN" : "THAWED") || Write("cgroup.freeze", freeze ? "1" : "0");
  }

 private:
  bool Write(const char* file, const std::string& text) const {
    UniqueFd fd(open((folder_ + "/" + file).c_str(), O_WRONLY | O_CLOEXEC));
    return fd && write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  }

  std::string folder_;
};

TEST_F(Liveness, a_frozen_process_holds_nobody_and_takes_its_place_again_when_it_thaws) {
  Freezer freezer;
  if (!freezer) GTEST_SKIP() << "no control group that freezes";
  TestAgent low(socket());
  ASSERT_TRUE(low.CreateQueue(0, 0));
  low.Submit(0);
  const pid_t child = ForkWorkingAgent(socket(), 10);
  auto low_is_held = [&] {
    low.ReadAll();
    return low.IsHeld(0);
  };
  EXPECT_TRUE(Eventually(low_is_held));
  bool can_freeze = freezer.Take(child) && freezer.Freeze(true) && freezer.Freeze(false);
  for (int round = 0; can_freeze && round < 3; ++round) {
    EXPECT_TRUE(Eventually(low_is_held, 200ms)) << round;
    TimePoint begin = MonotonicClock::now();
    ASSERT_TRUE(freezer.Freeze(true));
    EXPECT_TRUE(Eventually([&] { return !low_is_held(); })) << round;
    EXPECT_LT(MonotonicClock::now() - begin, 100ms) << round;
    ASSERT_TRUE(freezer.Freeze(false));
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  if (!can_freeze) GTEST_SKIP() << "no process can be frozen here";
}

// No queue is held by a gate here: processes that have not their turn are off the device.
TEST_F(Liveness, a_process_that_does_not_answer_takes_no_turns) {
  TestAgent urgent(socket());
  TestAgent silent(socket());
  TestAgent other(socket());
  ASSERT_TRUE(urgent.CreateInterruptibleQueue(0, ipc::kTraitTimeSlices) && urgent.IsAlive());
  ipc::QueueHints hints{};
  hints.hints = {10, UTILIZATION_DEFAULT, NO_DEADLINE, NO_LAXITY, 0, 0};
  ASSERT_TRUE(urgent.Send(hints));
  ASSERT_TRUE(silent.CreateInterruptibleQueue(0, ipc::kTraitTimeSlices));
  ASSERT_TRUE(other.CreateInterruptibleQueue(0, ipc::kTraitTimeSlices));
  silent.Submit(0, 1'000'000);
  other.Submit(0, 1'000'000);
  bool is_off = false;
  TimePoint last_off = MonotonicClock::now();
  TimePoint on_since = last_off;
  // The commands take 2 ms each.
  for (int i = 0; i < 500; ++i, usleep(2000)) {
    other.block(0).retired.fetch_add(1);
    silent.block(0).retired.fetch_add(1);
    ipc::Packet packet;
    while (ipc::ReceivePacket(other.fd(), packet) == ipc::Received::kMessage) {
      if (packet.header().type == ipc::MessageType::kProcessSlice)
        is_off = packet.As<ipc::ProcessSlice>().slice_us == ~uint64_t{0};
    }
    if (is_off) last_off = MonotonicClock::now();
    if (i == 100) on_since = MonotonicClock::now();
  }
  EXPECT_LT(last_off, on_since) << "after 200 ms at most the device is its own";
}

// ---- the server's own end ----

TEST_F(Liveness, a_server_with_another_policy_takes_over_and_holds_nobody_by_the_former_one) {
  TestAgent high(socket());
  TestAgent low(socket());
  ASSERT_TRUE(high.CreateQueue(0, 10) && low.CreateQueue(0, 0));
  low.Submit(0);
  high.Submit(0);
  ASSERT_TRUE(Eventually([&] { return low.IsHeld(0); }));
  server_.Signal(SIGKILL);
  ASSERT_EQ(server_.WaitForExit(), -SIGKILL);
  EXPECT_TRUE(low.IsHeld(0)) << "nobody was there to open it";
  EXPECT_TRUE(low.IsClosedByServer() && high.IsClosedByServer()) << "so its agent does";

  ServerProcess second(kServerProgram, SocketIn(folder_), {"--user", "--policy", "UP"});
  ASSERT_TRUE(second.ready()) << second.errors();
  auto register_anew = [&](TestAgent& agent, int32_t priority) {
    auto connection = std::make_unique<TestConnection>(second.socket());
    EXPECT_TRUE(connection->Send(HelloOf(ipc::Role::kAgent), {agent.memfd(), agent.bell()}));
    EXPECT_TRUE(connection->ReceiveA<ipc::Welcome>());
    ipc::QueueCreated message{};
    message.level = kPreemptLevelBlock;
    message.device = 1;
    message.hints = {priority, 50, NO_DEADLINE, NO_LAXITY, 0, 0};
    EXPECT_TRUE(connection->Send(message));
    return connection;
  };
  auto low_again = register_anew(low, 0);
  EXPECT_TRUE(Eventually([&] { return !low.IsHeld(0); }, 100ms)) << "even a hold that its agent left";
  auto high_again = register_anew(high, 10);
  // Now both have their turns.
  for (int turn = 0; turn < 3; ++turn) {
    auto read = [](TestConnection& connection) {
      while (connection.Receive(0)) {
      }
    };
    EXPECT_TRUE(Eventually([&] {
      read(*low_again);
      read(*high_again);
      return !low.IsHeld(0) && high.IsHeld(0);
    }));
    EXPECT_TRUE(Eventually([&] {
      read(*low_again);
      read(*high_again);
      return low.IsHeld(0) && !high.IsHeld(0);
    }));
  }
}

// ---- a log that nobody reads ----

struct FullPipe {
  FullPipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    reader.Reset(ends[0]);
    writer.Reset(ends[1]);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    const char page[4096] = {};
    while (write(ends[1], page, sizeof page) > 0) {
    }
    fcntl(ends[1], F_SETFL, 0);
  }
  std::string ReadAll() const {
    fcntl(reader.get(), F_SETFL, O_NONBLOCK);
    std::string text;
    char part[4096];
    for (ssize_t length; (length = read(reader.get(), part, sizeof part)) > 0;)
      text.append(part, static_cast<size_t>(length));
    return text;
  }
  UniqueFd reader;
  UniqueFd writer;
};

TEST(Log, a_pipe_that_nobody_reads_stops_neither_the_server_nor_its_end) {
  TempFolder folder;
  FullPipe pipe;
  ServerProcess server(kServerProgram, folder.path() + "/s", {"--user"}, {.errors_fd = pipe.writer.get()});
  ASSERT_TRUE(server.ready());
  TestAgent agent(server.socket());
  TestTool tool(server.socket());
  for (int i = 0; i < 3; ++i) ASSERT_EQ(tool.SetPolicy(kPolicyUtilizationPartition)->result, kXSchedSuccess);
  ASSERT_TRUE(agent.IsAlive());
  // Dropped lines are counted. The number is logged when somebody reads again.
  pipe.ReadAll();
  ASSERT_EQ(tool.SetPolicy(kPolicyHighestPriorityFirst)->result, kXSchedSuccess);
  EXPECT_EQ(pipe.ReadAll().find("xserver: 4 lines were dropped"), 0u);
  EXPECT_EQ(fcntl(pipe.writer.get(), F_GETFL) & O_NONBLOCK, 0) << "the pipe is as it was for others";
  FullPipe again;
  server.Signal(SIGTERM);
  EXPECT_EQ(server.WaitForExit(), 0);
}

TEST(Log, a_pipe_that_is_full_again_does_not_keep_the_server_from_ending) {
  TempFolder folder;
  FullPipe pipe;
  ServerProcess server(kServerProgram, folder.path() + "/s", {"--user"}, {.errors_fd = pipe.writer.get()});
  ASSERT_TRUE(server.ready());
  server.Signal(SIGTERM);
  EXPECT_EQ(server.WaitForExit(), 0);
}

TEST(Log, a_full_pipe_does_not_keep_a_server_from_saying_no) {
  TempFolder folder;
  FullPipe pipe;
  ServerProcess server(kServerProgram, folder.path() + "/s", {"--user", "--config", "/nowhere"},
                       {.errors_fd = pipe.writer.get()});
  EXPECT_EQ(server.WaitForExit(), 1);
}

// ---- the service manager ----

TEST(ServiceManager, it_is_notified_that_the_server_is_ready_is_alive_and_ends) {
  TempFolder folder;
  std::string path = folder.path() + "/notify";
  UniqueFd manager(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(manager.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  setenv("NOTIFY_SOCKET", path.c_str(), 1);
  setenv("WATCHDOG_USEC", "200000", 1);
  auto server = std::make_unique<ServerProcess>(kServerProgram, folder.path() + "/s",
                                                std::vector<std::string>{"--user"});
  unsetenv("NOTIFY_SOCKET");
  unsetenv("WATCHDOG_USEC");
  ASSERT_TRUE(server->ready());
  auto next = [&](int timeout_ms) {
    pollfd ready{manager.get(), POLLIN, 0};
    char text[64] = {};
    if (poll(&ready, 1, timeout_ms) == 1) recv(manager.get(), text, sizeof text - 1, 0);
    return std::string(text);
  };
  EXPECT_EQ(next(1000), "READY=1");
  for (int i = 0; i < 4; ++i) EXPECT_EQ(next(190), "WATCHDOG=1") << i;
  // A server that hangs does not notify its service manager.
  server->Signal(SIGSTOP);
  while (!next(50).empty()) {
  }
  EXPECT_EQ(next(300), "");
  server->Signal(SIGCONT);
  EXPECT_EQ(next(1000), "WATCHDOG=1");
  server->Signal(SIGTERM);
  EXPECT_EQ(server->WaitForExit(), 0);
  std::string last;
  for (std::string text; !(text = next(0)).empty();) last = text;
  EXPECT_EQ(last, "STOPPING=1");
}

// ---- no memory, no threads, no descriptors ----

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Clients come until the server can accept no more. It goes on serving those that it has. When memory runs
// out depends on how much it had.
TEST(FewResources, a_server_out_of_memory_turns_newcomers_away_and_serves_the_others) {
  int refusing = 0;
  for (long megabytes = 10; megabytes < 20; ++megabytes) {
    TempFolder folder;
    ServerProcess server(kServerProgram, folder.path() + "/s", {"--user", "--log-level", "error"},
                         {.address_space = megabytes << 20});
    if (!server.ready()) continue;
    TestAgent high(server.socket());
    TestAgent low(server.socket());
    if (!high.CreateQueue(0, 10) || !low.CreateQueue(0, 0) || !high.IsAlive() || !low.IsAlive()) continue;
    std::vector<std::unique_ptr<TestAgent>> agents;
    bool refused = false;
    for (int i = 0; i < 8 && !refused; ++i) {
      auto& agent = agents.emplace_back(std::make_unique<TestAgent>(server.socket()));
      for (uint32_t index = 0; index < 1000 && agent->welcome(); ++index) {
        if (!agent->CreateQueue(index, 0, 100 + 1000 * static_cast<uint64_t>(i) + index)) break;
      }
      refused = !agent->IsAlive();
    }
    refusing += refused;
    ASSERT_EQ(server.WaitForExit(0), -1000) << megabytes << " MiB: " << server.errors();
    low.Submit(0);
    high.Submit(0);
    EXPECT_TRUE(Eventually([&] { return low.IsHeld(0); })) << megabytes;
    high.RetireAll(0);
    EXPECT_TRUE(Eventually([&] { return !low.IsHeld(0); })) << megabytes;
    agents.clear();
    EXPECT_TRUE(Eventually([&] { return TestAgent(server.socket()).welcome().has_value(); })) << megabytes;
  }
  EXPECT_GT(refusing, 0);
}

// Invalid descriptors of a client are closed on a separate thread, which may fail to start.
TEST(FewResources, a_server_that_can_start_no_thread_goes_on) {
  // At which limit the first thread finds no room for its stack depends on the libraries.
  int without_a_thread = 0;
  for (long megabytes = 12; megabytes < 40; ++megabytes) {
    TempFolder folder;
    ServerProcess server(kServerProgram, folder.path() + "/s", {"--user"},
                         {.address_space = megabytes << 20});
    if (!server.ready()) continue;
    TestAgent agent(server.socket());
    if (!agent.welcome()) continue;
    for (int i = 0; i < 5; ++i) {
      TestConnection client(server.socket());
      ASSERT_TRUE(client.Send(HelloOf(ipc::Role::kAgent), {STDIN_FILENO, STDIN_FILENO}));
      EXPECT_TRUE(client.IsClosedByServer());
    }
    ASSERT_TRUE(agent.IsAlive()) << megabytes << " MiB: " << server.errors();
    const std::filesystem::directory_iterator threads("/proc/" + std::to_string(server.pid()) + "/task");
    without_a_thread += std::distance(begin(threads), end(threads)) == 1;
  }
  EXPECT_GT(without_a_thread, 0) << "nowhere did a thread fail to start";
}
#endif

}  // namespace
}  // namespace xsched::server::testing
