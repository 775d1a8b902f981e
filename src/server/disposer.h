// Closes descriptors that came from a client and are not what they should be. Closing one may take as long as
// its maker likes (a FUSE file's daemon is told first), so it happens on a thread of its own, which is
// started when it is first needed. The server's thread never waits here.
#pragma once

#include <memory>

#include "base/fd.h"

namespace xsched::server {

class Disposer {
 public:
  void Take(UniqueFd fd) noexcept;
  // Where the thread could not be started, its work waits; call this from time to time.
  void StartIfNeeded() noexcept;

 private:
  struct Queue;
  static void Run(std::shared_ptr<Queue> queue);

  std::shared_ptr<Queue> queue_;  // shared with the thread, which may be stuck when we go
  bool start_due_ = false;        // there is work, and no thread
};

}  // namespace xsched::server
