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
#include "sched/core/types.h"
#include "xsched/types.h"

namespace xsched::preempt {

class XQueue;

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

class ServerLink {
 public:
  enum class State : uint8_t { kApart, kGreeting, kConnected };

  explicit constexpr ServerLink(ServerListener& listener) : listener_(listener) {}

  // Reads where the server is, and this process's job, from the environment. To be called in a thread of the
  // program's, before Connect is called in whichever.
  void ReadEnvironment();
  // Introduces this process to the server, if there is one; whether it takes us, Serve will say. The first
  // time that there is none, one warning says why.
  void Connect(int memfd, int scheduler_bell, TimePoint now);
  State state() const { return state_; }
  bool connected() const { return state_ == State::kConnected; }
  void Disconnect(TimePoint retry_at);

  // What to poll; -1: nothing.
  int fd() const { return socket_.get(); }
  short events() const;
  // Has the program left the socket in its place? REQUIRES: there is one.
  bool socket_is_ours() const { return socket_.Intact(); }

  enum class News { kNone, kWelcomed, kLost };
  // Takes what the server has sent, and sends what it has not taken yet.
  News Serve(TimePoint now);
  // To be called after Serve. Something of this process is taken, or nothing: asks whether the server lives.
  // False: it hangs, and this is now apart.
  bool Beat(bool taken, TimePoint now);
  // When to be called again, at the latest: Connect where this is apart, else Serve and Beat.
  TimePoint wake_at() const;

  // Each: false when nothing more can be said to the server (and this is now apart). A queue that it does not
  // know is not spoken of, and none is introduced twice.
  bool QueueCreated(const XQueue& queue);
  bool QueueDestroyed(uint32_t index);
  bool Hints(const XQueue& queue);
  bool Config(const XQueue& queue);
  bool Absent(const XQueue& queue);
  bool Timeslice(int64_t timeslice_us);

  void ForgetAfterFork();

 private:
  template <typename T>
  bool SendOrDrop(const T& message);
  bool SendHello(int memfd, int scheduler_bell);
  News Handle(const ipc::Packet& packet, TimePoint now);
  News Refused(const ipc::Packet& packet, TimePoint now);

  ServerListener& listener_;
  State state_ = State::kApart;
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
