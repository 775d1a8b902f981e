// What top shows, at several widths.
#include "cli/top/top_text.h"

#include <gmock/gmock.h>

#include <cstring>

#include "cli/top/text_columns.h"
#include "ipc/testing/packet_of.h"

namespace xsched::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

QueueRates Queue(uint64_t id, const char* name, int32_t priority, double share) {
  QueueRates entry{};
  ipc::QueueInfo& queue = entry.queue;
  queue.queue_id = id;
  queue.client_id = id;
  queue.pid = static_cast<int32_t>(800 + id);
  queue.uid = 4'000'000'000;
  queue.level = 2;
  queue.hints.priority = priority;
  queue.hints.utilization = 100;
  queue.state = static_cast<uint32_t>(sched::QueueState::kReady);
  queue.run = 1;
  queue.service_ns = 2'500'000'000;
  strncpy(queue.name, name, sizeof queue.name - 1);
  strncpy(queue.device_name, "NVIDIA H200", sizeof queue.device_name - 1);
  entry.device_share = share;
  return entry;
}

// That of its process (0: of its user).
AccountRates AccountOf(const QueueRates& entry, uint64_t client) {
  AccountRates rates{};
  rates.device_share = entry.device_share;
  ipc::Usage& account = rates.account;
  account.client_id = client;
  account.pid = entry.queue.pid;
  account.uid = entry.queue.uid;
  account.service_ns = entry.queue.service_ns;
  strncpy(account.name, entry.queue.name, sizeof account.name - 1);
  return rates;
}

class TopTextTest : public testing::Test {
 protected:
  TopTextTest() {
    recent_.BeginLook(TimePoint(seconds(100)), seconds(1));
    for (const auto& [id, name, priority] : {std::tuple{1, "serve", 10}, std::tuple{2, "train", 0}}) {
      ipc::RecordedQueue queue{};
      queue.queue_id = queue.client_id = static_cast<uint64_t>(id);
      queue.pid = 800 + id;
      queue.hints.priority = priority;
      strncpy(queue.name, name, sizeof queue.name - 1);
      recent_.Take(PacketOf(queue));
    }
    ipc::RecordedHold hold{};
    hold.queue_id = 2;
    hold.because_of = 1;
    hold.span_ns = 82'000'000;
    hold.why = static_cast<uint32_t>(sched::WaitReason::kHeld);
    recent_.Take(PacketOf(hold));
    for (int i = 1; i < 11; ++i) {
      ipc::RecordedBurst burst{};
      burst.queue_id = 1;
      burst.at_ns = static_cast<uint64_t>(i) * 50'000'000;
      burst.span_ns = static_cast<uint64_t>(i) * 1'000'000;
      recent_.Take(PacketOf(burst));
    }
    recent_.EndLook(seconds(1));
  }
  // One for each queue, of its process and of its user.
  std::vector<AccountRates> Accounts() const {
    std::vector<AccountRates> accounts;
    for (const QueueRates& entry : queues_) {
      for (uint64_t client : {entry.queue.client_id, uint64_t{0}})
        accounts.push_back(AccountOf(entry, client));
    }
    return accounts;
  }
  std::vector<std::string> Sentences(const ipc::Status& status = {}) const {
    return TopSentences(status, queues_, Accounts(), tenants_, recent_);
  }
  std::string Row(int width, bool ascii = false) const {
    return TopRow(queues_[0], recent_.RequestsOf(1), {.width = width, .ascii = ascii});
  }

  std::vector<QueueRates> queues_ = {Queue(1, "serve", 10, 0.25), Queue(2, "train", 0, 0.7)};
  std::vector<TenantRates> tenants_;
  Recent recent_{30, seconds(1)};
};

TenantRates TenantOf(const char* name, uint32_t processes, double share) {
  TenantRates rates{.device_share = share};
  ipc::SetText(rates.tenant.name, std::string_view(name));
  rates.tenant.processes = processes;
  return rates;
}

TEST_F(TopTextTest, device_time_of_each_user_is_shown_if_there_are_several) {
  EXPECT_EQ(SumsLine(Accounts(), tenants_, {}), "");
  EXPECT_THAT(Sentences(), Not(testing::Contains(testing::StartsWith("User "))));
  queues_.push_back(Queue(3, "other", 0, 0.4));
  queues_[0].queue.uid = 4'000'000'001;
  queues_[2].queue.uid = 4'000'000'001;
  EXPECT_EQ(SumsLine(Accounts(), tenants_, {}), "users: 4000000000 70.0%, 4000000001 65.0%");
  EXPECT_EQ(SumsLine(Accounts(), tenants_, {.width = 12}), "users: 40000");
  EXPECT_THAT(Sentences(), testing::Contains("User 4000000001: 65.0 percent of a device."));
}

