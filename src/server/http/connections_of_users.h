// Counts the HTTP connections of each user, so that none of them takes those of the others.
#pragma once

#include <sys/types.h>

#include <map>

namespace xsched::server::http {

class ConnectionsOfUsers {
 public:
  // Stands for those whose user is not known.
  static constexpr uid_t kUnknown = static_cast<uid_t>(-1);

  explicit ConnectionsOfUsers(unsigned most) : most_(most) {}

  // One more of this user. False: there are too many, and it is not counted.
  bool Add(uid_t user) {
    unsigned& count = counts_[user];
    if (count == most_) return false;
    ++count;
    return true;
  }
  // REQUIRES: it was counted.
  void Remove(uid_t user) {
    if (const auto found = counts_.find(user); --found->second == 0) counts_.erase(found);
  }

 private:
  const unsigned most_;
  std::map<uid_t, unsigned> counts_;  // those who have some
};

}  // namespace xsched::server::http
