#include "server/http/routes.h"

#include <fmt/format.h>
#include <limits.h>
#include <unistd.h>

#include <cctype>
#include <charconv>
#include <limits>
#include <set>
#include <stdexcept>
#include <string_view>

#include "sched/core/policy_setting.h"
#include "sched/core/scheduler.h"
#include "server/http/metrics.h"
#include "server/http/snapshot.h"

namespace xsched::server::http {
namespace {

using nlohmann::json;

// 1 to 7 are those of XSched 1.2.
enum HintType : int64_t {
  kPriority = 1,
  kUtilization = 2,
  kTimeslice = 3,
  kWindowActive = 7,
  kWeight = 8,
  kReservation = 9,
  kLatencyTarget = 10,
  kFloor = 11,
};

// Ends a request with an error.
struct Refusal {
  unsigned status;
  std::string reason;
};

[[noreturn]] void Refuse(unsigned status, std::string reason) { throw Refusal{status, std::move(reason)}; }

Answer Done() { return {200, {{"info", "success"}}}; }

Answer AnswerTo(const ipc::Reply& reply) {
  switch (reply.result) {
    case kXSchedSuccess:
      return Done();
    case kXSchedErrorNotFound:
      Refuse(404, reply.text);
    case kXSchedErrorNotAllowed:
      Refuse(403, reply.text);
    default:
      Refuse(400, reply.text);
  }
}

template <typename Integer>
Integer NumberOr400(std::string_view text, const char* what, int base = 10) {
  if (base == 16 && (text.starts_with("0x") || text.starts_with("0X"))) text.remove_prefix(2);
  Integer number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    Refuse(400, fmt::format("invalid {}", what));
  return number;
}

// A parameter of /config. 1.2's xcli sends 0 and -1 for what should stay as it is.
int64_t Wanted(const Request& request, const char* name) {
  auto found = request.parameters.find(name);
  if (found == request.parameters.end()) return 0;
  const auto number = NumberOr400<int64_t>(found->second, name);
  return number < 0 ? 0 : number;
}

int64_t IntegerOr400(const json& object, const char* name) {
  auto found = object.find(name);
  if (found == object.end()) Refuse(400, fmt::format("missing {}", name));
  const bool is_too_large = found->is_number_unsigned() && found->get<uint64_t>() > INT64_MAX;
  if (!found->is_number_integer() || is_too_large) Refuse(400, fmt::format("invalid {}", name));
  return found->get<int64_t>();
}

// 0: it is not there.
uint64_t HandleOr400(const json& object) {
  auto found = object.find("handle");
  if (found == object.end()) return 0;
  if (!found->is_number_unsigned()) Refuse(400, "invalid handle");
  return found->get<uint64_t>();
}

int32_t InRangeOr400(const json& object, const char* name, int32_t min, int32_t max) {
  const int64_t value = IntegerOr400(object, name);
  if (value < min || value > max) Refuse(400, fmt::format("invalid {}", name));
  return static_cast<int32_t>(value);
}

json ToJson(const ipc::QueueInfo& queue) {
  return {{"handle", queue.queue_id},
          {"device", queue.device},
          {"level", queue.level},
          {"pid", queue.pid},
          {"threshold", queue.threshold},
          {"batch_size", queue.batch_size},
          {"ready", queue.state != static_cast<uint32_t>(sched::QueueState::kIdle)},
          {"suspended", queue.run == 0 || queue.absent != 0}};
}

json ProcessOf(const ipc::QueueInfo& queue) { return {{"pid", queue.pid}, {"cmdline", queue.name}}; }

// A page that a browser has loaded from elsewhere must not use this interface: not by its own address, and
// not by a name that it has made point here.
bool IsFromABrowsersPage(const Request& request) { return !request.origin.empty(); }
bool IsForThisMachine(const std::string& host) {
  const std::string name = host.substr(0, host.find(':'));
  return name.empty() || name == "127.0.0.1" || name == "localhost";
}

constexpr const char* kQueuePath = "/xqueue/";
constexpr const char* kConfigPath = "/config/";

uint64_t HandleIn(const Request& request, std::string_view prefix) {
  return NumberOr400<uint64_t>(std::string_view(request.path).substr(prefix.size()), "handle", 16);
}

}  // namespace

Answer Routes::Handle(const Request& request, const std::optional<Peer>& caller) {
  try {
    if (!IsForThisMachine(request.host) || IsFromABrowsersPage(request)) Refuse(403, "not for web pages");
    if (request.method == "GET") return Get(request, caller);
    if (metrics_.only) Refuse(405, "GET");
    if (request.method != "POST") Refuse(405, "GET or POST");
    if (!caller) Refuse(403, "the server's socket is not for this user");
    return Post(request, *caller);
  } catch (const Refusal& refusal) {
    return {refusal.status, {{"error", refusal.reason}}};
  } catch (const std::runtime_error& error) {
    return {503, {{"error", error.what()}}};
  }
}

// ---- reading ----

Answer Routes::Get(const Request& request, const std::optional<Peer>& caller) {
  if (request.path == kMetricsPath) {
    if (!caller) Refuse(403, "the server's socket is not for this user");
    return ShowMetrics(request, *caller);
  }
  if (metrics_.only) Refuse(404, "only /metrics is here");
  if (request.path == "/policy") {
    const ipc::Status status = scheduler_.Status();
    return {200, {{"policy", status.policy}, {"setting", status.setting}, {"k", status.at_a_time}}};
  }
  if (request.path.starts_with(kQueuePath)) {
    const ipc::QueueInfo queue = Find(HandleIn(request, kQueuePath));
    return {200, {{"xqueue", ToJson(queue)}, {"process", ProcessOf(queue)}}};
  }
  if (request.path != "/xqueues") Refuse(404, "no such path");
  json queues = json::array();
  json processes = json::array();
  std::set<int32_t> named;
  for (const ipc::QueueInfo& queue : scheduler_.List()) {
    queues.push_back(ToJson(queue));
    if (named.insert(queue.pid).second) processes.push_back(ProcessOf(queue));
  }
  return {200, {{"xqueues", queues}, {"processes", processes}}};
}

Answer Routes::ShowMetrics(const Request& request, const Peer& caller) {
  const UsageReport usage = scheduler_.Usage(metrics_.per_queue);
  Snapshot snapshot = SnapshotFor(caller, Readers(access_, metrics_.group), scheduler_.Status(), usage);
  snapshot.process = UsageOf(snapshot.status.pid);
  char host[HOST_NAME_MAX + 1] = "";
  if (gethostname(host, sizeof host - 1) == 0) snapshot.host = host;
  const Format format = FormatFor(request.accept);
  return {200, {}, MetricsPage(snapshot, format), ContentType(format)};
}

ipc::QueueInfo Routes::Find(uint64_t handle) {
  std::vector<ipc::QueueInfo> with_handle;
  for (const ipc::QueueInfo& queue : scheduler_.List()) {
    if (queue.queue_id == handle) return queue;
    if (queue.handle == handle) with_handle.push_back(queue);
  }
  if (with_handle.empty()) Refuse(404, "XQueue not found");
  if (with_handle.size() > 1) Refuse(400, "several programs have this handle");
  return with_handle[0];
}

// ---- changes ----

Answer Routes::Post(const Request& request, const Peer& caller) {
  if (request.path == "/policy") return SetPolicy(request, caller);
  if (request.path == "/hint") return SetHint(request, caller);
  if (request.path.starts_with(kConfigPath)) return SetConfig(request, caller);
  Refuse(404, "no such path");
}

ipc::QueueInfo Routes::FindToChange(uint64_t handle, const Peer& caller) {
  ipc::QueueInfo queue = Find(handle);
  if (!access_.MayTouch(caller, queue.uid)) Refuse(403, "it is another user's queue");
  return queue;
}

Answer Routes::SetPolicy(const Request& request, const Peer& caller) {
  if (!access_.IsAdmin(caller)) Refuse(403, "only administrators may set the policy");
  auto found = request.parameters.find("policy");
  if (found == request.parameters.end()) Refuse(400, "missing policy");
  ipc::SetPolicy message{};
  if (!found->second.empty() && std::isalpha(static_cast<unsigned char>(found->second[0])) != 0) {
    if (!sched::ParsePolicySetting(found->second.c_str())) Refuse(400, "invalid policy");
    ipc::SetText(message.setting, std::string_view(found->second));
  } else {
    message.policy = NumberOr400<uint32_t>(found->second, "policy");
    if (message.policy == kPolicyUnknown || message.policy >= kPolicyMax) Refuse(400, "invalid policy");
  }
  if (auto k = request.parameters.find("k"); k != request.parameters.end()) {
    message.at_a_time = NumberOr400<uint32_t>(k->second, "k");
    if (message.at_a_time == 0) Refuse(400, "invalid k");
  }
  return AnswerTo(scheduler_.SetPolicy(message));
}

Answer Routes::SetConfig(const Request& request, const Peer& caller) {
  const uint64_t handle = HandleIn(request, kConfigPath);
  const int64_t level = Wanted(request, "level");
  if (level >= kPreemptLevelMax) Refuse(400, "invalid level");
  ipc::SetConfig message{};
  message.level = static_cast<uint32_t>(level);
  message.threshold = Wanted(request, "threshold");
  message.batch_size = Wanted(request, "batch_size");
  message.queue_id = FindToChange(handle, caller).queue_id;
  if (message.level == 0 && message.threshold == 0 && message.batch_size == 0)
    return {200, {{"warning", "no change"}}};
  return AnswerTo(scheduler_.SetConfig(message));
}

Answer Routes::SetHint(const Request& request, const Peer& caller) {
  const json hint = json::parse(request.body, nullptr, /*allow_exceptions=*/false);
  if (!hint.is_object()) Refuse(400, "the body must be a JSON object");
  const int64_t type = IntegerOr400(hint, "hint_type");
  switch (type) {
    case kPriority:
    case kUtilization:
    case kWeight:
    case kReservation:
    case kLatencyTarget:
    case kFloor:
      return SetHintOfQueues(hint, type, caller);
    case kTimeslice:
      return SetTimeslice(hint, caller);
    case kWindowActive:
      return SetActiveWindow(hint, caller);
    default:
      Refuse(400, "invalid hint type");
  }
}

Answer Routes::SetHintOfQueues(const json& hint, int64_t type, const Peer& caller) {
  ipc::SetHints message{};
  if (!access_.IsAdmin(caller)) message.for_user = caller.uid + 1;
  if (type == kPriority) {
    message.mask = ipc::kHintPriority;
    message.hints.priority = InRangeOr400(hint, "priority", PRIORITY_NO_EXECUTE, PRIORITY_MAX);
  } else if (type == kUtilization) {
    message.mask = ipc::kHintUtilization;
    message.hints.utilization = InRangeOr400(hint, "utilization", UTILIZATION_MIN, UTILIZATION_MAX);
  } else if (type == kReservation) {
    message.mask = ipc::kHintReservation;
    auto us = [&hint](const char* name) { return InRangeOr400(hint, name, 0, RESERVATION_PERIOD_MAX); };
    message.more_hints.guarantee_us = us("guarantee_us");
    message.more_hints.period_us = us("period_us");
    message.more_hints.limit_us = us("limit_us");
    message.more_hints.burst_us = us("burst_us");
  } else if (type == kLatencyTarget) {
    message.mask = ipc::kHintLatencyTarget;
    message.more_hints.latency_target_us =
        InRangeOr400(hint, "latency_target_us", NO_LATENCY_TARGET, LATENCY_TARGET_MAX);
  } else if (type == kFloor) {
    message.mask = ipc::kHintFloor;
    message.more_hints.floor = InRangeOr400(hint, "floor", FLOOR_MIN, FLOOR_MAX);
  } else {
    message.mask = ipc::kHintWeight;
    message.more_hints.weight = InRangeOr400(hint, "weight", WEIGHT_MIN, WEIGHT_MAX);
  }
  if (const uint64_t handle = HandleOr400(hint); handle != 0) {
    message.queue_id = FindToChange(handle, caller).queue_id;
    return AnswerTo(scheduler_.SetHints(message));
  }
  const int64_t pid = hint.contains("pid") ? IntegerOr400(hint, "pid") : 0;
  if (pid == 0) Refuse(400, "handle or pid is required");
  std::optional<ipc::Reply> reply;  // the last one, unless one queue took it
  for (const ipc::QueueInfo& queue : scheduler_.List()) {
    if (queue.pid != pid || !access_.MayTouch(caller, queue.uid)) continue;
    message.queue_id = queue.queue_id;
    const ipc::Reply one = scheduler_.SetHints(message);
    if (!reply || reply->result != kXSchedSuccess) reply = one;
  }
  if (!reply) Refuse(404, "no queue of yours in this process");
  return AnswerTo(*reply);
}

Answer Routes::SetActiveWindow(const json& hint, const Peer& caller) {
  ipc::SetActiveWindow message{};
  message.pid = InRangeOr400(hint, "pid", 0, std::numeric_limits<int32_t>::max());
  const int64_t display = IntegerOr400(hint, "display");
  if (display < 0 || display > UINT32_MAX) Refuse(400, "invalid display");
  message.display = static_cast<uint32_t>(display);
  message.user = caller.uid;
  return AnswerTo(scheduler_.SetActiveWindow(message));
}

Answer Routes::SetTimeslice(const json& hint, const Peer& caller) {
  if (!access_.IsAdmin(caller)) Refuse(403, "only administrators may set the timeslice");
  ipc::SetPolicy message{};
  message.timeslice_us = InRangeOr400(hint, "timeslice", TIMESLICE_MIN, TIMESLICE_MAX);
  return AnswerTo(scheduler_.SetPolicy(message));
}

}  // namespace xsched::server::http
