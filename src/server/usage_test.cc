#include "server/usage.h"

#include <map>
#include <random>

#include "server/limits.h"
#include "server/testing/server_parts.h"
#include "server/usage_meter.h"

namespace xsched::server::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

const Peer kAdmin{1, kServerUser, {}};
const Peer kUser{100, 1000, {}};
const Peer kOther{200, 1001, {}};

constexpr uint16_t kOnlyReports = 5;  // older clients, which count no bursts

uint64_t Ns(Duration time) { return static_cast<uint64_t>(time.count()); }

class UsageTest : public ServerParts {
 protected:
  // What a round does after its events.
  void Round() {
    agents_.Decide(now_);
    recordings_.Look(now_);
  }
  void RoundAfter(Duration time) {
    now_ += time;
    Round();
  }
  void SubmitAndRound(const Client& client, uint32_t index = 0) {
    Submit(client, index);
    Round();
  }
  void RetireAndRound(const Client& client, uint32_t index = 0) {
    client.block(index).retired.store(client.block(index).submitted.load());
    Ring(client, index);
    Round();
  }
  // All that the tool is sent.
  std::vector<ipc::Usage> Usage(const Client& tool) {
    std::vector<ipc::Usage> accounts;
    EXPECT_TRUE(Ask(tool, ipc::GetUsage{}));
    for (;;) {
      while (std::optional<ipc::Packet> packet = tool.Receive()) {
        if (packet->header().type == ipc::MessageType::kUsage) accounts.push_back(packet->As<ipc::Usage>());
      }
      if (!tools_.IsAnswering(*tool.connection)) return accounts;
      EXPECT_TRUE(tools_.Continue(*tool.connection, now_));
    }
  }
  // The requests of single queues that the tool is sent, by the queue.
  std::map<uint64_t, ipc::QueueRequests> RequestsOfQueues(const Client& tool) {
    std::map<uint64_t, ipc::QueueRequests> queues;
    ipc::GetUsage request{};
    request.queues = 1;
    EXPECT_TRUE(Ask(tool, request));
    for (;;) {
      while (std::optional<ipc::Packet> packet = tool.Receive()) {
        if (packet->header().type != ipc::MessageType::kQueueRequests) continue;
        const auto queue = packet->As<ipc::QueueRequests>();
        EXPECT_TRUE(queues.emplace(queue.queue_id, queue).second);
      }
      if (!tools_.IsAnswering(*tool.connection)) return queues;
      EXPECT_TRUE(tools_.Continue(*tool.connection, now_));
    }
  }
  void RequestOf(const Client& client, Duration length, uint32_t index = 0) {
    SubmitAndRound(client, index);
    RoundAfter(length);
    RetireAndRound(client, index);
  }
  // The account of the user (client 0) or of a process with this priority.
  static ipc::Usage Of(const std::vector<ipc::Usage>& accounts, uint64_t client, int32_t priority) {
    for (const ipc::Usage& account : accounts) {
      if (account.client_id == client && account.priority == priority && account.others == 0) return account;
    }
    ADD_FAILURE() << "no account of client " << client << " with priority " << priority;
    return {};
  }
  ipc::Usage OfUser(int32_t priority) { return Of(Usage(admin_), 0, priority); }
  // `of`: an account or a queue.
  static uint64_t Requests(const auto& of) {
    uint64_t count = 0;
    for (uint64_t bucket : of.requests) count += bucket;
    return count;
  }

  // Two that wait for each other, so both report.
  void ConnectTwo(uint16_t minor = ipc::kMinor) {
    low_.emplace(ConnectAgent(kUser, 0, minor));
    urgent_.emplace(ConnectAgent(kOther, 0, minor));
    ASSERT_TRUE(CreateQueue(*low_, 0, 0) && CreateQueue(*urgent_, 0, 5));
    Round();
  }

  Client admin_ = ConnectTool(kAdmin);
  std::optional<Client> low_;
  std::optional<Client> urgent_;
};

