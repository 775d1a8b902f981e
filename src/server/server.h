// The server: one loop, on one thread, in rounds. A round takes what has happened (connections, messages,
// doorbells), decides once, and sleeps.
//
// Nothing that a client does can block a round: sockets are non-blocking, doorbells are never read, and a
// client that does not read what it asked for is dropped. A round that runs out of memory or descriptors ends
// the connection that it was about. The server ends with all gates open, whatever ends it.
//
//   EventLoop                      what the thread sleeps on
//   Acceptor -> Connections        who is connected; closing
//   Handshake -> Agents | Tools    what clients say, and what they are sent
//   Queues                         control blocks: progress to the scheduler, its decisions back
//   ProcessWatch                   processes that are stopped, frozen, or hang
#pragma once

#include <optional>

#include "base/clock.h"
#include "sched/core/scheduler.h"
#include "server/acceptor.h"
#include "server/access.h"
#include "server/agents.h"
#include "server/connections.h"
#include "server/disposer.h"
#include "server/event_loop.h"
#include "server/handshake.h"
#include "server/listener.h"
#include "server/options.h"
#include "server/process_watch.h"
#include "server/queues.h"
#include "server/quotas.h"
#include "server/service_manager.h"
#include "server/tools.h"
#include "server/wakes.h"

namespace xsched::server {

class Server {
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
  void HandleEventOrClose(uint64_t tag, TimePoint now);
  void HandleEvent(uint64_t tag, TimePoint now);
  void ReadMessages(Connection& connection, TimePoint now);
  bool HandleMessage(Connection& connection, ipc::Packet& packet, TimePoint now);
  TimePoint Housekeeping(TimePoint now);
  void RemoveClosed(TimePoint now);
  void CloseAllAgents(TimePoint now);

  std::optional<Duration> idle_exit_;
  bool idle_for_long_ = false;
  ServiceManager service_manager_;
  AccessRules access_;
  sched::Scheduler scheduler_;
  Disposer disposer_;
  EventLoop loop_;
  Quotas quotas_;
  Connections connections_;
  Wakes wakes_;
  Queues queues_;
  Agents agents_;
  Handshake handshake_;
  ProcessWatch process_watch_;
  Tools tools_;
  Acceptor acceptor_;
};

}  // namespace xsched::server
