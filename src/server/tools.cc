#include "server/tools.h"

#include <errno.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "server/limits.h"
#include "server/version.h"

namespace xsched::server {
namespace {

// `hints` with those of the request in their place.
ipc::WireHints With(const ipc::SetHints& request, ipc::WireHints hints) {
  if ((request.mask & ipc::kHintPriority) != 0) hints.priority = request.hints.priority;
  if ((request.mask & ipc::kHintUtilization) != 0) hints.utilization = request.hints.utilization;
  if ((request.mask & ipc::kHintDeadline) != 0) hints.deadline_us = request.hints.deadline_us;
  if ((request.mask & ipc::kHintLaxity) != 0) {
    hints.laxity_us = request.hints.laxity_us;
    hints.lax_priority = request.hints.lax_priority;
    hints.critical_priority = request.hints.critical_priority;
  }
  return hints;
}

}  // namespace

bool Tools::HandleMessage(Connection& tool, const ipc::Packet& packet, TimePoint now) {
  switch (packet.header().type) {
    case ipc::MessageType::kList:
      return List(tool, now);
    case ipc::MessageType::kSetHints:
      return SetHints(tool, packet.As<ipc::SetHints>());
    case ipc::MessageType::kSetPolicy:
      return SetPolicy(tool, packet.As<ipc::SetPolicy>());
    case ipc::MessageType::kGetStatus:
      return SendStatus(tool, now);
    case ipc::MessageType::kQueueCreated:
    case ipc::MessageType::kQueueDestroyed:
    case ipc::MessageType::kQueueHints:
    case ipc::MessageType::kQueueConfig:
    case ipc::MessageType::kQueueAbsent:
      return false;  // an agent's messages, without an agent's segment
    default:
      return tool.SendReply(kXSchedErrorNotSupported, 0, "unknown request");
  }
}

// ---- list ----

bool Tools::List(Connection& tool, TimePoint now) {
  Listing listing;
  parts_.agents.ForEach([&](const Agent& agent) {
    if (agent.connection.closed || !parts_.access.MayTouch(tool.peer, agent.connection.peer.uid)) return;
    for (auto& [index, queue] : agent.queues) listing.queues.push_back(queue.id);
  });
  std::sort(listing.queues.begin(), listing.queues.end());
  if (Send(tool, listing, now)) return true;
  if (errno != EAGAIN && errno != EWOULDBLOCK) return false;
  unfinished_.emplace(tool.id, std::move(listing));
  return parts_.connections.Watch(tool, EPOLLOUT);
}

bool Tools::ContinueListing(Connection& tool, TimePoint now) {
  auto found = unfinished_.find(tool.id);
  if (!Send(tool, found->second, now)) return errno == EAGAIN || errno == EWOULDBLOCK;
  unfinished_.erase(found);
  return parts_.connections.Watch(tool, EPOLLIN);
}

// Sends as much as the tool's buffer takes. False: not all of it; errno says why.
bool Tools::Send(Connection& tool, Listing& listing, TimePoint now) {
  listing.blocked_since = now;
  for (; listing.next < listing.queues.size(); ++listing.next) {
    Queue* queue = parts_.queues.Find(listing.queues[listing.next]);
    if (queue == nullptr) continue;
    if (!tool.Send(Describe(*queue, tool.peer, now))) return false;
    ++listing.sent;
  }
  return tool.SendReply(kXSchedSuccess, listing.sent, "");
}

TimePoint Tools::CloseUnreading(TimePoint now) {
  TimePoint next = kNever;
  for (auto& [id, listing] : unfinished_) {
    const TimePoint deadline = listing.blocked_since + kUnreadTimeout;
    if (now >= deadline) parts_.connections.Close(*parts_.connections.Find(id), "an answer left unread");
    next = std::min(next, std::max(deadline, now));
  }
  return next;
}

// As `reader` may see it.
ipc::QueueInfo Tools::Describe(Queue& queue, const Peer& reader, TimePoint now) {
  const Connection& client = queue.agent->connection;
  // What the client has not rung for is read now.
  parts_.queues.Observe(queue, now);
  sched::QueueStats stats = parts_.scheduler.Stats(queue.id, now).value_or(sched::QueueStats{});
  ipc::QueueInfo info{};
  info.queue_id = static_cast<uint64_t>(queue.id);
  info.client_id = client.id;
  info.handle = queue.handle;
  info.device = queue.device;
  info.pid = client.peer.pid;
  info.uid = client.peer.uid;
  info.platform = queue.platform;
  info.level = queue.level;
  info.state = static_cast<uint32_t>(stats.state);
  info.run = stats.control.run;
  info.tracked = stats.control.tracked;
  info.gated = stats.control.gated;
  info.stalled = stats.stalled;
  info.absent = queue.absent;
  info.hints = ToWire(parts_.scheduler.GetHints(queue.id).value_or(sched::Hints{}));
  info.threshold = queue.threshold;
  info.batch_size = queue.batch_size;
  info.submitted = stats.submitted;
  info.retired = stats.retired;
  info.service_ns = static_cast<uint64_t>(stats.service.count());
  info.waiting_ns = static_cast<uint64_t>(stats.waiting.count());
  info.holds = stats.holds;
  info.incidents = stats.incidents;
  client.name.copy(info.name, sizeof info.name - 1);
  queue.device_name.copy(info.device_name, sizeof info.device_name - 1);
  DescribeWait(info, queue, stats, reader, now);
  return info;
}

void Tools::DescribeWait(ipc::QueueInfo& info, const Queue& queue, const sched::QueueStats& stats,
                         const Peer& reader, TimePoint now) const {
  if (stats.submitted == stats.retired) return;
  const Liveness& process = queue.agent->liveness;
  if (!process.running()) {
    info.wait_reason = process.stopped() ? ipc::kWaitProcessStopped : ipc::kWaitProcessSilent;
    info.absent = 1;
    return;
  }
  // What the program has suspended may be held as well: its own word is why it does not run.
  info.wait_reason = static_cast<uint32_t>(queue.absent ? sched::WaitReason::kAbsent : stats.wait_reason);
  if (queue.absent || stats.wait_reason == sched::WaitReason::kNone) return;
  info.waiting_since_ns =
      static_cast<uint64_t>(std::max(now - stats.waiting_since, Duration::zero()).count());
  if (stats.wait_reason != sched::WaitReason::kHeld) return;
  const Queue* found = parts_.queues.Find(stats.waits_for);
  if (found == nullptr) return;
  const Connection& other = found->agent->connection;
  if (!parts_.access.MayTouch(reader, other.peer.uid)) {
    info.waits_for_pid = ipc::kWaitsForAnotherUser;
    return;
  }
  info.waits_for_queue = static_cast<uint64_t>(found->id);
  info.waits_for_pid = other.peer.pid;
  other.name.copy(info.waits_for_name, sizeof info.waits_for_name - 1);
}

// ---- hints, policy, status ----

bool Tools::SetHints(Connection& tool, const ipc::SetHints& request) {
  constexpr uint32_t kKnown =
      ipc::kHintPriority | ipc::kHintUtilization | ipc::kHintDeadline | ipc::kHintLaxity;
  if (request.mask == 0 || (request.mask & ~kKnown) != 0)
    return tool.SendReply(kXSchedErrorInvalidValue, 0, "no hint, or an unknown one");
  uint32_t count = 0;
  bool valid = true;
  parts_.agents.ForEach([&](Agent& agent) {
    const Peer& owner = agent.connection.peer;
    if (!valid || !parts_.access.MayTouch(tool.peer, owner.uid)) return;
    for (auto& [index, queue] : agent.queues) {
      const bool is_meant = request.queue_id != 0 ? static_cast<uint64_t>(queue.id) == request.queue_id
                                                  : owner.pid == request.pid;
      if (!is_meant) continue;
      const ipc::WireHints hints =
          With(request, ToWire(parts_.scheduler.GetHints(queue.id).value_or(sched::Hints{})));
      valid = IsValid(hints);
      if (!valid) break;
      parts_.agents.SetHints(queue, hints);
      ++count;
    }
    if (agent.hints_unsent) parts_.agents.SendUnsent(agent);
  });
  if (!valid) return tool.SendReply(kXSchedErrorInvalidValue, count, "a hint is out of its range");
  // Whether somebody else's queue exists is nobody's business.
  if (count == 0) return tool.SendReply(kXSchedErrorNotFound, 0, "no such queue of yours");
  return tool.SendReply(kXSchedSuccess, count, "");
}

bool Tools::SetPolicy(Connection& tool, const ipc::SetPolicy& request) {
  if (!parts_.access.IsAdmin(tool.peer)) {
    return tool.SendReply(kXSchedErrorNotAllowed, 0,
                          "only root, the server's own user and its admin group may set the policy");
  }
  if (request.timeslice_us != 0 &&
      (request.timeslice_us < TIMESLICE_MIN || request.timeslice_us > TIMESLICE_MAX)) {
    return tool.SendReply(kXSchedErrorInvalidValue, 0, "the timeslice is out of its range");
  }
  if (request.policy != kPolicyUnknown) {
    const sched::Policy* policy = sched::FindPolicyByNumber(request.policy);
    if (policy == nullptr)
      return tool.SendReply(kXSchedErrorNotSupported, 0, "this server has no such policy");
    parts_.scheduler.SetPolicy(*policy);
    spdlog::info("policy {} set by pid {} (user {})", sched::PolicyName(policy->type()), tool.peer.pid,
                 tool.peer.uid);
  }
  if (request.timeslice_us != 0)
    parts_.scheduler.SetTimeslice(std::chrono::microseconds(request.timeslice_us));
  return tool.SendReply(kXSchedSuccess, 0, "");
}

bool Tools::SendStatus(Connection& tool, TimePoint now) {
  ipc::Status status{};
  status.major = ipc::kMajor;
  status.minor = ipc::kMinor;
  status.policy = parts_.scheduler.policy().type();
  status.timeslice_us = parts_.scheduler.timeslice() / std::chrono::microseconds(1);
  status.pid = getpid();
  status.uid = geteuid();
  status.uptime_ns = static_cast<uint64_t>((now - started_).count());
  status.clients = static_cast<uint32_t>(parts_.agents.size());
  status.queues = static_cast<uint32_t>(parts_.queues.size());
  status.decisions = parts_.agents.decisions();
  status.state_changes = parts_.queues.state_changes();
  parts_.queues.ForEach([&](const Queue& queue) {
    if (auto stats = parts_.scheduler.Stats(queue.id, now)) status.incidents += stats->incidents;
  });
  status.rejected = parts_.connections.rejected();
  status.is_admin = parts_.access.IsAdmin(tool.peer);
  std::string(kVersion).copy(status.version, sizeof status.version - 1);
  return tool.Send(status);
}

}  // namespace xsched::server
