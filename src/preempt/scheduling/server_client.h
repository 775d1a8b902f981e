// The connection to xserver: hello, queues, hints, heartbeat; and connecting anew after it was lost. Nothing
// here ever waits: what the server does not take at once is kept in order, and its welcome is awaited by
// whoever polls. Not thread-safe: the agent locks. Time comes in from outside.
//
//              Connect                 welcome
//   apart ---------------> greeting ---------------> connected
//     ^                       |                          |
//     |  no server, refused,  |      closed, too slow,   |
//     +--- no answer for long +------- or it hangs ------+
#pragma once

#include <bitset>
#include <cstdint>

#include "base/clock.h"
#include "base/guarded_fd.h"
#include "ipc/client.h"
#include "ipc/control_block.h"
#include "ipc/outbox.h"
#include "preempt/scheduling/heartbeat.h"
#include "preempt/scheduling/scheduler_client.h"
#include "sched/core/types.h"
#include "xsched/types.h"

namespace xsched::preempt {

// What a server says, but for the words in control blocks. Called from Serve.
class ServerListener {
 public:
  // How long this process may keep the device at a stretch; 0: as its driver has it.
  virtual void OnSlice(XDevice device, uint64_t slice_us) = 0;
  // The server schedules the queue by these hints already; the next server will learn them from us.
  virtual void OnHints(XQueueHandle queue, const sched::Hints& hints) = 0;

 protected:
  ~ServerListener() = default;
};

class ServerClient final : public SchedulerClient {
 public:
  enum class State : uint8_t { kApart, kGreeting, kConnected };

  explicit constexpr ServerClient(ServerListener& listener) : listener_(listener) {}

  // Reads where the server is, and this process's job, from the environment; then connects, with the segment
  // and the doorbell. To be called in a thread of the program's.
  void Start(int memfd, int scheduler_bell, TimePoint now);
  void Stop() override { Disconnect(TimePoint{}); }
  State state() const { return state_; }
  bool connected() const override { return state_ == State::kConnected; }

  int fd() const override { return socket_.get(); }
  short events() const override;
  // Has the program left the socket in its place? REQUIRES: there is one.
  bool socket_is_ours() const { return socket_.Intact(); }

  // Takes what the server has sent, and sends what it has not taken yet.
  News Serve(TimePoint now) override;
  bool Beat(bool taken, TimePoint now) override;
  void ConnectIfDue(TimePoint now) override;
  TimePoint wake_at() const override;

  // A queue that the server does not know is not spoken of, and none is introduced twice.
  bool QueueCreated(const XQueue& queue) override;
  bool QueueDestroyed(const XQueue& queue) override;
  bool Hints(const XQueue& queue) override;
  bool Config(const XQueue& queue) override;
  bool Absent(const XQueue& queue) override;
  bool Timeslice(int64_t timeslice_us) override;
  // The thread may be polling for what comes only.
  bool Commit(TimePoint) override;

  void ForgetAfterFork();

 private:
  template <typename T>
  bool SendOrDrop(const T& message);
  // Introduces this process to the server, if there is one; whether it takes us, Serve will say. The first
  // time that there is none, one warning says why.
  void Connect(TimePoint now);
  void Disconnect(TimePoint retry_at);
  bool SendHello();
  News Handle(const ipc::Packet& packet, TimePoint now);
  News Refused(const ipc::Packet& packet, TimePoint now);

  ServerListener& listener_;
  State state_ = State::kApart;
  int memfd_ = -1;
  int scheduler_bell_ = -1;
  ipc::SocketChoice place_{};
  uint64_t job_ = 0;
  GuardedFd socket_;
  ipc::Outbox outbox_;
  Heartbeat heartbeat_;
  uint64_t pings_ = 0;
  TimePoint retry_at_{};
  TimePoint welcome_until_{};
  std::bitset<ipc::kMaxQueues> introduced_;  // by the indices of their control blocks
  bool warned_ = false;                      // that nobody schedules, since somebody did
  bool warned_of_refusal_ = false;           // that the server does not schedule some queue
};

}  // namespace xsched::preempt