TEST_F(UsageTest, device_time_and_held_time_go_to_the_user_and_the_process) {
  ConnectTwo();
  SubmitAndRound(*low_);
  RoundAfter(milliseconds(10));
  SubmitAndRound(*urgent_);
  ASSERT_TRUE(low_->IsHeld(0));
  RoundAfter(milliseconds(3));
  const std::vector<ipc::Usage> accounts = Usage(admin_);
  for (uint64_t client : {uint64_t{0}, low_->connection->id}) {
    const ipc::Usage low = Of(accounts, client, 0);
    EXPECT_EQ(low.uid, kUser.uid);
    EXPECT_EQ(low.service_ns, Ns(milliseconds(10)));
    EXPECT_EQ(low.held_ns, Ns(milliseconds(3)));
    EXPECT_EQ(low.turn_ns + low.off_device_ns + low.limited_ns, 0u);
    EXPECT_EQ(low.holds, 1u);
  }
  EXPECT_EQ(Of(accounts, urgent_->connection->id, 5).service_ns, Ns(milliseconds(3)));
  const ipc::Usage process = Of(accounts, low_->connection->id, 0);
  EXPECT_EQ(process.pid, kUser.pid);
  EXPECT_EQ(process.held, 1u);
  EXPECT_EQ(process.longest_wait_ns, Ns(milliseconds(3)));
}

TEST_F(UsageTest, memory_of_a_device_is_in_one_account_of_the_process) {
  ConnectTwo();
  ASSERT_TRUE(CreateQueue(*low_, 1, 3));
  SubmitAndRound(*low_);
  SubmitAndRound(*low_, 1);
  ipc::SegmentHeader& header = low_->segment.mapping->header;
  header.memory_limit.store(5000);
  header.memory[0].device.store(1);
  header.memory[0].used.store(3000);
  int accounts = 0;
  uint64_t used = 0;
  for (const ipc::Usage& account : Usage(admin_)) {
    accounts += account.client_id == low_->connection->id;
    used += account.memory_used;
  }
  EXPECT_EQ(accounts, 2);
  EXPECT_EQ(used, 3000u);
}

TEST_F(UsageTest, a_request_is_counted_from_ready_to_idle) {
  ConnectTwo(kOnlyReports);
  SubmitAndRound(*urgent_);
  RoundAfter(milliseconds(2));
  RetireAndRound(*urgent_);
  now_ += milliseconds(20);
  SubmitAndRound(*urgent_);
  RoundAfter(microseconds(100));
  RetireAndRound(*urgent_);
  const ipc::Usage account = OfUser(5);
  EXPECT_EQ(Requests(account), 2u);
  EXPECT_EQ(account.requests[0], 1u) << "the bound of a bucket is in it";
  EXPECT_EQ(account.requests[4], 1u) << "from 1 to 2.5 ms";
  EXPECT_EQ(account.request_ns, Ns(milliseconds(2) + microseconds(100)));
}

TEST_F(UsageTest, requests_of_each_queue_are_counted_by_themselves_and_are_those_of_the_process) {
  ConnectTwo(kOnlyReports);
  ASSERT_TRUE(CreateQueue(*urgent_, 1, 5));
  Round();
  RequestOf(*urgent_, milliseconds(2));
  RequestOf(*urgent_, milliseconds(3), 1);
  RequestOf(*urgent_, milliseconds(3), 1);
  const std::map<uint64_t, ipc::QueueRequests> queues = RequestsOfQueues(admin_);
  ASSERT_EQ(queues.size(), 2u) << "the low one has had none";
  const ipc::QueueRequests& first = queues.begin()->second;
  const ipc::QueueRequests& second = queues.rbegin()->second;
  EXPECT_EQ(Requests(first), 1u);
  EXPECT_EQ(first.request_ns, Ns(milliseconds(2)));
  EXPECT_EQ(Requests(second), 2u);
  EXPECT_EQ(second.request_ns, Ns(milliseconds(6)));
  EXPECT_EQ(second.client_id, urgent_->connection->id);
  EXPECT_EQ(second.uid, kOther.uid);
  EXPECT_EQ(Requests(Of(Usage(admin_), urgent_->connection->id, 5)), 3u);
}

TEST_F(UsageTest, nobody_is_sent_single_queues_who_did_not_ask_for_them_or_may_not_see_them) {
  ConnectTwo(kOnlyReports);
  RequestOf(*urgent_, milliseconds(2));
  ASSERT_TRUE(Ask(admin_, ipc::GetUsage{}));
  EXPECT_EQ(admin_.ReadAll<ipc::QueueRequests>(), 0);
  EXPECT_EQ(RequestsOfQueues(ConnectTool(kUser)).size(), 0u);
  EXPECT_EQ(RequestsOfQueues(ConnectTool(kOther)).size(), 1u);
}

