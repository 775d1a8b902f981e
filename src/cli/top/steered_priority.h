// The priority from which + and - go.
#pragma once

#include "ipc/messages.h"

namespace xsched::cli {

// A user sets what a queue claims. What an administrator sets counts as it is. So for administrators, a queue
// that claims more than it may has the priority that counts: from its claim, - would raise it.
inline int32_t SteeredPriority(const ipc::QueueInfo& queue, bool is_admin) {
  const bool says_what_counts = queue.tenant[0] != '\0';  // older servers do not
  return is_admin && says_what_counts ? queue.counted_priority : queue.hints.priority;
}

}  // namespace xsched::cli
