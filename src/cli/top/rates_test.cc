#include "cli/top/rates.h"

#include <gtest/gtest.h>

namespace xsched::cli {
namespace {

ipc::QueueInfo Queue(uint64_t id, uint64_t submitted, uint64_t service_ms, uint64_t waiting_ms) {
  ipc::QueueInfo queue{};
  queue.queue_id = id;
  queue.submitted = submitted;
  queue.service_ns = service_ms * 1'000'000;
  queue.waiting_ns = waiting_ms * 1'000'000;
  return queue;
}

TEST(Rates, are_what_happened_per_second_between_two_looks) {
  auto rates = RatesBetween({Queue(1, 100, 1000, 50)}, {Queue(1, 300, 1500, 250)}, 2.0);
  ASSERT_EQ(rates.size(), 1u);
  EXPECT_DOUBLE_EQ(rates[0].commands_per_s, 100);
  EXPECT_DOUBLE_EQ(rates[0].device_share, 0.25);
  EXPECT_DOUBLE_EQ(rates[0].waiting_share, 0.1);
}

TEST(Rates, of_a_new_queue_are_those_since_it_began) {
  auto rates = RatesBetween({Queue(1, 0, 0, 0)}, {Queue(2, 20, 500, 1000)}, 2.0);
  ASSERT_EQ(rates.size(), 1u);
  EXPECT_EQ(rates[0].commands_per_s, 10);
  EXPECT_EQ(rates[0].device_share, 0.25);
  EXPECT_EQ(rates[0].waiting_share, 0.5);
}

TEST(Rates, of_the_first_look_are_zero_whatever_was_done_before) {
  EXPECT_EQ(RatesBetween({}, {Queue(2, 999, 999, 999)}, 0)[0].device_share, 0);
  EXPECT_EQ(RatesBetween({}, AccountsOf({Queue(2, 999, 999, 999)}), 0)[0].device_share, 0);
}

TEST(Rates, of_accounts_are_the_shares_of_device_time) {
  std::vector<ipc::Usage> before(1);
  std::vector<ipc::Usage> now(2);
  before[0].client_id = now[0].client_id = 4;
  before[0].service_ns = 1'000'000'000;
  now[0].service_ns = 1'500'000'000;
  now[1].client_id = 5;
  now[1].service_ns = 100'000'000;
  const auto rates = RatesBetween(before, now, 2.0);
  ASSERT_EQ(rates.size(), 2u);
  EXPECT_DOUBLE_EQ(rates[0].device_share, 0.25);
  EXPECT_DOUBLE_EQ(rates[1].device_share, 0.05);
  now[0].priority = 3;
  EXPECT_DOUBLE_EQ(RatesBetween(before, now, 2.0)[0].device_share, 0.75) << "it is another account";
}

TEST(Rates, of_tenants_are_the_shares_of_the_time_of_all_devices_together) {
  std::vector<ipc::Tenant> before(1);
  std::vector<ipc::Tenant> now(2);
  ipc::SetText(before[0].name, "lab");
  ipc::SetText(now[0].name, "new");
  ipc::SetText(now[1].name, "lab");
  before[0].service_ns = 1'000'000'000;
  now[0].service_ns = 100'000'000;
  now[1].service_ns = 4'000'000'000;
  const auto rates = RatesBetween(before, now, 2.0);
  ASSERT_EQ(rates.size(), 2u);
  EXPECT_DOUBLE_EQ(rates[0].device_share, 0.05);
  EXPECT_STREQ(rates[1].tenant.name, "lab");
  EXPECT_DOUBLE_EQ(rates[1].device_share, 1.5);
  EXPECT_EQ(RatesBetween({}, now, 0)[0].device_share, 0);
}

TEST(Rates, of_a_server_without_accounts_are_the_sums_of_queues) {
  std::vector<ipc::QueueInfo> queues = {Queue(1, 0, 100, 0), Queue(2, 0, 200, 0), Queue(3, 0, 400, 0)};
  queues[0].client_id = queues[1].client_id = 7;
  queues[2].client_id = 8;
  const std::vector<ipc::Usage> accounts = AccountsOf(queues);
  ASSERT_EQ(accounts.size(), 3u);
  EXPECT_EQ(accounts[0].client_id, 0u);
  EXPECT_EQ(accounts[0].service_ns, 700'000'000u);
  EXPECT_EQ(accounts[1].client_id, 7u);
  EXPECT_EQ(accounts[1].service_ns, 300'000'000u);
  EXPECT_EQ(accounts[2].service_ns, 400'000'000u);
}

TEST(Rates, are_in_the_order_of_now_and_without_what_has_gone) {
  auto rates =
      RatesBetween({Queue(1, 0, 0, 0), Queue(2, 0, 0, 0)}, {Queue(3, 0, 0, 0), Queue(2, 5, 0, 0)}, 1.0);
  ASSERT_EQ(rates.size(), 2u);
  EXPECT_EQ(rates[0].queue.queue_id, 3u);
  EXPECT_EQ(rates[1].queue.queue_id, 2u);
  EXPECT_DOUBLE_EQ(rates[1].commands_per_s, 5);
}

TEST(Rates, are_no_more_than_the_whole_device_if_the_server_looked_a_little_later) {
  EXPECT_EQ(RatesBetween({Queue(1, 0, 0, 0)}, {Queue(1, 0, 1'010'000'000, 0)}, 1.0)[0].device_share, 1.0);
}

TEST(Rates, are_zero_when_counters_went_back_or_no_time_passed) {
  EXPECT_EQ(RatesBetween({Queue(1, 9, 9, 9)}, {Queue(1, 3, 3, 3)}, 1.0)[0].commands_per_s, 0);
  EXPECT_EQ(RatesBetween({Queue(1, 0, 0, 0)}, {Queue(1, 3, 3, 3)}, 0.0)[0].device_share, 0);
}

}  // namespace
}  // namespace xsched::cli
