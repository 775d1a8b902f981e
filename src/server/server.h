// The server's one loop. Everything happens on one thread, in rounds: take what has happened (connections,
// messages, doorbells), decide once, sleep.
//
//   doorbell (eventfd, edge-triggered) -> counters from the client's segment -> sched::Scheduler
//   sched::Scheduler -> gate and flags in the client's segment, kWake over its socket where its agent must
//   act
//
// Nothing that a client does can block a round: sockets are non-blocking, doorbells are never read, and a
// client that does not read what it asked for is dropped.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "sched/core/scheduler.h"
#include "server/access.h"
#include "server/connection.h"
#include "server/disposer.h"
#include "server/listener.h"
#include "server/options.h"

namespace xsched::server {

class Server final : sched::ControlSink {
 public:
  // Throws std::runtime_error with a message for users.
  Server(const Options& options, Listener& listener);

  // Returns when a signal (SIGTERM, SIGINT) or idleness ends it.
  void Run();
  // One round: waits for something to happen, for so long at most (-1: for ever), and attends to it.
  void Round(int timeout_ms);

 private:
  // What one user holds.
  struct Usage {
    size_t connections = 0;
    size_t strangers = 0;  // of these, without hello
    size_t queues = 0;
    bool refusal_logged = false;  // that they have too many
  };

  // ---- rounds (server.cc) ----
  [[nodiscard]] bool Watch(int fd, uint32_t events, uint64_t tag);
  [[nodiscard]] bool WatchSocket(const Connection& connection, uint32_t events);
  void HandleEvent(uint64_t tag, TimePoint now);
  void AcceptConnections(TimePoint now);
  bool MayConnect(const Peer& peer);
  void ReadMessages(Connection& connection, TimePoint now);
  bool HandleMessage(Connection& connection, ipc::Packet& packet, TimePoint now);
  void Close(Connection& connection, const char* why);
  void RemoveClosed(TimePoint now);
  void Decide(TimePoint now);
  void SleepUntil(TimePoint wake_at);
  TimePoint Housekeeping(TimePoint now);
  TimePoint DropSilentStrangers(TimePoint now);
  TimePoint DropUnreadingTools(TimePoint now);
  TimePoint WhenToCheckStopped(TimePoint now);
  void CheckStopped(TimePoint now);
  bool MakesOthersWait(const Connection& connection, TimePoint now) const;
  void LogRejection(const Peer& peer, const char* why);

  // ---- agents (agents.cc) ----
  bool HandleAgentMessage(Connection& connection, const ipc::Packet& packet, TimePoint now);
  bool HandleHello(Connection& connection, ipc::Packet& packet);
  bool CreateQueue(Connection& connection, const ipc::QueueCreated& message, TimePoint now);
  static bool RefuseQueue(Connection& connection, uint32_t index, Usage& usage);
  bool DestroyQueue(Connection& connection, uint32_t index, TimePoint now);
  void ForgetQueue(const Queue& queue, TimePoint now);
  void ReadDoorbell(Connection& connection, TimePoint now);
  void Observe(Connection& connection, Queue& queue, TimePoint now);
  void RefreshAbsent(const Queue& queue, TimePoint now);
  void SetControl(sched::QueueId id, const sched::Control& control) override;
  void Query(sched::QueueId id) override;
  void SetSlice(sched::ProcessId process, sched::DeviceId device, Duration slice) override;
  void WakeLater(Connection& connection);
  void SendWakes();
  void ObserveNewlyTracked(TimePoint now);
  void OpenAllGates();

  // ---- tools (tools.cc) ----
  bool HandleToolMessage(Connection& connection, const ipc::Packet& packet, TimePoint now);
  bool List(Connection& connection, TimePoint now);
  bool ContinueListing(Connection& connection, TimePoint now);
  bool WaitForReader(Connection& connection, TimePoint now);
  ipc::QueueInfo Describe(Queue& queue, TimePoint now);
  bool SetHints(Connection& connection, const ipc::SetHints& request);
  [[nodiscard]] bool TellHints(Connection& agent);
  bool SetPolicy(Connection& connection, const ipc::SetPolicy& request);
  bool SendStatus(Connection& connection, TimePoint now);
  static bool SendReply(Connection& connection, XResult result, uint32_t count, const std::string& text);

  Listener& listener_;
  AccessRules access_;
  std::optional<Duration> idle_exit_;
  sched::Scheduler scheduler_;

  UniqueFd epoll_;
  UniqueFd timer_;
  UniqueFd signals_;
  TimePoint timer_at_ = kNever;
  bool stopping_ = false;

  std::unordered_map<uint64_t, std::unique_ptr<Connection>> connections_;
  std::unordered_map<uint64_t, Queue*> queues_;  // by QueueId
  std::unordered_map<uid_t, Usage> usage_;
  Disposer disposer_;
  uint64_t next_connection_ = 1;
  uint64_t next_queue_ = 1;
  std::deque<uint64_t> strangers_;  // connections in order of their coming; who has said hello is skipped
  size_t stranger_count_ = 0;       // those that have not
  std::set<uint64_t> unreading_;    // tools whose answer waits for them to read
  size_t held_ = 0;                 // queues whose gate is closed
  size_t stopped_ = 0;              // connections of stopped processes
  std::vector<uint64_t> wakes_;     // connections with wake_due
  std::vector<sched::QueueId> newly_tracked_;
  bool removal_due_ = false;
  TimePoint decide_at_ = kNever;
  TimePoint check_stopped_at_ = kNever;
  TimePoint started_;
  TimePoint idle_since_;

  uint64_t decisions_ = 0;
  uint64_t state_changes_ = 0;
  uint64_t rejected_ = 0;
  uint64_t unlogged_rejections_ = 0;
  TimePoint log_rejections_at_{};
};

}  // namespace xsched::server
