// How much of a round each user may take. A user whose share is used up is served again in the next round,
// after the others: so one user's messages delay those of the user's own, and nobody else's for long. It
// never looks at a clock: work is counted, in what takes about a microsecond.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "server/subordinate_users.h"

namespace xsched::server {

class WorkBudget {
 public:
  // A user's share of one round.
  static constexpr uint64_t kPerRound = 256;
  // What a message takes that is sent, and one that is read.
  static constexpr uint64_t kSent = 2;
  static constexpr uint64_t kRead = 3;
  // A file or folder of the kernel's is looked up.
  static constexpr uint64_t kLookedUp = 8;
  // A queue is forgotten.
  static constexpr uint64_t kForgotten = 3;
  // So many agents or queues are looked at, and nothing more, as one piece of work.
  static constexpr uint64_t kLookedAtAsOne = 8;

  explicit WorkBudget(SubordinateUsers subordinates = {}) : subordinates_(std::move(subordinates)) {}

  void BeginRound() { ++round_; }
  // The user has used up this round's share. What was taken beyond it counts in the next rounds.
  bool IsSpent(uid_t user) const;
  // One piece of work may be larger than what is left of the share: it is done in one go, and paid back.
  void Charge(uid_t user, uint64_t work);
  // The largest amount that one user took in one round, since the server began.
  uint64_t most() const { return most_; }

 private:
  struct Account {
    uint64_t round = 0;  // the last one in which it was charged
    uint64_t owed = 0;   // at that time
  };
  uint64_t OwedBy(const Account& account) const;

  SubordinateUsers subordinates_;
  std::unordered_map<uid_t, Account> accounts_;  // of users, each with its subordinates
  uint64_t round_ = 0;
  uint64_t most_ = 0;
};

}  // namespace xsched::server