TEST_F(UsageTest, a_queues_requests_go_on_when_its_priority_changes) {
  ConnectTwo(kOnlyReports);
  RequestOf(*urgent_, milliseconds(2));
  const Client tool = ConnectTool(kOther);
  ipc::SetHints change{};
  change.queue_id = RequestsOfQueues(tool).begin()->first;
  change.mask = ipc::kHintPriority;
  change.hints.priority = 7;
  ASSERT_TRUE(Ask(tool, change));
  Round();
  RequestOf(*urgent_, milliseconds(2));
  EXPECT_EQ(Requests(RequestsOfQueues(admin_).at(change.queue_id)), 2u);
}

TEST_F(UsageTest, when_a_queue_is_gone_its_requests_stay_in_those_of_its_process_and_another_begins_at_0) {
  ConnectTwo(kOnlyReports);
  RequestOf(*urgent_, milliseconds(2));
  ipc::QueueDestroyed destroyed{};
  destroyed.index = 0;
  ASSERT_TRUE(agents_.HandleMessage(AgentOf(*urgent_), PacketOf(destroyed), now_));
  EXPECT_EQ(RequestsOfQueues(admin_).size(), 0u);
  EXPECT_EQ(Requests(Of(Usage(admin_), urgent_->connection->id, 5)), 1u);
  ASSERT_TRUE(CreateQueue(*urgent_, 0, 5));
  urgent_->block(0).submitted.store(0);
  urgent_->block(0).retired.store(0);
  Round();
  RequestOf(*urgent_, milliseconds(3));
  ASSERT_EQ(RequestsOfQueues(admin_).size(), 1u);
  EXPECT_EQ(RequestsOfQueues(admin_).begin()->second.request_ns, Ns(milliseconds(3)));
}

TEST_F(UsageTest, requests_of_queues_beyond_the_limit_are_counted_without_their_queue) {
  ConnectTwo(kOnlyReports);
  constexpr auto kQueues = static_cast<uint32_t>(kMaxTimedQueuesOfUser) + 2;
  for (uint32_t index = 1; index < kQueues; ++index) ASSERT_TRUE(CreateQueue(*urgent_, index, 5));
  Round();
  for (uint32_t index = 0; index < kQueues; ++index) RequestOf(*urgent_, milliseconds(1), index);
  EXPECT_EQ(RequestsOfQueues(admin_).size(), kMaxTimedQueuesOfUser);
  EXPECT_EQ(usage_.requests_without_queue(), 2u);
  EXPECT_EQ(Requests(OfUser(5)), kQueues);
  RequestOf(*low_, milliseconds(1));
  EXPECT_EQ(RequestsOfQueues(admin_).size(), kMaxTimedQueuesOfUser + 1) << "another user has room";
  ipc::QueueDestroyed destroyed{};
  ASSERT_TRUE(agents_.HandleMessage(AgentOf(*urgent_), PacketOf(destroyed), now_));
  RequestOf(*urgent_, milliseconds(1), kQueues - 1);
  EXPECT_EQ(usage_.requests_without_queue(), 2u) << "one that is gone makes room";
}

TEST_F(UsageTest, a_request_that_began_and_ended_between_two_looks_counts_as_short) {
  ConnectTwo(kOnlyReports);
  urgent_->block(0).submitted.fetch_add(1);
  RetireAndRound(*urgent_);
  EXPECT_EQ(OfUser(5).requests[0], 1u);
}

TEST_F(UsageTest, a_request_of_which_the_beginning_was_not_reported_is_not_counted) {
  const Client alone = ConnectAgent(kUser, 0, kOnlyReports);
  ASSERT_TRUE(CreateQueue(alone, 0, 5));
  SubmitAndRound(alone);
  ASSERT_FALSE(AgentOf(alone).queues.at(0).words.tracked());
  now_ += milliseconds(50);
  const Client other = ConnectAgent(kOther);
  ASSERT_TRUE(CreateQueue(other, 0, 0));
  Round();
  Round();
  ASSERT_TRUE(AgentOf(alone).queues.at(0).words.tracked());
  RetireAndRound(alone);
  EXPECT_EQ(Requests(OfUser(5)), 0u);
  SubmitAndRound(alone);
  RetireAndRound(alone);
  EXPECT_EQ(Requests(OfUser(5)), 1u) << "the next one is";
}

// ---- requests of clients that count their bursts ----

