// Clients that break the protocol, on purpose or not. Their connection ends, and nothing else happens.
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "ipc/testing/populated_segment.h"
#include "server/limits.h"
#include "server/testing/server_fixture.h"

namespace xsched::server::testing {
namespace {

class HostileClient : public ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    bystander_ = std::make_unique<TestAgent>(socket());
    ASSERT_TRUE(bystander_->welcome());
    ASSERT_TRUE(bystander_->CreateQueue(0, 0));
    ASSERT_TRUE(bystander_->IsAlive());
    before_ = Counted();
  }
  void TearDown() override { ExpectServed(*bystander_); }

  uint64_t Counted() {
    auto status = TestTool(socket()).Status();
    return status ? status->rejected : ~uint64_t{0};
  }
  void ExpectThrownOut(TestConnection& connection) {
    EXPECT_TRUE(connection.IsClosedByServer());
    EXPECT_EQ(Counted(), before_ + 1) << server_.errors();
  }
  // Sends an agent's hello with these descriptors.
  void ExpectRefused(const std::vector<int>& fds) {
    TestConnection connection(socket());
    ASSERT_TRUE(connection.Send(HelloOf(ipc::Role::kAgent), fds));
    ExpectThrownOut(connection);
  }

  std::unique_ptr<TestAgent> bystander_;
  uint64_t before_ = 0;
};

// ---- hello ----

TEST_F(HostileClient, a_client_of_another_major_version_gets_the_reason) {
  TestConnection connection(socket());
  ipc::Hello hello = HelloOf(ipc::Role::kTool);
  hello.major = ipc::kMajor + 1;
  ASSERT_TRUE(connection.Send(hello));
  auto rejected = connection.ReceiveA<ipc::Rejected>();
  ASSERT_TRUE(rejected);
  EXPECT_EQ(rejected->major, ipc::kMajor);
  EXPECT_NE(strstr(rejected->reason, "protocol"), nullptr);
  ExpectThrownOut(connection);
}

TEST_F(HostileClient, an_older_client_with_a_shorter_hello_is_welcome) {
  TestConnection connection(socket());
  ipc::Hello hello = HelloOf(ipc::Role::kTool);
  ipc::Prepare(hello);
  constexpr size_t kOldSize = offsetof(ipc::Hello, pid);
  hello.header.size = kOldSize;
  ASSERT_TRUE(connection.SendBytes(&hello, kOldSize));
  EXPECT_TRUE(connection.ReceiveA<ipc::Welcome>());
}

TEST_F(HostileClient, a_newer_client_with_a_longer_hello_is_welcome) {
  TestConnection connection(socket());
  struct {
    ipc::Hello hello;
    char news[100];
  } longer{HelloOf(ipc::Role::kTool), {}};
  ipc::Prepare(longer.hello);
  longer.hello.minor = ipc::kMinor + 7;
  longer.hello.header.size = sizeof longer;
  ASSERT_TRUE(connection.SendBytes(&longer, sizeof longer));
  EXPECT_TRUE(connection.ReceiveA<ipc::Welcome>());
}

TEST_F(HostileClient, garbage_is_not_a_hello) {
  TestConnection connection(socket());
  char garbage[200];
  memset(garbage, 0xa5, sizeof garbage);
  ASSERT_TRUE(connection.SendBytes(garbage, sizeof garbage));
  ExpectThrownOut(connection);
}

TEST_F(HostileClient, a_packet_shorter_than_a_header_is_malformed) {
  TestConnection connection(socket());
  ASSERT_TRUE(connection.SendBytes("abc", 3));
  ExpectThrownOut(connection);
}

TEST_F(HostileClient, a_packet_whose_size_is_not_what_it_says_is_malformed) {
  TestConnection connection(socket());
  ipc::Hello hello = HelloOf(ipc::Role::kTool);
  ipc::Prepare(hello);
  ASSERT_TRUE(connection.SendBytes(&hello, sizeof hello - 8));
  ExpectThrownOut(connection);
}

