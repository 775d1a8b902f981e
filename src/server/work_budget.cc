#include "server/work_budget.h"

#include <algorithm>

namespace xsched::server {
namespace {

// Accounts that owe nothing are then forgotten.
constexpr size_t kMostAccounts = 1024;

}  // namespace

uint64_t WorkBudget::OwedBy(const Account& account) const {
  const uint64_t rounds = round_ - account.round;
  // Without the division, a product of a large number of rounds might overflow.
  return account.owed / kPerRound < rounds ? 0 : account.owed - rounds * kPerRound;
}

bool WorkBudget::IsSpent(uid_t user) const {
  const auto found = accounts_.find(subordinates_.OwnerOf(user));
  return found != accounts_.end() && OwedBy(found->second) >= kPerRound;
}

void WorkBudget::Charge(uid_t user, uint64_t work) {
  if (accounts_.size() >= kMostAccounts)
    std::erase_if(accounts_, [&](const auto& entry) { return OwedBy(entry.second) == 0; });
  Account& account = accounts_[subordinates_.OwnerOf(user)];
  account.owed = OwedBy(account) + work;
  account.round = round_;
  most_ = std::max(most_, account.owed);
}

}  // namespace xsched::server