class CountedRequestsTest : public UsageTest {
 protected:
  ipc::ControlBlock& block() { return urgent_->block(0); }
  void Begin(TimePoint at) {
    block().submitted.fetch_add(1);
    ipc::BeginBurst(block(), at);
  }
  void End(TimePoint at) {
    block().retired.store(block().submitted.load());
    ipc::EndBurst(block(), at);
  }
  void RetireByDevice() { block().retired.store(block().submitted.load()); }
  void RingAndRound() {
    Ring(*urgent_, 0);
    Round();
  }
};

TEST_F(CountedRequestsTest, one_that_begins_before_the_end_of_another_is_read_is_another_one) {
  ConnectTwo();
  EXPECT_EQ(block().flags.load() & ipc::kFlagCounted, ipc::kFlagCounted);
  Begin(now_);
  RingAndRound();
  for (int i = 0; i < 3; ++i) {
    now_ += milliseconds(2);
    End(now_);
    Begin(now_);
    RingAndRound();
  }
  const ipc::Usage account = OfUser(5);
  EXPECT_EQ(Requests(account), 3u);
  EXPECT_EQ(account.requests[4], 3u) << "from 1 to 2.5 ms";
  EXPECT_EQ(account.request_ns, Ns(milliseconds(6)));
}

TEST_F(CountedRequestsTest, of_several_the_one_that_went_on_at_the_last_look_is_the_long_one) {
  ConnectTwo();
  Begin(now_);
  RingAndRound();
  RoundAfter(milliseconds(20));
  RingAndRound();
  End(now_ + microseconds(20));
  Begin(now_ + microseconds(30));
  End(now_ + microseconds(60));
  now_ += microseconds(100);
  RingAndRound();
  const ipc::Usage account = OfUser(5);
  EXPECT_EQ(Requests(account), 2u);
  EXPECT_EQ(account.requests[0], 1u) << "up to 100 µs";
  EXPECT_EQ(account.requests[7], 1u) << "from 10 to 25 ms";
  EXPECT_EQ(account.request_ns, Ns(milliseconds(20) + microseconds(50)));
}

TEST_F(CountedRequestsTest, one_that_is_seen_to_end_before_its_end_is_counted_is_counted_once) {
  ConnectTwo();
  Begin(now_);
  RingAndRound();
  now_ += milliseconds(5);
  RetireByDevice();
  RingAndRound();
  EXPECT_EQ(Requests(OfUser(5)), 1u);
  EXPECT_EQ(OfUser(5).request_ns, Ns(milliseconds(5)));
  // The next one begins right after its end is counted.
  now_ += milliseconds(20);
  ipc::EndBurst(block(), now_);
  Begin(now_);
  RingAndRound();
  EXPECT_EQ(Requests(OfUser(5)), 1u);
  now_ += milliseconds(2);
  End(now_);
  RingAndRound();
  EXPECT_EQ(Requests(OfUser(5)), 2u);
  EXPECT_EQ(OfUser(5).request_ns, Ns(milliseconds(7)));
}

TEST_F(CountedRequestsTest, one_that_is_over_at_the_first_look_has_its_length) {
  ConnectTwo();
  now_ += milliseconds(3);
  Begin(now_);
  RetireByDevice();
  now_ += microseconds(30);
  RingAndRound();
  now_ += microseconds(10);
  ipc::EndBurst(block(), now_);
  RingAndRound();
  EXPECT_EQ(Requests(OfUser(5)), 1u);
  EXPECT_EQ(OfUser(5).request_ns, Ns(microseconds(30)));
}

// Its program never waits for the device. The agent finds out that it is idle.
TEST_F(CountedRequestsTest, those_whose_end_the_scheduler_asks_for_are_counted) {
  ConnectTwo();
  for (int i = 0; i < 20; ++i) {
    Begin(now_);
    RingAndRound();
    now_ += milliseconds(2);
    RetireByDevice();
    ipc::CountFoundIdle(block());
    ipc::EndBurst(block(), now_);
    RingAndRound();
    now_ += milliseconds(14);
  }
  EXPECT_EQ(Requests(OfUser(5)), 20u);
  EXPECT_EQ(OfUser(5).request_ns, Ns(milliseconds(40)));
}

