// The server: one loop, on one thread, in rounds. A round takes what has happened (connections, messages,
// doorbells), decides once, and sleeps.
//
// No client can block a round: sockets are non-blocking, doorbells are never read, and a client that does not
// read its answers loses its connection. No user can make a round long: each has a share of it
// (work_budget.h). If memory or descriptors run out, the connection that this was about is closed. However
// the server ends, all gates are open then.
//
//   EventLoop                      waits for events
//   Acceptor -> Connections        opens and closes connections
//   Handshake -> Agents | Tools    handle messages of clients, and answer them
//   Queues                         control blocks: progress to the scheduler, its decisions back
//   ProcessWatch                   finds processes that are stopped, frozen, or hang
//   Recordings                     tell tools what queues do
//   UsageMeter                     counts what users and processes have had of the devices
//   TenantTable                    says whose processes they are, and what they may do
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "sched/core/scheduler.h"
#include "server/acceptor.h"
#include "server/access.h"
#include "server/agents.h"
#include "server/bells.h"
#include "server/connections.h"
#include "server/device_access.h"
#include "server/disposer.h"
#include "server/event_loop.h"
#include "server/handshake.h"
#include "server/http/start.h"
#include "server/listener.h"
#include "server/options.h"
#include "server/process_watch.h"
#include "server/queues.h"
#include "server/quotas.h"
#include "server/recording/recordings.h"
#include "server/segment_guard.h"
#include "server/service_manager.h"
#include "server/subordinate_users.h"
#include "server/tenants/audit_log.h"
#include "server/tenants/tenant_table.h"
#include "server/tools.h"
#include "server/usage_meter.h"
#include "server/wakes.h"
#include "server/work_budget.h"

namespace xsched::server {

// What the server asks the kernel for. Scripts of tests say it themselves.
struct Surroundings {
  Clock clock = &MonotonicClock::now;
  bool (*is_confined)(pid_t, uid_t) = IsConfined;
  bool (*is_stopped)(pid_t) = IsStopped;
};

class Server {
 public:
  // Throws std::runtime_error with a message for users.
  Server(const Options& options, Listener& listener, const Surroundings& surroundings = {});
  // Opens all gates.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Says when one of these ends.
  void Watch(std::vector<http::Program> programs) { http_programs_ = std::move(programs); }
  // Returns when a signal (SIGTERM, SIGINT) or idleness ends it. Throws std::exception if it cannot go on.
  void Run();
  // One round: waits for events, at most for this time (-1: no limit), and handles them.
  void Round(int timeout_ms);

 private:
  void HandleEventOrClose(uint64_t tag, TimePoint now);
  void HandleEvent(uint64_t tag, TimePoint now);
  void HandleDoorbell(Agent& agent, TimePoint now);
  void ReadMessages(Connection& connection, TimePoint now);
  bool HandleMessage(Connection& connection, ipc::Packet& packet, TimePoint now);
  TimePoint Housekeeping(TimePoint now);
  void CloseTorn();
  void RemoveClosed(TimePoint now);
  void CloseAllAgents(TimePoint now);
  void HandleHangup(const SignalSender& sender, TimePoint now);

  const Clock clock_;
  std::optional<Duration> idle_exit_;
  bool idle_for_long_ = false;
  bool hung_up_ = false;  // and there is nothing to read again: it ends
  const std::string tenants_path_;
  const bool tenants_must_exist_;
  ServiceManager service_manager_;
  const SubordinateUsers subordinates_;  // none on a server for one user
  AccessRules access_;
  DeviceAccess device_access_;
  sched::Scheduler scheduler_;
  Disposer disposer_;
  EventLoop loop_;
  SegmentGuard segment_guard_;
  WorkBudget work_;
  Bells bells_;
  Quotas quotas_;
  Connections connections_;
  Wakes wakes_;
  Queues queues_;
  Agents agents_;
  ProcessFactsTable process_facts_;
  TenantTable tenants_;
  AuditLog audit_;
  Handshake handshake_;
  ProcessWatch process_watch_;
  UsageMeter usage_;
  Recordings recordings_;
  Tools tools_;
  Acceptor acceptor_;
  std::vector<http::Program> http_programs_;
};

}  // namespace xsched::server
