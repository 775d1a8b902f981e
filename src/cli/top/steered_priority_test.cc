#include "cli/top/steered_priority.h"

#include <gtest/gtest.h>

#include <cstring>

namespace xsched::cli {
namespace {

ipc::QueueInfo Claiming(int32_t claimed, int32_t counted, const char* tenant) {
  ipc::QueueInfo queue{};
  queue.hints.priority = claimed;
  queue.counted_priority = counted;
  std::strcpy(queue.tenant, tenant);
  return queue;
}

TEST(SteeredPriority, is_what_counts_for_an_administrator_whose_change_counts_as_it_is) {
  EXPECT_EQ(SteeredPriority(Claiming(10, 0, "uid:1000"), /*is_admin=*/true), 0);
}

TEST(SteeredPriority, is_the_claim_for_a_user_who_changes_the_claim) {
  EXPECT_EQ(SteeredPriority(Claiming(10, 0, "uid:1000"), /*is_admin=*/false), 10);
}

TEST(SteeredPriority, is_the_claim_where_the_server_does_not_say_what_counts) {
  EXPECT_EQ(SteeredPriority(Claiming(10, 0, ""), /*is_admin=*/true), 10);
}

}  // namespace
}  // namespace xsched::cli