TEST_F(HostileClient, an_oversized_packet_is_malformed) {
  TestConnection connection(socket());
  std::vector<char> big(60'000, 'x');
  ipc::Header header{ipc::MessageType::kHello, 0, static_cast<uint32_t>(big.size())};
  memcpy(big.data(), &header, sizeof header);
  ASSERT_TRUE(connection.SendBytes(big.data(), big.size()));
  ExpectThrownOut(connection);
}

TEST_F(HostileClient, a_request_before_hello_is_refused) {
  TestConnection connection(socket());
  ASSERT_TRUE(connection.Send(ipc::List{}));
  ExpectThrownOut(connection);
}

TEST_F(HostileClient, a_second_hello_does_no_harm) {
  TestTool tool(socket());
  ASSERT_TRUE(tool.Send(HelloOf(ipc::Role::kTool)));
  auto reply = tool.ReceiveA<ipc::Reply>();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->result, kXSchedErrorNotSupported);
}

TEST_F(HostileClient, an_unknown_role_is_refused) {
  TestConnection connection(socket());
  ASSERT_TRUE(connection.Send(HelloOf(static_cast<ipc::Role>(7))));
  ExpectThrownOut(connection);
}

TEST_F(HostileClient, a_client_that_sends_nothing_is_dropped_after_a_while) {
  TestConnection connection(socket());
  EXPECT_FALSE(connection.IsClosedByServer(3000));
  EXPECT_TRUE(connection.IsClosedByServer(4000));
}

// ---- descriptors ----

TEST_F(HostileClient, an_agent_without_descriptors_is_refused) { ExpectRefused({}); }

