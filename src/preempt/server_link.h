// The connection to xserver: hello, queues, hints; and connecting anew after it was lost. Not thread-safe:
// the agent locks.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/fd.h"
#include "ipc/client.h"
#include "ipc/segment.h"
#include "xsched/types.h"

namespace xsched::preempt {

class XQueue;

class ServerLink {
 public:
  // Connects and introduces this process. False: no server, or it refused; the first time one warning says
  // why.
  bool Connect(const ipc::OwnedSegment& segment, int scheduler_bell);
  bool connected() const { return static_cast<bool>(socket_); }
  int fd() const { return socket_.get(); }
  void Disconnect();

  // Takes what the server has sent. False: the server is gone (and now disconnected).
  bool Receive();

  // Each: false when the server does not take it any more (and is now disconnected).
  bool QueueCreated(const XQueue& queue);
  bool QueueDestroyed(uint32_t index);
  bool Hints(const XQueue& queue);
  bool Config(const XQueue& queue);
  bool Absent(const XQueue& queue);
  bool Timeslice(int64_t timeslice_us);

  // When to try to connect again.
  TimePoint retry_at() const { return retry_at_; }
  void ForgetAfterFork() { socket_.Reset(); }

 private:
  template <typename T>
  bool SendOrDrop(const T& message);
  bool AwaitWelcome();
  void Handle(const ipc::Packet& packet);
  static void KeepHints(const ipc::QueueHints& message);

  UniqueFd socket_;
  TimePoint retry_at_{};
  bool warned_ = false;             // that there is no server, since the last one
  bool warned_of_refusal_ = false;  // that the server does not schedule some queue
};

}  // namespace xsched::preempt