TEST_F(TopTextTest, device_time_of_each_tenant_is_shown_where_there_is_one_of_the_tenants_file) {
  tenants_ = {TenantOf("uid:4000000000", 1, 0.3), TenantOf("lab", 2, 1.25), TenantOf("gone", 0, 0.1),
              TenantOf("unused", 0, 0)};
  EXPECT_EQ(SumsLine(Accounts(), tenants_, {}), "tenants: lab 125.0%, user 4000000000 30.0%, gone 10.0%");
  EXPECT_EQ(SumsLine(Accounts(), tenants_, {.width = 13}), "tenants: lab ");
  EXPECT_THAT(Sentences(), testing::IsSupersetOf({"Tenant lab: 125.0 percent of a device.",
                                                  "Tenant user 4000000000: 30.0 percent of a device."}));
  tenants_ = {TenantOf("lab", 1, 0)};
  EXPECT_EQ(SumsLine(Accounts(), tenants_, {}), "tenants: lab 0.0%");
}

TEST_F(TopTextTest, users_are_shown_where_each_of_them_is_a_tenant) {
  queues_[0].queue.uid = 4'000'000'001;
  tenants_ = {TenantOf("uid:4000000000", 1, 0.9), TenantOf("uid:4000000001", 1, 0.8),
              TenantOf("others", 1, 0.1), TenantOf("unused", 0, 0)};
  EXPECT_EQ(SumsLine(Accounts(), tenants_, {}), "users: 4000000000 70.0%, 4000000001 25.0%");
}

TEST_F(TopTextTest, no_line_is_wider_than_the_terminal_and_headings_stand_over_their_columns) {
  const ipc::Status status{};
  History history(30);
  for (int i = 0; i < 30; ++i) history.Add(0.5);
  for (int width = 20; width < 250; ++width) {
    const TopStyle style{.width = width};
    std::vector<std::string> lines = {TopSummary(status, style),
                                      DeviceLine("CUDA: NVIDIA H200", 0.97, history, style),
                                      TopHeading(style), Row(width)};
    for (const std::string& line : WaitLines(recent_, 3, style)) lines.push_back(line);
    for (const std::string& line : ProcessLines(Accounts(), style)) lines.push_back(line);
    lines.push_back(SumsLine(Accounts(), tenants_, style));
    for (const std::string& line : lines) EXPECT_LE(WidthOf(line), width) << line;
    EXPECT_EQ(TopHeading(style).find("PROCESS"), Row(width).find("serve")) << width;
  }
}

TEST_F(TopTextTest, a_narrow_terminal_has_what_matters_most) {
  EXPECT_EQ(TopHeading({.width = 40}), "PROCESS       STATE      DEVICE LATENCY");
  EXPECT_EQ(Row(40), "serve         run         25.0%       █");
  EXPECT_EQ(TopHeading({.width = 80}),
            "     PID PROCESS      STATE      PRIO  DEVICE WAITING      P50      P99 LATENCY");
}

TEST_F(TopTextTest, a_wide_terminal_has_all_and_why_a_queue_does_not_run_at_the_end) {
  const std::string heading = TopHeading({.width = 200});
  for (const char* column :
       {"QUEUE", "PID", "PRIO", "UTIL", "LVL", "COMMANDS/s", "WAITING", "P50", "P99", "LATENCY"})
    EXPECT_THAT(heading, HasSubstr(column));
  EXPECT_THAT(heading, EndsWith(" ON"));
  QueueRates& train = queues_[1];
  train.queue.run = 0;
  train.queue.wait_reason = static_cast<uint32_t>(sched::WaitReason::kTurn);
  train.queue.waiting_since_ns = 1'200'000'000;
  const std::string row = TopRow(train, recent_.RequestsOf(2));
  EXPECT_THAT(row, EndsWith(" NVIDIA H200: waits for its turn since 1.2 s"));
  EXPECT_THAT(row, HasSubstr("        -        - ")) << "its latencies are not known";
  train.queue.wait_reason = 0;
  EXPECT_THAT(TopRow(train, recent_.RequestsOf(2)), EndsWith(" NVIDIA H200"));
}

TEST_F(TopTextTest, an_administrator_sees_the_priority_that_counts_and_others_what_is_claimed) {
  ipc::QueueInfo& queue = queues_[0].queue;
  queue.tenant[0] = 't';
  queue.counted_priority = -3;
  EXPECT_THAT(Row(80), HasSubstr("   10 "));
  EXPECT_THAT(TopRow(queues_[0], recent_.RequestsOf(1), {.width = 80, .is_admin = true}),
              HasSubstr("   -3 "));
  ipc::Status status{};
  status.is_admin = 1;
  EXPECT_THAT(Sentences(status), testing::Contains(HasSubstr("Queue 1, priority -3, ")));
}