TEST_F(HostileClient, a_segment_that_is_a_file_is_refused) {
  UniqueFd file(open((folder_.path() + "/file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(ftruncate(file.get(), ipc::kSegmentSize), 0);
  ExpectRefused({file.get(), bystander_->bell()});
}

TEST_F(HostileClient, a_segment_that_can_shrink_is_refused) {
  UniqueFd memfd(memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(memfd.get(), ipc::kSegmentSize), 0);
  ExpectRefused({memfd.get(), bystander_->bell()});
}

TEST_F(HostileClient, a_segment_of_the_wrong_size_is_refused) {
  UniqueFd memfd(memfd_create("small", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(memfd.get(), 4096), 0);
  ASSERT_EQ(fcntl(memfd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  ExpectRefused({memfd.get(), bystander_->bell()});
}

TEST_F(HostileClient, a_segment_without_our_header_is_refused) {
  UniqueFd memfd(memfd_create("blank", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(memfd.get(), ipc::kSegmentSize), 0);
  ASSERT_EQ(fcntl(memfd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  ExpectRefused({memfd.get(), bystander_->bell()});
}

TEST_F(HostileClient, a_doorbell_that_is_a_pipe_is_refused) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  ExpectRefused({bystander_->memfd(), reader.get()});
}

TEST_F(HostileClient, surplus_descriptors_are_closed) {
  int before = server_.descriptors();
  std::vector<int> fds = {bystander_->memfd(), bystander_->bell(), bystander_->bell(), bystander_->bell()};
  for (int i = 0; i < 50; ++i) {
    TestConnection connection(socket());
    ASSERT_TRUE(connection.Send(HelloOf(ipc::Role::kAgent), fds));
    EXPECT_TRUE(connection.IsClosedByServer());
  }
  EXPECT_TRUE(Eventually([&] { return server_.descriptors() <= before; })) << server_.descriptors();
}

TEST_F(HostileClient, descriptors_after_hello_are_closed_and_end_the_connection) {
  int before = server_.descriptors();
  TestAgent agent(socket());
  ASSERT_TRUE(agent.welcome());
  ASSERT_TRUE(agent.Send(ipc::Ping{}, {agent.bell(), agent.memfd(), 0}));
  ExpectThrownOut(agent);
  EXPECT_TRUE(Eventually([&] { return server_.descriptors() <= before; }));
}

TEST_F(HostileClient, a_doorbell_that_blocks_or_is_full_does_not_block_the_server) {
  UniqueFd bell(eventfd(0, EFD_CLOEXEC));  // blocking
  const uint64_t full = ~uint64_t{1};
  ASSERT_EQ(write(bell.get(), &full, sizeof full), static_cast<ssize_t>(sizeof full));
  TestAgent agent(socket(), ipc::PopulatedSegment(), std::move(bell));
  ASSERT_TRUE(agent.welcome());
  ASSERT_TRUE(agent.CreateQueue(0, 5));
  EXPECT_TRUE(agent.IsAlive());
  uint64_t drained;
  ASSERT_EQ(read(agent.bell(), &drained, sizeof drained), static_cast<ssize_t>(sizeof drained));
  ExpectServed(*bystander_);
}

// ---- agents ----

class HostileAgent : public HostileClient {
 protected:
  void SetUp() override {
    HostileClient::SetUp();
    agent_ = std::make_unique<TestAgent>(socket());
    ASSERT_TRUE(agent_->welcome());
  }
  template <typename T>
  void ExpectThrownOutFor(const T& message) {
    ASSERT_TRUE(agent_->Send(message));
    ExpectThrownOut(*agent_);
  }

  std::unique_ptr<TestAgent> agent_;
};

ipc::QueueCreated GoodQueue() {
  ipc::QueueCreated message{};
  message.level = kPreemptLevelBlock;
  message.hints = {0, 100, NO_DEADLINE, NO_LAXITY, 0, 0};
  return message;
}

TEST_F(HostileAgent, an_index_beyond_the_segment_is_refused) {
  ipc::QueueCreated message = GoodQueue();
  message.index = ipc::kMaxQueues;
  ExpectThrownOutFor(message);
}

TEST_F(HostileAgent, an_index_in_use_is_refused) {
  ASSERT_TRUE(agent_->CreateQueue(5, 0));
  ipc::QueueCreated message = GoodQueue();
  message.index = 5;
  ExpectThrownOutFor(message);
}

TEST_F(HostileAgent, an_index_may_be_used_again_after_its_queue_is_gone) {
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(agent_->CreateQueue(5, 0) && agent_->DestroyQueue(5));
  ASSERT_TRUE(agent_->CreateQueue(5, 0));
  EXPECT_TRUE(agent_->IsAlive());
}

TEST_F(HostileAgent, an_unknown_level_is_refused) {
  ipc::QueueCreated message = GoodQueue();
  message.level = kPreemptLevelMax;
  ExpectThrownOutFor(message);
}

TEST_F(HostileAgent, hints_out_of_range_are_refused) {
  ipc::QueueCreated message = GoodQueue();
  message.hints.priority = PRIORITY_MAX + 1;
  ExpectThrownOutFor(message);
}

TEST_F(HostileAgent, a_deadline_that_no_clock_can_hold_is_refused) {
  ipc::QueueCreated message = GoodQueue();
  message.hints.deadline_us = INT64_MAX;
  ExpectThrownOutFor(message);
}

TEST_F(HostileAgent, the_end_of_an_impossible_queue_is_refused) {
  ipc::QueueDestroyed message{};
  message.index = ipc::kMaxQueues;
  ExpectThrownOutFor(message);
}

TEST_F(HostileAgent, the_end_of_an_unknown_queue_is_ignored) {
  // The queue may have been made and destroyed while its client was connecting.
  ipc::QueueDestroyed message{};
  message.index = 9;
  ASSERT_TRUE(agent_->Send(message));
  EXPECT_TRUE(agent_->IsAlive());
}

TEST_F(HostileAgent, hints_for_an_unknown_queue_are_refused) {
  ipc::QueueHints message{};
  message.index = 9;
  ExpectThrownOutFor(message);
}

TEST_F(HostileAgent, an_agent_may_not_ask_for_what_tools_do) {
  ASSERT_TRUE(agent_->Send(ipc::SetPolicy{}));
  auto reply = agent_->ReceiveA<ipc::Reply>();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->result, kXSchedErrorNotSupported);
}

TEST_F(HostileAgent, texts_are_cleaned_before_anybody_sees_them) {
  ipc::QueueCreated message = GoodQueue();
  memset(message.device_name, '\x1b', sizeof message.device_name);  // and not terminated
  ASSERT_TRUE(agent_->Send(message));
  ASSERT_TRUE(agent_->IsAlive());
  auto queues = TestTool(socket()).List();
  ASSERT_TRUE(queues && queues->size() == 2);
  std::string name = (*queues)[1].device_name;
  EXPECT_EQ(name, std::string(sizeof message.device_name - 1, '?'));
}

TEST_F(HostileAgent, what_it_writes_into_its_segment_harms_itself_alone) {
  ASSERT_TRUE(agent_->CreateQueue(0, 10));
  ASSERT_TRUE(agent_->IsAlive());
  auto* words = reinterpret_cast<unsigned char*>(&agent_->segment());
  uint32_t random = 12345;
  for (int round = 0; round < 50; ++round) {
    for (size_t i = 0; i < ipc::kSegmentSize; ++i) {
      random = random * 1664525 + 1013904223;
      words[i] = static_cast<unsigned char>(random >> 24);
    }
    for (uint32_t index : {0u, 1u, 1023u}) ipc::RingScheduler(agent_->segment(), index, agent_->bell());
    ASSERT_TRUE(agent_->IsAlive());
  }
}

TEST_F(HostileAgent,
       one_that_takes_pages_of_its_segment_away_loses_its_connection_and_the_server_makes_none) {
  constexpr int kUserModeOnly = 1;
  if (!UniqueFd(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | kUserModeOnly))))
    GTEST_SKIP() << "no userfaultfd here";
  ASSERT_TRUE(agent_->CreateQueue(0, 10));
  ASSERT_TRUE(agent_->IsAlive());
  ASSERT_EQ(fallocate(agent_->memfd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, ipc::kSegmentSize), 0);
  const uint64_t ring = 1;
  ASSERT_EQ(write(agent_->bell(), &ring, sizeof ring), static_cast<ssize_t>(sizeof ring));
  ExpectThrownOut(*agent_);
  struct stat status {};
  ASSERT_EQ(fstat(agent_->memfd(), &status), 0);
  EXPECT_EQ(status.st_blocks, 0);
}

TEST_F(HostileAgent, a_flood_of_messages_does_not_hold_up_others) {
  ipc::Ping ping{};
  ipc::Prepare(ping);
  // It never reads the answers. Its connection is closed when its buffer is full.
  for (int i = 0; i < 10'000 && ipc::SendWithin(agent_->fd(), 2000, ping); ++i) {
    if (i % 64 == 0) ExpectServed(*bystander_);
  }
  EXPECT_TRUE(agent_->IsClosedByServer());
}

TEST_F(HostileAgent, coming_and_going_queues_leave_nothing_behind) {
  for (uint32_t index = 0; index < 500; ++index) ASSERT_TRUE(bystander_->CreateQueue(index + 1, 0));
  auto churn = [this](int rounds) {
    for (int i = 0; i < rounds; ++i) {
      // Each queue is on a device that was never named before.
      static uint64_t device = 1000;
      uint32_t index = static_cast<uint32_t>(i) % ipc::kMaxQueues;
      ASSERT_TRUE(agent_->CreateQueue(index, 0, ++device));
      ASSERT_TRUE(agent_->DestroyQueue(index));
    }
    ASSERT_TRUE(agent_->IsAlive());
  };
  churn(5'000);
  long before = server_.resident_kb();
  churn(50'000);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LE(server_.resident_kb(), before + 1024);
#else
  static_cast<void>(before);
#endif
}

TEST_F(HostileAgent, queues_beyond_the_users_limit_run_unscheduled_and_their_client_stays) {
  std::vector<std::unique_ptr<TestAgent>> agents;
  // Together with the bystander's queue, as many as the limit allows.
  for (size_t agent = 0; agent < kMaxQueuesOfUser / ipc::kMaxQueues; ++agent) {
    auto& added = agents.emplace_back(std::make_unique<TestAgent>(socket()));
    ASSERT_TRUE(added->welcome());
    bool last = agent + 1 == kMaxQueuesOfUser / ipc::kMaxQueues;
    for (uint32_t index = 0; index < ipc::kMaxQueues - last; ++index) {
      ASSERT_TRUE(added->CreateQueue(index, 0, 100 + index % (kMaxDevicesOfUser / 2)));
    }
    ASSERT_TRUE(added->IsAlive());
  }
  ASSERT_TRUE(agent_->CreateQueue(3, 0));
  auto reply = agent_->ReceiveA<ipc::Reply>();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->result, kXSchedErrorNotAllowed);
  EXPECT_NE(strstr(reply->text, "8192"), nullptr) << reply->text;
  EXPECT_NE(server_.errors().find("8192"), std::string::npos) << server_.errors();

  // Messages about a refused queue are accepted, and change nothing.
  ipc::QueueHints hints{};
  hints.index = 3;
  hints.hints = GoodQueue().hints;
  ipc::QueueConfig config{};
  config.index = 3;
  ipc::QueueAbsent absent{};
  absent.index = 3;
  EXPECT_TRUE(agent_->Send(hints) && agent_->Send(config) && agent_->Send(absent));
  agent_->Submit(3);
  EXPECT_TRUE(agent_->DestroyQueue(3));
  EXPECT_TRUE(agent_->IsAlive());
  EXPECT_EQ(Counted(), before_) << "nobody was thrown out";

  // When queues have gone, new ones are accepted again.
  agents.erase(agents.begin());
  ASSERT_TRUE(
      Eventually([&] { return TestTool(socket()).Status()->queues <= kMaxQueuesOfUser - ipc::kMaxQueues; }));
  ASSERT_TRUE(agent_->CreateQueue(3, 0));
  EXPECT_TRUE(agent_->IsAlive());
  EXPECT_EQ(TestTool(socket()).List()->size(), kMaxQueuesOfUser - ipc::kMaxQueues + 1);
}

// ---- tools ----

TEST_F(HostileClient, an_agents_words_from_a_tool_are_refused) {
  TestTool tool(socket());
  ASSERT_TRUE(tool.Send(GoodQueue()));
  ExpectThrownOut(tool);
}

TEST_F(HostileClient, an_unknown_request_is_answered_and_the_tool_goes_on) {
  TestTool tool(socket());
  ipc::Header header{static_cast<ipc::MessageType>(999), 0, sizeof header};
  ASSERT_TRUE(tool.SendBytes(&header, sizeof header));
  auto reply = tool.ReceiveA<ipc::Reply>();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->result, kXSchedErrorNotSupported);
  EXPECT_TRUE(tool.Status());
}

TEST_F(HostileClient, values_out_of_range_are_answered_with_a_reason) {
  TestTool tool(socket());
  auto queues = tool.List();
  ASSERT_TRUE(queues && !queues->empty());
  auto reply = tool.SetPriority(queues->front().queue_id, PRIORITY_MIN - 2);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->result, kXSchedErrorInvalidValue);
  EXPECT_NE(reply->text[0], '\0');
  EXPECT_EQ(tool.SetPolicy(kPolicyMax)->result, kXSchedErrorNotSupported);
  EXPECT_EQ(tool.SetPolicy(kPolicyUnknown, TIMESLICE_MIN - 1)->result, kXSchedErrorInvalidValue);
  EXPECT_EQ(tool.SetPriority(123456789, 0)->result, kXSchedErrorNotFound);
}

TEST_F(HostileClient, a_tool_that_reads_slowly_gets_all_of_a_long_list) {
  for (uint32_t index = 1; index < ipc::kMaxQueues; ++index) ASSERT_TRUE(bystander_->CreateQueue(index, 0));
  ASSERT_TRUE(bystander_->IsAlive());
  TestTool tool(socket());
  ASSERT_TRUE(tool.Send(ipc::List{}) && tool.Send(ipc::GetStatus{}));
  usleep(100'000);
  uint32_t count = 0;
  std::optional<ipc::Packet> packet;
  while ((packet = tool.Receive()) && packet->header().type == ipc::MessageType::kQueueInfo) {
    if (++count % 100 == 0) usleep(1000);
  }
  EXPECT_EQ(count, ipc::kMaxQueues);
  ASSERT_TRUE(packet);
  EXPECT_EQ(packet->As<ipc::Reply>().count, ipc::kMaxQueues);
  EXPECT_TRUE(tool.ReceiveA<ipc::Status>()) << "requests are answered in order";
}

TEST_F(HostileClient, a_tool_that_asks_more_before_it_reads_gets_all_answers) {
  TestTool tool(socket());
  int asked = 0;
  for (int quiet = 0; quiet < 20; usleep(1000)) {
    // The server reads in between, as long as it may.
    for (++quiet; tool.Send(ipc::GetStatus{}); ++asked) quiet = 0;
  }
  EXPECT_GT(asked, 100);
  for (int i = 0; i < asked; ++i) ASSERT_TRUE(tool.ReceiveA<ipc::Status>()) << i << " of " << asked;
}

TEST_F(HostileClient, a_tool_that_never_reads_is_dropped) {
  for (uint32_t index = 1; index < ipc::kMaxQueues; ++index) ASSERT_TRUE(bystander_->CreateQueue(index, 0));
  ASSERT_TRUE(bystander_->IsAlive());
  int before = server_.descriptors();
  TestTool tool(socket());
  ASSERT_TRUE(tool.Send(ipc::List{}));
  ExpectServed(*bystander_);
  EXPECT_EQ(server_.descriptors(), before + 1);
  EXPECT_TRUE(Eventually([&] { return server_.descriptors() == before; }, std::chrono::seconds(8)));
}

// ---- many ----

TEST_F(HostileClient, a_crowd_of_silent_connections_does_not_keep_others_out) {
  std::vector<std::unique_ptr<TestConnection>> crowd;
  for (int i = 0; i < 600; ++i) {
    try {
      crowd.push_back(std::make_unique<TestConnection>(socket()));
    } catch (const std::exception&) {
      usleep(1000);  // the backlog is full at this moment
    }
  }
  ExpectServed(*bystander_);
  // Connections beyond the limit are closed at once, some in each round.
  EXPECT_TRUE(Eventually([&] {
    return std::count_if(crowd.begin(), crowd.end(),
                         [](auto& connection) { return connection->IsClosedByServer(0); }) > 100;
  }));
  EXPECT_LT(server_.descriptors(), 400);
  // The others are closed when their time is over. Then there is room again.
  EXPECT_TRUE(Eventually([&] { return TestTool(socket()).welcome().has_value(); }, std::chrono::seconds(8)));
}

TEST_F(HostileClient, connections_that_end_between_hello_and_welcome_keep_nobody_out) {
  for (size_t i = 0; i <= kMaxUnidentifiedOfUser; ++i) {
    TestConnection connection(socket());
    // The hello arrives, and the welcome cannot be sent.
    ASSERT_EQ(shutdown(connection.fd(), SHUT_RD), 0);
    ASSERT_TRUE(connection.Send(HelloOf(ipc::Role::kTool))) << "connection " << i << " was turned away";
    pollfd end{connection.fd(), 0, 0};
    ASSERT_EQ(poll(&end, 1, 2000), 1) << "the server keeps connection " << i;
  }
  EXPECT_TRUE(TestTool(socket()).welcome());
}

TEST(FewDescriptors, a_user_has_a_quarter_of_them_at_most) {
  TempFolder folder;
  ServerProcess server(kServerProgram, folder.path() + "/s", {"--system"}, {.descriptors = 80});
  ASSERT_TRUE(server.ready()) << server.errors();
  std::vector<std::unique_ptr<TestTool>> tools;
  for (int i = 0; i < 30; ++i) tools.push_back(std::make_unique<TestTool>(server.socket()));
  const auto welcome =
      std::count_if(tools.begin(), tools.end(), [](auto& tool) { return tool->welcome().has_value(); });
  EXPECT_EQ(welcome, 80 / 8);
}

TEST(FewDescriptors, a_server_out_of_descriptors_turns_newcomers_away_and_serves_the_others) {
  TempFolder folder;
  ServerProcess server(kServerProgram, folder.path() + "/s", {"--user"}, {.descriptors = 40});
  ASSERT_TRUE(server.ready()) << server.errors();
  TestAgent agent(server.socket());
  ASSERT_TRUE(agent.welcome());
  std::vector<std::unique_ptr<TestTool>> tools;
  for (int i = 0; i < 60; ++i) tools.push_back(std::make_unique<TestTool>(server.socket()));
  EXPECT_FALSE(tools.back()->welcome());
  EXPECT_TRUE(agent.IsAlive());
  EXPECT_NE(server.errors().find("out of file descriptors"), std::string::npos) << server.errors();
  tools.clear();
  EXPECT_TRUE(Eventually([&] { return TestTool(server.socket()).welcome().has_value(); }));
}

}  // namespace
}  // namespace xsched::server::testing
