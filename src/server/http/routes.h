// The HTTP interface of XSched 1.2: its paths, its parameters and its JSON. And the metrics.
//
//   GET  /metrics                                            what the caller may see (snapshot.h)
//   GET  /xqueues, /xqueue/HEX, /policy                      everybody on this machine
//   POST /policy?policy=N, or =NAME as `xsched policy set`, &k=N     administrators
//   POST /config/HEX?level=N&threshold=N&batch_size=N        whoever may change the queue
//   POST /hint   {"hint_type": 1, "handle": N, "priority": N}        likewise
//                {"hint_type": 2, "handle" or "pid": N, "utilization": N}
//                {"hint_type": 3, "timeslice": N}                    administrators
//                {"hint_type": 8, "handle" or "pid": N, "weight": N}    not in XSched 1.2
//                {"hint_type": 9, "handle" or "pid": N, "guarantee_us": N, "period_us": N,
//                 "limit_us": N, "burst_us": N}                      likewise
//                {"hint_type": 10, "handle" or "pid": N, "latency_target_us": N}    likewise
//                {"hint_type": 11, "handle" or "pid": N, "floor": N}        likewise
//                {"hint_type": 7, "pid": N, "display": N}            of a display of the caller's
//
// A queue's "handle" is its number at the server (as in `xsched list`). The handle that its program has
// (XQueueHandle) names it as well, if no other program has the same.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "server/access.h"
#include "server/http/scheduler_client.h"

namespace xsched::server::http {

struct Request {
  std::string method;
  std::string path;
  std::map<std::string, std::string> parameters;
  std::string body;
  // What the request was addressed to, and the page of a browser that sent it; "": not given.
  std::string host;
  std::string origin;
  std::string accept;
};

struct Answer {
  unsigned status = 200;
  nlohmann::json body;
  std::string text;  // in place of `body`, of this type
  const char* text_type = nullptr;
};

inline constexpr const char* kMetricsPath = "/metrics";

class Routes {
 public:
  struct Metrics {
    bool only = false;           // nothing else is answered
    std::optional<gid_t> group;  // its members see all users
    bool per_queue = false;      // there are series of single queues
  };
  Routes(SchedulerClient& scheduler, const AccessRules& access, const Metrics& metrics)
      : scheduler_(scheduler), access_(access), metrics_(metrics) {}

  // `caller` is the user who sent the request. If it is nullopt, nothing is changed, and no metrics are
  // shown: the user is not known, or may not use the server's socket. Throws only std::bad_alloc.
  Answer Handle(const Request& request, const std::optional<Peer>& caller);

 private:
  Answer Get(const Request& request, const std::optional<Peer>& caller);
  Answer ShowMetrics(const Request& request, const Peer& caller);
  Answer Post(const Request& request, const Peer& caller);
  Answer SetPolicy(const Request& request, const Peer& caller);
  Answer SetConfig(const Request& request, const Peer& caller);
  Answer SetHint(const Request& request, const Peer& caller);
  Answer SetHintOfQueues(const nlohmann::json& hint, int64_t type, const Peer& caller);
  Answer SetActiveWindow(const nlohmann::json& hint, const Peer& caller);
  Answer SetTimeslice(const nlohmann::json& hint, const Peer& caller);

  ipc::QueueInfo Find(uint64_t handle);
  ipc::QueueInfo FindToChange(uint64_t handle, const Peer& caller);

  SchedulerClient& scheduler_;
  const AccessRules& access_;
  Metrics metrics_;
};

}  // namespace xsched::server::http