TEST_F(CountedRequestsTest, one_that_goes_on_for_its_client_is_as_long_as_the_client_says) {
  ConnectTwo();
  const TimePoint began = now_;
  for (int i = 0; i < 20; ++i) {
    Begin(now_);
    RingAndRound();
    now_ += milliseconds(5);
    RetireByDevice();  // nobody notices
    now_ += milliseconds(1);
  }
  ipc::EndBurst(block(), now_);
  RingAndRound();
  EXPECT_EQ(Requests(OfUser(5)), 1u);
  EXPECT_EQ(OfUser(5).request_ns, Ns(now_ - began));
}

TEST_F(CountedRequestsTest, one_that_was_seen_to_end_and_goes_on_for_its_client_is_two) {
  ConnectTwo();
  for (int i = 0; i < 2; ++i) {
    Begin(now_);
    RingAndRound();
    now_ += milliseconds(2);
    RetireByDevice();
    RingAndRound();
    now_ += milliseconds(10);
  }
  ipc::EndBurst(block(), now_);
  RingAndRound();
  EXPECT_EQ(Requests(OfUser(5)), 2u);
  EXPECT_EQ(OfUser(5).request_ns, Ns(milliseconds(4)));
}

TEST_F(CountedRequestsTest, the_time_between_one_that_was_seen_to_end_and_the_next_belongs_to_none) {
  ConnectTwo();
  Begin(now_);
  RingAndRound();
  now_ += milliseconds(2);
  RetireByDevice();
  RingAndRound();
  now_ += std::chrono::seconds(60);
  // Its client had not noticed the end, and goes on in the same burst.
  Begin(now_);
  End(now_ + microseconds(50));
  now_ += microseconds(100);
  RingAndRound();
  EXPECT_EQ(Requests(OfUser(5)), 2u);
  EXPECT_EQ(OfUser(5).request_ns, Ns(milliseconds(2)));
}

TEST_F(CountedRequestsTest, more_than_are_counted_at_one_look_have_their_own_length) {
  ConnectTwo();
  for (int i = 0; i < 4096; ++i) {
    Begin(now_);
    End(now_ + microseconds(40));
    now_ += microseconds(50);
  }
  RingAndRound();
  EXPECT_EQ(Requests(OfUser(5)), ipc::kMostBursts);
  EXPECT_EQ(OfUser(5).request_ns, ipc::kMostBursts * Ns(microseconds(40)));
}

TEST_F(CountedRequestsTest, a_client_that_counts_without_any_command_gets_no_account) {
  ConnectTwo();
  ipc::BeginBurst(block(), now_);
  ipc::EndBurst(block(), now_ + milliseconds(1));
  RoundAfter(milliseconds(2));
  RingAndRound();
  for (const ipc::Usage& account : Usage(admin_)) EXPECT_EQ(Requests(account), 0u);
}

TEST_F(CountedRequestsTest, older_agents_are_not_asked_to_count_and_what_they_count_is_not_taken) {
  constexpr uint16_t kCountsWrongly = 10;
  ConnectTwo(kCountsWrongly);
  EXPECT_EQ(block().flags.load() & ipc::kFlagCounted, 0u);
  Begin(now_);
  RingAndRound();
  now_ += milliseconds(2);
  for (int i = 0; i < 3; ++i) End(now_);
  RingAndRound();
  EXPECT_EQ(Requests(OfUser(5)), 1u);
  EXPECT_EQ(OfUser(5).request_ns, Ns(milliseconds(2)));
}

// Whatever falls between two looks: no request is lost, none is counted twice, and the sum is that of all.
TEST_F(CountedRequestsTest, all_are_counted_wherever_the_looks_fall) {
  ConnectTwo();
  std::mt19937 random(1);
  Duration busy{};
  uint64_t count = 0;
  const auto look_or_not = [&] {
    now_ += microseconds(random() % 50);
    if (random() % 3 == 0) RingAndRound();
  };
  for (; count < 2000; ++count) {
    const TimePoint began = now_;
    Begin(now_);
    look_or_not();
    for (uint32_t more = random() % 4; more > 0; --more) {
      block().submitted.fetch_add(1);
      now_ += microseconds(random() % 3000);
      look_or_not();
    }
    RetireByDevice();
    look_or_not();
    ipc::EndBurst(block(), now_);
    busy += now_ - began;
    look_or_not();
  }
  RingAndRound();
  EXPECT_EQ(Requests(OfUser(5)), count);
  EXPECT_NEAR(static_cast<double>(OfUser(5).request_ns), static_cast<double>(Ns(busy)),
              static_cast<double>(Ns(busy)) / 100);
}

