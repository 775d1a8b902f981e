// The connection to xserver: hello, queues, hints, heartbeat, and connecting anew after it was lost. Nothing
// here ever waits: messages that the server does not take at once are kept in order, and the caller polls for
// its welcome. Not thread-safe: the agent locks. Time is passed in.
//
//              Connect                 welcome
//   apart ---------------> greeting ---------------> connected
//     ^                       |                          |
//     |  no server, refused,  |      closed, too slow,   |
//     +--- no answer for long +------- or it hangs ------+
#pragma once

#include <array>
#include <bitset>
#include <cstdint>

#include "base/clock.h"
#include "base/guarded_fd.h"
#include "ipc/client.h"
#include "ipc/control_block.h"
#include "ipc/messages.h"
#include "ipc/outbox.h"
#include "preempt/gates/launch_config.h"
#include "preempt/scheduling/heartbeat.h"
#include "preempt/scheduling/scheduler_client.h"
#include "sched/core/types.h"
#include "xsched/types.h"

namespace xsched::preempt {

// Receives what a server sends, except for the words in control blocks. Called from Serve.
class ServerListener {
 public:
  // How long this process may keep the device at a stretch; 0: the driver's own slice.
  virtual void OnSlice(XDevice device, uint64_t slice_us) = 0;
  // The server already uses these hints for the queue. We send them to the next server.
  virtual void OnHints(const ipc::QueueHints& message) = 0;
  // A tool asks for another level or launch config; 0 leaves a value as it is. Not checked.
  virtual void OnConfig(XQueueHandle queue, uint32_t level, const LaunchConfig& config) = 0;
  // The account of the tenant's memory, of which this process has a slot from now on. Before the welcome if
  // the server limits memory.
  virtual void OnTenantMemory(int memfd, uint32_t slot) = 0;

 protected:
  ~ServerListener() = default;
};

class ServerClient final : public SchedulerClient {
 public:
  enum class State : uint8_t { kApart, kGreeting, kConnected };

  explicit constexpr ServerClient(ServerListener& listener) : listener_(listener) {}

  // Reads the server's socket and this process's job from the environment. Then connects, with the segment
  // and the doorbell. Call it on a thread of the program.
  void Start(int memfd, int scheduler_bell, TimePoint now);
  void Stop() override { Disconnect(TimePoint{}); }
  State state() const { return state_; }
  bool connected() const override { return state_ == State::kConnected; }

  int fd() const override { return socket_.get(); }
  short events() const override;
  // True if the program has not closed or replaced the socket. REQUIRES: there is one.
  bool socket_is_ours() const { return socket_.Intact(); }

  // Receives what the server has sent, and sends what it has not taken yet.
  News Serve(TimePoint now) override;
  bool Beat(bool taken, TimePoint now) override;
  void ConnectIfDue(TimePoint now) override;
  TimePoint wake_at() const override;

  // Sends nothing about a queue that the server does not know, and introduces no queue twice.
  bool QueueCreated(const XQueue& queue) override;
  bool QueueDestroyed(const XQueue& queue) override;
  bool Hints(const XQueue& queue) override;
  bool Config(const XQueue& queue) override;
  bool Absent(const XQueue& queue) override;
  bool Timeslice(int64_t timeslice_us) override;
  bool AtATime(size_t queues) override;
  bool JoinJob(uint64_t number) override;
  // The thread may poll only for input now.
  bool Commit(TimePoint) override;

  void ForgetAfterFork();

 private:
  template <typename T>
  bool SendOrDrop(const T& message);
  // Sends a hello to the server, if there is one. Serve receives the answer. The first time that there is
  // none, one warning says why.
  void Connect(TimePoint now);
  void Disconnect(TimePoint retry_at);
  bool SendHello();
  News Handle(const ipc::Packet& packet, TimePoint now);
  // Shows the server that this process can use the device, once for each.
  void ShowAccessTo(XDevice device);
  void ShowDeviceFiles();
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
  uint16_t server_minor_ = 0;
  std::array<XDevice, 16> shown_{};  // devices for which the files were sent; the oldest is replaced
  size_t shown_count_ = 0;
  bool shows_device_files_ = false;  // to be sent when there is room
  TimePoint retry_at_{};
  TimePoint welcome_until_{};
  std::bitset<ipc::kMaxQueues> introduced_;  // by the indices of their control blocks
  bool warned_ = false;                      // that there is no server, since there was one
  bool warned_of_refusal_ = false;           // that the server does not schedule some queue
};

}  // namespace xsched::preempt
