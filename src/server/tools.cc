// What tools ask, and what they are answered.
#include <errno.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>

#include "server/server.h"
#include "server/version.h"

namespace xsched::server {

bool Server::HandleToolMessage(Connection& connection, const ipc::Packet& packet, TimePoint now) {
  switch (packet.header().type) {
    case ipc::MessageType::kList:
      return List(connection, now);
    case ipc::MessageType::kSetHints:
      return SetHints(connection, packet.As<ipc::SetHints>());
    case ipc::MessageType::kSetPolicy:
      return SetPolicy(connection, packet.As<ipc::SetPolicy>());
    case ipc::MessageType::kGetStatus:
      return SendStatus(connection, now);
    case ipc::MessageType::kQueueCreated:
    case ipc::MessageType::kQueueDestroyed:
    case ipc::MessageType::kQueueHints:
    case ipc::MessageType::kQueueConfig:
    case ipc::MessageType::kQueueAbsent:
      return false;  // an agent's words, without an agent's segment
    default:
      return SendReply(connection, kXSchedErrorNotSupported, 0, "unknown request");
  }
}

bool Server::SendReply(Connection& connection, XResult result, uint32_t count, const std::string& text) {
  ipc::Reply reply{};
  reply.result = result;
  reply.count = count;
  text.copy(reply.text, sizeof reply.text - 1);
  return connection.Send(reply);
}

bool Server::List(Connection& connection, TimePoint now) {
  Listing& listing = connection.listing.emplace();
  for (auto& [id, agent] : connections_) {
    if (agent->closed || !access_.MayTouch(connection.peer, agent->peer.uid)) continue;
    for (auto& [index, queue] : agent->queues) listing.queues.push_back(static_cast<uint64_t>(queue.id));
  }
  std::sort(listing.queues.begin(), listing.queues.end());
  return ContinueListing(connection, now);
}

// Tells as much as the tool's buffer takes, and goes on when it has been read; the answer is never kept as
// text. False: the tool is gone.
bool Server::ContinueListing(Connection& connection, TimePoint now) {
  Listing& listing = *connection.listing;
  for (; listing.next < listing.queues.size(); ++listing.next) {
    auto found = queues_.find(listing.queues[listing.next]);
    if (found == queues_.end()) continue;
    if (!connection.Send(Describe(*found->second, connection.peer, now)))
      return WaitForReader(connection, now);
    ++listing.told;
  }
  if (!SendReply(connection, kXSchedSuccess, listing.told, "")) return WaitForReader(connection, now);
  connection.listing.reset();
  return unreading_.erase(connection.id) == 0 || WatchSocket(connection, EPOLLIN);
}

bool Server::WaitForReader(Connection& connection, TimePoint now) {
  if (errno != EAGAIN && errno != EWOULDBLOCK) return false;
  connection.listing->blocked_since = now;
  if (!unreading_.insert(connection.id).second) return true;
  return WatchSocket(connection, EPOLLOUT);
}

ipc::QueueInfo Server::Describe(Queue& queue, const Peer& reader, TimePoint now) {
  const Connection& agent = *queue.connection;
  // What the client has not rung for is as fresh here as its memory.
  Observe(*queue.connection, queue, now);
  sched::QueueStats stats = scheduler_.Stats(queue.id, now).value_or(sched::QueueStats{});
  ipc::QueueInfo info{};
  info.queue_id = static_cast<uint64_t>(queue.id);
  info.client_id = agent.id;
  info.handle = queue.handle;
  info.device = queue.device;
  info.pid = agent.peer.pid;
  info.uid = agent.peer.uid;
  info.platform = queue.platform;
  info.level = queue.level;
  info.state = static_cast<uint32_t>(stats.state);
  info.run = stats.control.run;
  info.tracked = stats.control.tracked;
  info.gated = stats.control.gated;
  info.stalled = stats.stalled;
  info.absent = queue.absent;
  info.hints = ToWire(scheduler_.GetHints(queue.id).value_or(sched::Hints{}));
  info.threshold = queue.threshold;
  info.batch_size = queue.batch_size;
  info.submitted = stats.submitted;
  info.retired = stats.retired;
  info.service_ns = static_cast<uint64_t>(stats.service.count());
  info.waiting_ns = static_cast<uint64_t>(stats.waiting.count());
  info.holds = stats.holds;
  info.incidents = stats.incidents;
  agent.name.copy(info.name, sizeof info.name - 1);
  queue.device_name.copy(info.device_name, sizeof info.device_name - 1);
  DescribeWait(info, queue, stats, reader, now);
  return info;
}

void Server::DescribeWait(ipc::QueueInfo& info, const Queue& queue, const sched::QueueStats& stats,
                          const Peer& reader, TimePoint now) const {
  if (stats.submitted == stats.retired) return;
  if (queue.connection->stopped || queue.connection->silent) {
    info.wait_reason = queue.connection->stopped ? ipc::kWaitProcessStopped : ipc::kWaitProcessSilent;
    info.absent = 1;
    return;
  }
  // What the program has suspended may be held as well: its own word is why it does not run.
  info.wait_reason = static_cast<uint32_t>(queue.absent ? sched::WaitReason::kAbsent : stats.wait_reason);
  if (queue.absent || stats.wait_reason == sched::WaitReason::kNone) return;
  info.waiting_since_ns =
      static_cast<uint64_t>(std::max(now - stats.waiting_since, Duration::zero()).count());
  if (stats.wait_reason != sched::WaitReason::kHeld) return;
  auto found = queues_.find(static_cast<uint64_t>(stats.waits_for));
  if (found == queues_.end()) return;
  const Connection& other = *found->second->connection;
  if (!access_.MayTouch(reader, other.peer.uid)) {
    info.waits_for_pid = ipc::kWaitsForAnotherUser;
    return;
  }
  info.waits_for_queue = found->first;
  info.waits_for_pid = other.peer.pid;
  other.name.copy(info.waits_for_name, sizeof info.waits_for_name - 1);
}

bool Server::SetHints(Connection& connection, const ipc::SetHints& request) {
  constexpr uint32_t kKnown =
      ipc::kHintPriority | ipc::kHintUtilization | ipc::kHintDeadline | ipc::kHintLaxity;
  if (request.mask == 0 || (request.mask & ~kKnown) != 0) {
    return SendReply(connection, kXSchedErrorInvalidValue, 0, "no hint, or an unknown one");
  }
  uint32_t count = 0;
  for (auto& [id, agent] : connections_) {
    for (auto& [index, queue] : agent->queues) {
      bool meant = request.queue_id != 0 ? static_cast<uint64_t>(queue.id) == request.queue_id
                                         : agent->peer.pid == request.pid;
      if (!meant) continue;
      if (!access_.MayTouch(connection.peer, agent->peer.uid)) continue;
      ipc::WireHints hints = ToWire(scheduler_.GetHints(queue.id).value_or(sched::Hints{}));
      if ((request.mask & ipc::kHintPriority) != 0) hints.priority = request.hints.priority;
      if ((request.mask & ipc::kHintUtilization) != 0) hints.utilization = request.hints.utilization;
      if ((request.mask & ipc::kHintDeadline) != 0) hints.deadline_us = request.hints.deadline_us;
      if ((request.mask & ipc::kHintLaxity) != 0) {
        hints.laxity_us = request.hints.laxity_us;
        hints.lax_priority = request.hints.lax_priority;
        hints.critical_priority = request.hints.critical_priority;
      }
      if (!IsValid(hints))
        return SendReply(connection, kXSchedErrorInvalidValue, count, "a hint is out of its range");
      scheduler_.SetHints(queue.id, FromWire(hints));
      queue.hints_untold = agent->hints_untold = true;
      ++count;
    }
    if (agent->hints_untold && !SendUnsent(*agent)) Close(*agent, "it cannot be watched");
  }
  // Whether somebody else's queue exists is nobody's business.
  if (count == 0) return SendReply(connection, kXSchedErrorNotFound, 0, "no such queue of yours");
  return SendReply(connection, kXSchedSuccess, count, "");
}

// The agent keeps them: it will register its queues so with the next server. False: its buffer is full.
bool Server::SendUnsentHints(Connection& agent) {
  if (!agent.hints_untold) return true;
  for (auto& [index, queue] : agent.queues) {
    if (!queue.hints_untold) continue;
    ipc::QueueHints message{};
    message.index = index;
    message.hints = ToWire(scheduler_.GetHints(queue.id).value_or(sched::Hints{}));
    message.handle = queue.handle;
    if (!agent.Send(message)) return false;
    queue.hints_untold = false;
  }
  agent.hints_untold = false;
  return true;
}

bool Server::SetPolicy(Connection& connection, const ipc::SetPolicy& request) {
  if (!access_.IsAdmin(connection.peer)) {
    return SendReply(connection, kXSchedErrorNotAllowed, 0,
                     "only root, the server's own user and its admin group may set the policy");
  }
  if (request.timeslice_us != 0 &&
      (request.timeslice_us < TIMESLICE_MIN || request.timeslice_us > TIMESLICE_MAX)) {
    return SendReply(connection, kXSchedErrorInvalidValue, 0, "the timeslice is out of its range");
  }
  if (request.policy != kPolicyUnknown) {
    const sched::Policy* policy = sched::FindPolicy(static_cast<XPolicyType>(request.policy));
    if (policy == nullptr)
      return SendReply(connection, kXSchedErrorNotSupported, 0, "this server has no such policy");
    scheduler_.SetPolicy(*policy);
    spdlog::info("policy {} set by pid {} (user {})", sched::PolicyName(policy->type()), connection.peer.pid,
                 connection.peer.uid);
  }
  if (request.timeslice_us != 0) scheduler_.SetTimeslice(std::chrono::microseconds(request.timeslice_us));
  return SendReply(connection, kXSchedSuccess, 0, "");
}

bool Server::SendStatus(Connection& connection, TimePoint now) {
  ipc::Status status{};
  status.major = ipc::kMajor;
  status.minor = ipc::kMinor;
  status.policy = scheduler_.policy().type();
  status.timeslice_us = scheduler_.timeslice() / std::chrono::microseconds(1);
  status.pid = getpid();
  status.uid = geteuid();
  status.uptime_ns = static_cast<uint64_t>((now - started_).count());
  for (auto& [id, agent] : connections_) status.clients += agent->role == ipc::Role::kAgent;
  status.queues = static_cast<uint32_t>(queues_.size());
  status.decisions = decisions_;
  status.state_changes = state_changes_;
  for (auto& [id, queue] : queues_) {
    if (auto stats = scheduler_.Stats(queue->id, now)) status.incidents += stats->incidents;
  }
  status.rejected = rejected_;
  status.is_admin = access_.IsAdmin(connection.peer);
  std::string(kVersion).copy(status.version, sizeof status.version - 1);
  return connection.Send(status);
}

}  // namespace xsched::server