TEST_F(CountedRequestsTest, one_that_began_before_bursts_were_counted_is_not_counted) {
  urgent_.emplace(ConnectAgent(kUser));
  ASSERT_TRUE(CreateQueue(*urgent_, 0, 5));
  // A former burst of which nobody counted the end.
  Begin(now_ - std::chrono::minutes(1));
  RingAndRound();
  now_ += milliseconds(50);
  const Client other = ConnectAgent(kOther);
  ASSERT_TRUE(CreateQueue(other, 0, 0));
  Round();
  Round();
  End(now_);
  Begin(now_);
  now_ += milliseconds(1);
  RingAndRound();
  EXPECT_EQ(Requests(OfUser(5)), 0u);
  End(now_);
  RingAndRound();
  EXPECT_EQ(Requests(OfUser(5)), 1u) << "the next one is";
  EXPECT_EQ(OfUser(5).request_ns, Ns(milliseconds(1)));
}

TEST_F(CountedRequestsTest, a_client_that_counts_nonsense_gets_no_time_that_there_was_not) {
  ConnectTwo();
  const TimePoint began = now_;
  for (const uint64_t nonsense : {UINT64_MAX, uint64_t{1}, UINT64_MAX / 2, uint64_t{0}}) {
    Begin(TimePoint(Duration(static_cast<Duration::rep>(nonsense / 4))));
    block().bursts.store(static_cast<uint32_t>(nonsense));
    block().busy_ns.store(nonsense);
    now_ += milliseconds(1);
    RingAndRound();
    EXPECT_LE(OfUser(5).request_ns, Ns(now_ - began) + Ns(milliseconds(4)));
  }
}

TEST_F(UsageTest, time_before_another_priority_stays_with_the_former_one) {
  ConnectTwo();
  SubmitAndRound(*low_);
  now_ += milliseconds(10);
  ipc::SetHints change{};
  change.pid = kUser.pid;
  change.mask = ipc::kHintPriority;
  change.hints.priority = 2;
  ASSERT_TRUE(Ask(admin_, change));
  Round();
  RoundAfter(milliseconds(4));
  EXPECT_EQ(OfUser(0).service_ns, Ns(milliseconds(10)));
  EXPECT_EQ(OfUser(2).service_ns, Ns(milliseconds(4)));
}

TEST_F(UsageTest, a_priority_that_is_set_before_the_first_work_leaves_no_account_of_the_former_one) {
  const Client client = ConnectAgent(kUser);
  ASSERT_TRUE(CreateQueue(client, 0, 0));
  Round();
  ipc::QueueHints hints{};
  hints.hints = {7, UTILIZATION_DEFAULT, NO_DEADLINE, NO_LAXITY, 0, 0};
  ASSERT_TRUE(agents_.HandleMessage(AgentOf(client), PacketOf(hints), now_));
  Round();
  SubmitAndRound(client);
  for (const ipc::Usage& account : Usage(admin_)) EXPECT_EQ(account.priority, 7);
}

TEST_F(UsageTest, what_a_process_had_stays_with_its_user_when_it_is_gone) {
  ConnectTwo();
  SubmitAndRound(*low_);
  now_ += milliseconds(10);
  const uint64_t id = low_->connection->id;
  connections_.Close(*low_->connection, nullptr);
  RemoveClosed();
  low_.reset();
  const std::vector<ipc::Usage> accounts = Usage(admin_);
  EXPECT_EQ(Of(accounts, 0, 0).service_ns, Ns(milliseconds(10)));
  for (const ipc::Usage& account : accounts) EXPECT_NE(account.client_id, id);
}

TEST_F(UsageTest, a_user_sees_the_accounts_that_list_would_show) {
  ConnectTwo();
  const Client tool = ConnectTool(kUser);
  for (const ipc::Usage& account : Usage(tool)) EXPECT_EQ(account.uid, kUser.uid);
  EXPECT_EQ(Usage(tool).size(), 2u) << "one of the user and one of the process";
  EXPECT_EQ(Usage(admin_).size(), 4u);
}

TEST_F(UsageTest, counters_never_fall_whatever_a_client_writes) {
  ConnectTwo();
  uint64_t before = 0;
  for (uint64_t nonsense :
       {uint64_t{100}, uint64_t{7}, UINT64_MAX, uint64_t{0}, UINT64_MAX - 1, uint64_t{3}}) {
    low_->block(0).submitted.store(nonsense);
    low_->block(0).retired.store(nonsense);
    Ring(*low_, 0);
    RoundAfter(milliseconds(1));
    const uint64_t commands = OfUser(0).commands;
    EXPECT_GE(commands, before);
    before = commands;
  }
  EXPECT_LT(before, uint64_t{1} << 40);
}

