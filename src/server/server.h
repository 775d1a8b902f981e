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

#include <map>
#include <memory>
#include <unordered_map>

#include "base/clock.h"
#include "base/fd.h"
#include "sched/core/scheduler.h"
#include "server/access.h"
#include "server/connection.h"
#include "server/listener.h"
#include "server/options.h"

namespace xsched::server {

class Server final : sched::ControlSink {
 public:
  // Throws std::runtime_error with a message for users.
  Server(const Options& options, Listener& listener);

  // Returns when a signal (SIGTERM, SIGINT) or idleness ends it.
  void Run();

 private:
  struct Limits;

  // ---- rounds (server.cc) ----
  void Watch(int fd, uint32_t events, uint64_t tag);
  void HandleEvent(uint64_t tag, TimePoint now);
  void AcceptConnections(TimePoint now);
  void ReadMessages(Connection& connection, TimePoint now);
  void Close(Connection& connection, const char* why);
  void RemoveClosed(TimePoint now);
  void SleepUntil(TimePoint wake_at);
  TimePoint Housekeeping(TimePoint now);
  void CheckStopped(TimePoint now);

  // ---- agents (agents.cc) ----
  bool HandleAgentMessage(Connection& connection, const ipc::Packet& packet, TimePoint now);
  bool HandleHello(Connection& connection, ipc::Packet& packet);
  bool CreateQueue(Connection& connection, const ipc::QueueCreated& message, TimePoint now);
  bool DestroyQueue(Connection& connection, uint32_t index, TimePoint now);
  void ForgetQueue(const Queue& queue, TimePoint now);
  void ReadDoorbell(Connection& connection, TimePoint now);
  void Observe(Connection& connection, Queue& queue, TimePoint now);
  void RefreshAbsent(const Queue& queue, TimePoint now);
  void SetControl(sched::QueueId id, const sched::Control& control) override;
  void Query(sched::QueueId id) override;

  // ---- tools (tools.cc) ----
  bool HandleToolMessage(Connection& connection, const ipc::Packet& packet, TimePoint now);
  bool List(Connection& connection, TimePoint now);
  bool SetHints(Connection& connection, const ipc::SetHints& request);
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
  std::unordered_map<uid_t, size_t> connections_of_;
  uint64_t next_connection_ = 1;
  uint64_t next_queue_ = 1;
  size_t held_ = 0;  // queues whose gate is closed
  bool removal_due_ = false;
  TimePoint check_stopped_at_ = kNever;
  TimePoint started_;
  TimePoint idle_since_;

  uint64_t decisions_ = 0;
  uint64_t state_changes_ = 0;
  uint64_t rejected_ = 0;
};

}  // namespace xsched::server
