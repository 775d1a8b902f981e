// The server's one loop. Everything happens on one thread, in rounds: take what has happened (connections,
// messages, doorbells), decide once, sleep.
//
//   doorbell (eventfd, edge-triggered) -> counters from the client's segment -> sched::Scheduler
//   sched::Scheduler -> gate and flags in the client's segment, kWake over its socket where its agent must
//   act
//
// Nothing that a client does can block a round: sockets are non-blocking, doorbells are never read, and a
// client that does not read what it asked for is dropped. A round that runs out of memory or descriptors ends
// the connection that it was about. The server ends with all gates open, whatever ends it.
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
#include "server/jobs.h"
#include "server/listener.h"
#include "server/options.h"
#include "server/service_manager.h"

namespace xsched::server {

class Server final : sched::ControlSink {
 public:
  // Throws std::runtime_error with a message for users.
  Server(const Options& options, Listener& listener);
  // Opens all gates.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Returns when a signal (SIGTERM, SIGINT) or idleness ends it. Throws std::exception if it cannot go on.
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
  void HandleEventOrClose(uint64_t tag, TimePoint now);
  void HandleEvent(uint64_t tag, TimePoint now);
  Connection* Find(uint64_t tag);
  void AcceptConnections(TimePoint now);
  bool MayConnect(const Peer& peer);
  void Introduce(UniqueFd socket, Peer peer, TimePoint now);
  void ReadMessages(Connection& connection, TimePoint now);
  bool HandleMessage(Connection& connection, ipc::Packet& packet, TimePoint now);
  void Close(Connection& connection, const char* why);
  void RemoveClosed(TimePoint now);
  void Remove(Connection& connection, TimePoint now);
  void CloseAllAgents(TimePoint now);
  void Decide(TimePoint now);
  void SleepUntil(TimePoint wake_at);
  TimePoint Housekeeping(TimePoint now);
  TimePoint DropSilentStrangers(TimePoint now);
  TimePoint DropUnreadingTools(TimePoint now);
  TimePoint WhenToCheckProcesses(TimePoint now);
  void CheckProcesses(TimePoint now);
  bool IsSilent(Connection& connection, TimePoint now);
  void HeardOf(Connection& connection, TimePoint now);
  void RefreshAbsent(const Connection& connection, TimePoint now);
  bool MakesOthersWait(const Connection& connection, TimePoint now) const;
  void LogRejection(const Peer& peer, const char* why) noexcept;

  // ---- agents (agents.cc) ----
  bool HandleAgentMessage(Connection& connection, const ipc::Packet& packet, TimePoint now);
  bool HandleHello(Connection& connection, ipc::Packet& packet, TimePoint now);
  bool TakeSegment(Connection& connection, ipc::Packet& packet, TimePoint now);
  bool CreateQueue(Connection& connection, const ipc::QueueCreated& message, TimePoint now);
  static bool RefuseQueue(Connection& connection, uint32_t index, Usage& usage);
  bool DestroyQueue(Connection& connection, uint32_t index, TimePoint now);
  void ForgetQueue(const Queue& queue, TimePoint now);
  void ReadDoorbell(Connection& connection, TimePoint now);
  void Observe(Connection& connection, Queue& queue, TimePoint now);
  void RestoreControl(Queue& queue);
  void RefreshAbsent(const Queue& queue, TimePoint now);
  void SetControl(sched::QueueId id, const sched::Control& control) override;
  void Query(sched::QueueId id) override;
  void SetSlice(sched::ProcessId process, sched::DeviceId device, Duration slice) override;
  void RememberSlice(Connection& connection, const ipc::ProcessSlice& slice) noexcept;
  bool Answer(Connection& connection, const ipc::Ping& ping);
  [[nodiscard]] bool SendUnsent(Connection& agent);
  static bool SendUnsentSlices(Connection& agent);
  static bool SendUnsentPong(Connection& agent);
  void WakeLater(Connection& connection) noexcept;
  void SendWakes(TimePoint now);
  void ObserveNewlyTracked(TimePoint now);
  void OpenAllGates();

  // ---- tools (tools.cc) ----
  bool HandleToolMessage(Connection& connection, const ipc::Packet& packet, TimePoint now);
  bool List(Connection& connection, TimePoint now);
  bool ContinueListing(Connection& connection, TimePoint now);
  bool WaitForReader(Connection& connection, TimePoint now);
  // As `reader` may see it.
  ipc::QueueInfo Describe(Queue& queue, const Peer& reader, TimePoint now);
  void DescribeWait(ipc::QueueInfo& info, const Queue& queue, const sched::QueueStats& stats,
                    const Peer& reader, TimePoint now) const;
  bool SetHints(Connection& connection, const ipc::SetHints& request);
  bool SendUnsentHints(Connection& agent);
  bool SetPolicy(Connection& connection, const ipc::SetPolicy& request);
  bool SendStatus(Connection& connection, TimePoint now);
  static bool SendReply(Connection& connection, XResult result, uint32_t count, const std::string& text);

  Listener& listener_;
  AccessRules access_;
  ServiceManager service_;
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
  std::map<SegmentIdentity, uint64_t> segments_;  // the connection that each belongs to
  Jobs jobs_;
  Disposer disposer_;
  uint64_t next_connection_ = 1;
  uint64_t next_queue_ = 1;
  std::deque<uint64_t> strangers_;  // connections in order of their coming; who has said hello is skipped
  size_t stranger_count_ = 0;       // those that have not
  std::set<uint64_t> unreading_;    // tools whose answer waits for them to read
  size_t held_ = 0;                 // queues whose gate is closed
  size_t not_running_ = 0;          // connections whose process is stopped or silent
  std::vector<uint64_t> wakes_;     // connections with wake_due
  std::vector<sched::QueueId> newly_tracked_;
  bool removal_due_ = false;
  TimePoint decide_at_ = kNever;
  TimePoint turns_until_{};       // processes take turns on a device, as far as is known, until then
  TimePoint accept_at_ = kNever;  // when to accept again after descriptors ran out
  TimePoint check_processes_at_ = kNever;
  TimePoint started_;
  TimePoint idle_since_;

  uint64_t decisions_ = 0;
  uint64_t state_changes_ = 0;
  uint64_t rejected_ = 0;
  uint64_t unlogged_rejections_ = 0;
  TimePoint log_rejections_at_{};
};

}  // namespace xsched::server