TEST_F(UsageTest, many_priorities_and_devices_of_a_user_share_one_account_in_the_end) {
  const Client client = ConnectAgent(kUser);
  constexpr uint32_t kQueues = 2 * kMaxAccountsOfUser;
  for (uint32_t i = 0; i < kQueues; ++i) ASSERT_TRUE(CreateQueue(client, i, 0, false, 1 + i));
  Usage(admin_);
  for (uint32_t i = 0; i < 8; ++i) {  // a user has no more queues at a time
    ipc::QueueDestroyed destroyed{};
    destroyed.index = i;
    ASSERT_TRUE(agents_.HandleMessage(AgentOf(client), PacketOf(destroyed), now_));
    ASSERT_TRUE(CreateQueue(client, i, 0, false, 1 + kQueues + i));
  }
  size_t of_user = 0;
  size_t of_process = 0;
  int others = 0;
  for (const ipc::Usage& account : Usage(admin_)) {
    ++(account.client_id == 0 ? of_user : of_process);
    others += account.others != 0 && account.device == 0;
  }
  EXPECT_EQ(of_user, 2 * kMaxAccountsOfUser + 1);
  EXPECT_EQ(of_process, 2 * kMaxAccountsOfProcess + 1);
  EXPECT_EQ(others, 2);
}

TEST_F(UsageTest, a_round_sends_a_bounded_part_of_the_answer) {
  std::vector<Client> clients;
  for (size_t i = 0; i < 2 * kMaxAccountsPerRound; ++i) {
    clients.push_back(ConnectAgent({static_cast<pid_t>(1000 + i), 1000, {}}));
    ASSERT_TRUE(CreateQueue(clients.back(), 0, 0));
  }
  ASSERT_TRUE(Ask(admin_, ipc::GetUsage{}));
  ASSERT_TRUE(tools_.IsAnswering(*admin_.connection));
  EXPECT_EQ(admin_.ReadAll<ipc::Usage>(), static_cast<int>(kMaxAccountsPerRound));
}

// Otherwise each answer that a tool leaves unread would keep a message for each of them.
TEST_F(UsageTest, queues_are_described_when_they_are_sent) {
  ConnectTwo(kOnlyReports);
  constexpr auto kQueues = static_cast<uint32_t>(2 * kMaxAccountsPerRound);
  for (uint32_t i = 1; i < kQueues; ++i) ASSERT_TRUE(CreateQueue(*urgent_, i, 5));
  for (uint32_t i = 0; i < kQueues; ++i) RequestOf(*urgent_, milliseconds(2), i);
  ASSERT_EQ(RequestsOfQueues(admin_).size(), kQueues);
  ipc::GetUsage request{};
  request.queues = 1;
  ASSERT_TRUE(Ask(admin_, request));
  int sent = admin_.ReadAll<ipc::QueueRequests>();
  ASSERT_GT(sent, 0);
  ipc::QueueDestroyed destroyed{};
  destroyed.index = kQueues - 1;
  ASSERT_TRUE(agents_.HandleMessage(AgentOf(*urgent_), PacketOf(destroyed), now_));
  while (tools_.IsAnswering(*admin_.connection)) {
    ASSERT_TRUE(tools_.Continue(*admin_.connection, now_));
    sent += admin_.ReadAll<ipc::QueueRequests>();
  }
  EXPECT_EQ(sent, static_cast<int>(kQueues - 1));
}

TEST_F(UsageTest, a_round_reads_a_bounded_number_of_agents_without_queues_or_that_have_gone) {
  std::vector<Client> clients;
  for (size_t i = 0; i < 3 * kMaxAccountsPerRound; ++i)
    clients.push_back(ConnectAgent({static_cast<pid_t>(1000 + i), 1000, {}}));
  ASSERT_TRUE(Ask(admin_, ipc::GetUsage{}));
  ASSERT_TRUE(tools_.IsAnswering(*admin_.connection)) << "without queues";
  for (const Client& client : clients) connections_.Close(*client.connection, nullptr);
  RemoveClosed();
  ASSERT_TRUE(tools_.Continue(*admin_.connection, now_));
  EXPECT_TRUE(tools_.IsAnswering(*admin_.connection)) << "gone";
}

