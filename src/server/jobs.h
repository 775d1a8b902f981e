// Gives ids to jobs. A user cannot join another user's job by sending its number.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <utility>

#include "sched/core/types.h"

namespace xsched::server {

// A user and a number that the user's agents sent (ipc::Hello::job, ipc::JoinJob).
using Job = std::pair<uid_t, uint64_t>;

class Jobs {
 public:
  // One more process of the job.
  sched::JobId Join(const Job& job) {
    Entry& entry = entries_[job];
    if (entry.processes++ == 0) entry.id = sched::JobId{next_++};
    return entry.id;
  }
  // The job of those who have joined it. REQUIRES: somebody has.
  sched::JobId IdOf(const Job& job) const { return entries_.find(job)->second.id; }
  // They are one job from now on. False: they were. REQUIRES: both have processes, and are of one user.
  bool Unite(const Job& one, const Job& other) {
    const sched::JobId kept = IdOf(one);
    const sched::JobId gone = IdOf(other);
    if (kept == gone) return false;
    const uid_t user = one.first;
    for (auto entry = entries_.lower_bound({user, 0}); entry != entries_.end() && entry->first.first == user;
         ++entry) {
      if (entry->second.id == gone) entry->second.id = kept;
    }
    return true;
  }
  // REQUIRES: a call of Join for which Leave was not called yet.
  void Leave(const Job& job) {
    auto found = entries_.find(job);
    if (--found->second.processes == 0) entries_.erase(found);
  }

  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    sched::JobId id{};
    size_t processes = 0;
  };
  std::map<Job, Entry> entries_;
  uint64_t next_ = 1;
};

}  // namespace xsched::server
