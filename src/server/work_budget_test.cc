#include "server/work_budget.h"

#include <gtest/gtest.h>

namespace xsched::server {
namespace {

constexpr uid_t kUser = 1000;
constexpr uid_t kOther = 1001;

TEST(WorkBudget, a_users_share_of_a_round_ends_and_the_next_round_has_another) {
  WorkBudget work;
  work.BeginRound();
  work.Charge(kUser, WorkBudget::kPerRound - 1);
  EXPECT_FALSE(work.IsSpent(kUser));
  work.Charge(kUser, 1);
  EXPECT_TRUE(work.IsSpent(kUser));
  EXPECT_FALSE(work.IsSpent(kOther));
  work.BeginRound();
  EXPECT_FALSE(work.IsSpent(kUser));
}

TEST(WorkBudget, a_large_piece_of_work_is_paid_back_by_rounds_without_service) {
  WorkBudget work;
  work.BeginRound();
  work.Charge(kUser, 3 * WorkBudget::kPerRound);
  for (int round = 0; round < 2; ++round) {
    work.BeginRound();
    EXPECT_TRUE(work.IsSpent(kUser)) << round;
  }
  work.BeginRound();
  EXPECT_FALSE(work.IsSpent(kUser));
}

TEST(WorkBudget, rounds_without_work_give_no_credit) {
  WorkBudget work;
  for (int round = 0; round < 100; ++round) work.BeginRound();
  work.Charge(kUser, WorkBudget::kPerRound);
  EXPECT_TRUE(work.IsSpent(kUser));
}

}  // namespace
}  // namespace xsched::server