TEST_F(TopTextTest, a_row_has_the_latencies_of_lately) {
  const std::string row = Row(200);
  EXPECT_THAT(row, HasSubstr("  5.0 ms  10.0 ms "));
  EXPECT_THAT(row, HasSubstr("█"));
  EXPECT_THAT(Row(200, /*ascii=*/true), HasSubstr("@"));
  EXPECT_THAT(Row(200, /*ascii=*/true), Not(HasSubstr("█")));
}

TEST_F(TopTextTest, who_waits_for_whom_is_a_line) {
  EXPECT_THAT(
      WaitLines(recent_, 3, {}),
      ElementsAre("train (pid 802) held for serve (pid 801), priority 10: 82.0 ms of the last 1.0 s"));
  EXPECT_THAT(WaitLines(recent_, 3, {.width = 60}),
              ElementsAre("8% train (pid 802) held for serve (pid 801)"));
  EXPECT_THAT(WaitLines(recent_, 3, {.width = 40}), ElementsAre("8% train held for serve"));
  EXPECT_THAT(WaitLines(recent_, 0, {}), IsEmpty());
}

TEST_F(TopTextTest, each_process_has_its_device_time) {
  queues_.push_back(Queue(2, "train", 0, 0.1));
  const std::vector<std::string> lines = ProcessLines(Accounts(), {.width = 80});
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[1], "     802 4000000000 train                    5.0 s   80.0%");
  EXPECT_EQ(lines[2], "     801 4000000000 serve                    2.5 s   25.0%");
  EXPECT_EQ(ProcessLines(Accounts(), {.width = 40})[1], "train                    5.0 s   80.0%");
}

TEST_F(TopTextTest, a_process_and_a_user_have_the_device_time_of_queues_that_are_gone) {
  std::vector<AccountRates> accounts = Accounts();
  accounts[0].account.memory_used = accounts[0].account.memory_limit = 1 << 30;
  queues_.clear();
  EXPECT_EQ(ProcessLines(accounts, {.width = 80})[1],
            "     802 4000000000 train                    2.5 s   70.0%");
  EXPECT_THAT(ProcessLines(accounts, {.width = 80})[2], EndsWith(" 25.0%  1.0 of 1.0 GiB"));
  AccountRates ended = accounts[1];
  ended.account.uid = 4'000'000'001;
  EXPECT_EQ(SumsLine({accounts[0], accounts[1], ended}, {}, {}), "users: 4000000000 25.0%, 4000000001 25.0%");
  ended.device_share = 0;
  EXPECT_EQ(SumsLine({accounts[0], accounts[1], ended}, {}, {}), "") << "it was there long ago";
}

TEST_F(TopTextTest, sentences_have_no_drawing_and_say_the_same) {
  ipc::Status status{};
  strncpy(status.version, "2.0.0", sizeof status.version - 1);
  strncpy(status.setting, "HPF", sizeof status.setting - 1);
  status.clients = 2;
  status.queues = 2;
  EXPECT_THAT(
      Sentences(status),
      ElementsAre("xserver 2.0.0, policy HPF: 2 clients, 2 queues.",
                  "train (pid 802) held for serve (pid 801), priority 10: 82.0 ms of the last 1.0 s.",
                  "train, pid 802, user 4000000000: 70.0 percent of a device, 2.5 s of device time so far.",
                  "Queue 2, priority 0, run: 70.0 percent of NVIDIA H200, waiting 0.0 percent of the time.",
                  "serve, pid 801, user 4000000000: 25.0 percent of a device, 2.5 s of device time so far.",
                  "Queue 1, priority 10, run: 25.0 percent of NVIDIA H200, waiting 0.0 percent of the time; "
                  "10 requests, "
                  "half of them within 5.0 ms, 99 percent within 10.0 ms, the longest 10.0 ms."));
  recent_.BeginLook(TimePoint(seconds(101)), seconds(1));
  EXPECT_THAT(TopSentences(status, {}, {}, {}, recent_),
              ElementsAre(testing::_, HasSubstr("the server remembers nothing")));
  recent_.EndLook(seconds(1));
  EXPECT_THAT(TopSentences(status, {}, {}, {}, recent_),
              ElementsAre(testing::_, "Nobody waited in the last 1.0 s."));
}

TEST(TextColumns, count_characters_and_not_bytes) {
  EXPECT_EQ(WidthOf("µs█"), 3);
  EXPECT_EQ(Cut("µs█", 2), "µs");
  EXPECT_EQ(Fit("µ", 3), "µ  ");
  EXPECT_EQ(Fit("µsµs", 3, /*right=*/true), "µsµ");
  EXPECT_EQ(Fit("ab", 3, /*right=*/true), " ab");
}

}  // namespace
}  // namespace xsched::cli
