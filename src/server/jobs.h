// Ids for jobs, so that no user can join another's job by sending its number.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <utility>

#include "sched/core/types.h"

namespace xsched::server {

// A user and the number that the user's agents sent (ipc::Hello::job).
using Job = std::pair<uid_t, uint64_t>;

class Jobs {
 public:
  // One more process of the job.
  sched::JobId Join(const Job& job) {
    Entry& entry = entries_[job];
    if (entry.processes++ == 0) entry.id = sched::JobId{next_++};
    return entry.id;
  }
  // REQUIRES: a Join that was not left.
  void Leave(const Job& job) {
    auto found = entries_.find(job);
    if (--found->second.processes == 0) entries_.erase(found);
  }

 private:
  struct Entry {
    sched::JobId id{};
    size_t processes = 0;
  };
  std::map<Job, Entry> entries_;
  uint64_t next_ = 1;
};

}  // namespace xsched::server
