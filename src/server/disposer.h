// Closes invalid descriptors that came from a client. A client can make closing take arbitrarily long (for a
// FUSE file, its daemon is notified first). So it happens on a separate thread, which is started when it is
// first needed. The server's thread never waits here.
#pragma once

#include <memory>

#include "base/fd.h"

namespace xsched::server {

class Disposer {
 public:
  void Take(UniqueFd fd) noexcept;
  // If the thread could not be started, its work waits. Call this from time to time.
  void StartIfNeeded() noexcept;

 private:
  struct Queue;
  static void Run(const std::shared_ptr<Queue>& queue);

  std::shared_ptr<Queue> queue_;  // shared with the thread, which may be blocked when this is destroyed
  bool start_due_ = false;        // there is work, and no thread
};

}  // namespace xsched::server