TEST_F(UsageTest, accounts_of_further_users_are_sent_once) {
  for (uid_t user = 0; user <= kMaxUsersWithAccounts; ++user) {
    const Client client = ConnectAgent({static_cast<pid_t>(1000 + user), 1000 + user, {}});
    ASSERT_TRUE(CreateQueue(client, 0, 0));
    Usage(ConnectTool({1, 1000 + user, {}}));
    connections_.Close(*client.connection, nullptr);
    RemoveClosed();
  }
  const std::vector<ipc::Usage> accounts = Usage(admin_);
  EXPECT_EQ(accounts.size(), kMaxUsersWithAccounts + 1);
  EXPECT_EQ(std::ranges::count(accounts, UsageMeter::kOtherUsers, &ipc::Usage::uid), 1);
}

TEST_F(UsageTest, what_an_answer_costs_is_charged_to_who_asks) {
  const Client client = ConnectAgent(kUser);
  for (uint32_t i = 0; i < WorkBudget::kPerRound; ++i) ASSERT_TRUE(CreateQueue(client, i, 0));
  const Client tool = ConnectTool(kUser);
  work_.BeginRound();
  ASSERT_TRUE(Ask(tool, ipc::GetUsage{}));
  EXPECT_TRUE(work_.IsSpent(kUser.uid));
  EXPECT_FALSE(work_.IsSpent(kAdmin.uid));
}

TEST(Accounts, are_visited_in_order_and_the_one_for_all_others_at_last) {
  Accounts accounts(1);
  accounts.At(7, 1, "seven").usage.commands = 1;
  accounts.At(3, 1, "three").usage.commands = 2;
  accounts.At(9, 1, "nine").usage.commands = 3;
  accounts.At(10, 1, "ten").usage.commands += 4;
  std::vector<std::pair<uint64_t, uint64_t>> visited;
  accounts.ForEach([&](const UsageKey& key, const Account& account) {
    visited.emplace_back(key.device, account.usage.commands);
  });
  EXPECT_EQ(visited, (std::vector<std::pair<uint64_t, uint64_t>>{{3, 2}, {7, 1}, {0, 7}}));
}

TEST(Accounts, further_priorities_still_count_for_their_device) {
  Accounts accounts(2);
  for (Priority priority : {0, 1, 2, 3}) ++accounts.At(7, priority, "seven").usage.commands;
  accounts.At(0, 1, "of no number").usage.commands += 9;
  std::vector<std::tuple<uint64_t, bool, uint64_t>> visited;
  accounts.ForEach([&](const UsageKey& key, const Account& account) {
    visited.emplace_back(key.device, key.others, account.usage.commands);
  });
  std::ranges::sort(visited);
  EXPECT_EQ(visited, (std::vector<std::tuple<uint64_t, bool, uint64_t>>{
                         {0, true, 9}, {7, false, 1}, {7, false, 1}, {7, true, 2}}));
}

TEST(QueueTimes, are_limited_for_each_user_and_for_all) {
  QueueTimes times({.of_user = 2, .of_all = 3});
  EXPECT_NE(times.Add(sched::QueueId{1}, 1000), nullptr);
  EXPECT_NE(times.Add(sched::QueueId{2}, 1000), nullptr);
  EXPECT_EQ(times.Add(sched::QueueId{3}, 1000), nullptr) << "the user's";
  EXPECT_NE(times.Add(sched::QueueId{4}, 1001), nullptr);
  EXPECT_EQ(times.Add(sched::QueueId{5}, 1001), nullptr) << "those of all";
  times.Remove(sched::QueueId{1});
  times.Remove(sched::QueueId{1});
  EXPECT_NE(times.Add(sched::QueueId{5}, 1000), nullptr);
}

TEST(RequestTimes, have_a_bucket_for_every_time) {
  RequestTimes times;
  for (const Duration time : {Duration::zero(), Duration(std::chrono::hours(1)), RequestTimes::kBounds[3],
                              RequestTimes::kBounds[3] + Duration(1)})
    times.Add(time, RequestTimes::BucketOf(time));
  EXPECT_EQ(times.counts.front(), 1u);
  EXPECT_EQ(times.counts.back(), 1u);
  EXPECT_EQ(times.counts[3], 1u);
  EXPECT_EQ(times.counts[4], 1u);
}

}  // namespace
}  // namespace xsched::server::testing
