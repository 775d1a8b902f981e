#include "server/tools.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "server/clean_text.h"
#include "server/limits.h"
#include "server/policy_names.h"
#include "server/tenants/audit_text.h"
#include "server/version.h"

namespace xsched::server {
namespace {

Result<sched::PolicySetting> SettingIn(const ipc::SetPolicy& request) {
  if (request.setting[0] != '\0')
    return sched::ParsePolicySetting(CleanText(request.setting, sizeof request.setting).c_str());
  const sched::Policy* policy = sched::FindPolicyByNumber(request.policy);
  if (policy == nullptr) return Error::Make("this server has no such policy");
  return sched::PolicySetting(*policy);
}

// They come from names of control groups, which others choose. So they are cleaned.
void DescribeIdentity(ipc::QueueInfo& info, const ProcessIdentity& process) {
  const auto clean = [](const std::string& text) { return CleanText(text.data(), text.size()); };
  ipc::SetText(info.container, clean(process.container));
  ipc::SetText(info.pod, clean(process.pod));
  ipc::SetText(info.slurm_job, clean(process.job));
}

}  // namespace

bool Tools::HandleMessage(Connection& tool, const ipc::Packet& packet, TimePoint now) {
  const ipc::MessageType type = packet.header().type;
  if (type == ipc::MessageType::kRecord) return parts_.recordings.Start(tool, packet.As<ipc::Record>(), now);
  if (type == ipc::MessageType::kRecordLast) {
    return parts_.recordings.IsRecording(tool)
               ? parts_.recordings.Refuse(tool)
               : parts_.recordings.SendLast(tool, packet.As<ipc::RecordLast>(), now);
  }
  if (type == ipc::MessageType::kStopRecording) return parts_.recordings.Stop(tool, now);
  if (parts_.recordings.IsRecording(tool)) return parts_.recordings.Refuse(tool);
  switch (type) {
    case ipc::MessageType::kList:
      return List(tool, now);
    case ipc::MessageType::kGetUsage:
      return SendUsage(tool, packet.As<ipc::GetUsage>(), now);
    case ipc::MessageType::kSetHints:
      return Change(tool, packet.As<ipc::SetHints>(), now);
    case ipc::MessageType::kSetConfig:
      return Change(tool, packet.As<ipc::SetConfig>(), now);
    case ipc::MessageType::kSetPolicy:
      return SetPolicy(tool, packet.As<ipc::SetPolicy>(), now);
    case ipc::MessageType::kSetActiveWindow:
      return SetActiveWindow(tool, packet.As<ipc::SetActiveWindow>());
    case ipc::MessageType::kGetStatus:
      return SendStatus(tool, now);
    case ipc::MessageType::kQueueCreated:
    case ipc::MessageType::kQueueDestroyed:
    case ipc::MessageType::kQueueHints:
    case ipc::MessageType::kQueueConfig:
    case ipc::MessageType::kQueueAbsent:
    case ipc::MessageType::kDeviceFiles:
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
  parts_.work.Charge(tool.peer.uid,
                     (parts_.agents.size() + listing.queues.size()) / WorkBudget::kLookedAtAsOne);
  std::sort(listing.queues.begin(), listing.queues.end());
  return Begin(tool, {std::move(listing)}, now);
}

bool Tools::SendUsage(Connection& tool, const ipc::GetUsage& request, TimePoint now) {
  const UsageAnswer::Parts parts{parts_.agents, parts_.queues,  parts_.scheduler, parts_.access,
                                 parts_.usage,  parts_.tenants, parts_.work};
  return Begin(tool, {UsageAnswer(parts, tool, request.queues != 0)}, now);
}

// While a tool records, its buffer is full of records (Recordings).
bool Tools::MayAsk(Connection& tool, TimePoint now) {
  if (tool.HasRoom() || parts_.recordings.IsRecording(tool)) return true;
  if (!Begin(tool, {Unread{}}, now)) parts_.connections.Close(tool, nullptr);
  return !tool.closed && !IsAnswering(tool);
}

bool Tools::Begin(Connection& tool, Answer answer, TimePoint now) {
  const Sent sent = Send(tool, answer, now);
  if (sent != Sent::kRestLater) return sent == Sent::kAll;
  unfinished_.emplace(tool.id, std::move(answer));
  return parts_.connections.Watch(tool, EPOLLOUT);
}

bool Tools::Continue(Connection& tool, TimePoint now) {
  auto found = unfinished_.find(tool.id);
  const Sent sent = Send(tool, found->second, now);
  if (sent != Sent::kAll) return sent == Sent::kRestLater;
  unfinished_.erase(found);
  return parts_.connections.Watch(tool, EPOLLIN);
}

// Sends as much as the tool's buffer takes, and not more than what is for one round.
Sent Tools::Send(Connection& tool, Answer& answer, TimePoint now) {
  answer.blocked_since = now;
  if (auto* usage = std::get_if<UsageAnswer>(&answer.what)) return usage->Send(tool, now);
  if (auto* changing = std::get_if<Changing>(&answer.what)) return Send(tool, *changing, now);
  if (std::holds_alternative<Unread>(answer.what)) return tool.HasRoom() ? Sent::kAll : Sent::kRestLater;
  return Send(tool, std::get<Listing>(answer.what), now);
}

Sent Tools::Send(Connection& tool, Listing& listing, TimePoint now) {
  const size_t end = std::min(listing.queues.size(), listing.next + kMaxListedPerRound);
  for (; listing.next < end; ++listing.next) {
    Queue* queue = parts_.queues.Find(listing.queues[listing.next]);
    if (queue == nullptr) continue;
    parts_.work.Charge(tool.peer.uid, WorkBudget::kSent);
    const Sent sent = tool.SendPart(Describe(*queue, tool.peer, now));
    if (sent != Sent::kAll) return sent;
    ++listing.sent;
  }
  if (end < listing.queues.size()) return Sent::kRestLater;
  return tool.SendPart(ipc::ReplyFrom(kXSchedSuccess, listing.sent, ""));
}

TimePoint Tools::CloseUnreading(TimePoint now) {
  TimePoint next = kNever;
  for (auto& [id, answer] : unfinished_) {
    const TimePoint deadline = answer.blocked_since + kUnreadTimeout;
    if (now >= deadline) parts_.connections.Close(*parts_.connections.Find(id), "an answer left unread");
    next = std::min(next, std::max(deadline, now));
  }
  return next;
}

// What `reader` may see of the queue.
ipc::QueueInfo Tools::Describe(Queue& queue, const Peer& reader, TimePoint now) {
  const Connection& client = queue.agent->connection;
  // Reads progress for which the client has not rung.
  parts_.queues.Observe(queue, now);
  sched::QueueStats stats = parts_.scheduler.Stats(queue.id, now).value_or(sched::QueueStats{});
  if (!queue.has_access) {
    stats.submitted = queue.submitted;
    stats.retired = queue.retired;
  }
  ipc::QueueInfo info = ipc::QueueInfoFrom(queue, client, stats, queue.hints);
  info.counted_priority = CountedHints(queue).priority;
  if (queue.agent->tenant != nullptr) ipc::SetText(info.tenant, queue.agent->tenant->name);
  if (client.identity) DescribeIdentity(info, *client.identity);
  const ipc::MemoryWords memory = ipc::ReadMemory(*queue.agent->segment.get(), queue.device);
  info.memory_used = memory.used;
  info.memory_limit = memory.limit;
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
  if (!queue.has_access) {
    info.wait_reason = ipc::kWaitNoAccess;
    info.absent = 1;
    return;
  }
  // A queue that the program has suspended may be held as well. The suspension is then the reason.
  info.wait_reason = static_cast<uint32_t>(queue.absent ? sched::WaitReason::kAbsent : stats.wait_reason);
  if (queue.absent || stats.wait_reason == sched::WaitReason::kNone) return;
  info.waiting_since_ns =
      static_cast<uint64_t>(std::max(now - stats.waiting_since, Duration::zero()).count());
  const Queue* found = parts_.queues.Find(stats.waits_for);
  if (found == nullptr) return;
  const Connection& other = found->agent->connection;
  if (!parts_.access.MayTouch(reader, other.peer.uid)) {
    info.waits_for_pid = ipc::kWaitsForAnotherUser;
    return;
  }
  info.waits_for_queue = static_cast<uint64_t>(found->id);
  info.waits_for_pid = other.peer.pid;
  ipc::SetText(info.waits_for_name, other.name);
}

// ---- hints, policy, status ----

template <typename Request>
bool Tools::Change(Connection& tool, const Request& request, TimePoint now) {
  const std::string wrong = QueueChange::WhatIsWrong(request);
  if (!wrong.empty()) return tool.SendReply(kXSchedErrorInvalidValue, 0, wrong);
  const QueueChange::Parts parts{parts_.agents, parts_.queues, parts_.access, parts_.work};
  return Begin(tool, {.what = Changing{QueueChange(parts, tool, request), {}}}, now);
}

Sent Tools::Send(Connection& tool, Changing& changing, TimePoint now) {
  if (!changing.reply) {
    if (!changing.change.Continue()) return Sent::kRestLater;
    const QueueChange::Outcome outcome = changing.change.outcome();
    Audit(tool, changing.change.record(), outcome.result, outcome.text, now);
    changing.reply = ipc::ReplyFrom(outcome.result, outcome.count, outcome.text);
  }
  return tool.SendPart(*changing.reply);
}

void Tools::Audit(Connection& tool, AuditRecord record, XResult result, const std::string& text,
                  TimePoint now) {
  record.who = tool.peer;
  record.verdict = result != kXSchedSuccess ? Verdict::kRefused
                   : !text.empty()          ? Verdict::kCorrected
                                            : Verdict::kAllowed;
  record.reason = text;
  Tenant& tenant = parts_.tenants.Of(tool);
  record.tenant = tenant.name;
  if (record.verdict != Verdict::kAllowed) ++tenant.refused;
  parts_.audit.Add(record, now);
}

bool Tools::SetPolicy(Connection& tool, const ipc::SetPolicy& request, TimePoint now) {
  AuditRecord record;
  record.what = "policy";
  record.from = TextOf(parts_.scheduler);
  record.to = TextOf(request);
  if (!parts_.access.IsAdmin(tool.peer)) {
    constexpr const char* kRefusal =
        "only root, the server's own user and its admin group may set the policy";
    Audit(tool, record, kXSchedErrorNotAllowed, kRefusal, now);
    return tool.SendReply(kXSchedErrorNotAllowed, 0, kRefusal);
  }
  if (request.timeslice_us != 0 &&
      (request.timeslice_us < TIMESLICE_MIN || request.timeslice_us > TIMESLICE_MAX)) {
    return tool.SendReply(kXSchedErrorInvalidValue, 0, "the timeslice is out of its range");
  }
  if (request.at_a_time > sched::kMostAtATime)
    return tool.SendReply(kXSchedErrorInvalidValue, 0, "k is out of its range");
  if (request.policy != kPolicyUnknown || request.setting[0] != '\0') {
    Result<sched::PolicySetting> setting = SettingIn(request);
    if (!setting) return tool.SendReply(kXSchedErrorNotSupported, 0, setting.error().text());
    parts_.scheduler.SetPolicy(*setting);
  }
  if (request.timeslice_us != 0)
    parts_.scheduler.SetTimeslice(std::chrono::microseconds(request.timeslice_us));
  if (request.at_a_time != 0) parts_.scheduler.SetAtATime(request.at_a_time);
  record.to = TextOf(parts_.scheduler);
  Audit(tool, record, kXSchedSuccess, "", now);
  return tool.SendReply(kXSchedSuccess, 0, "");
}

bool Tools::SetActiveWindow(Connection& tool, const ipc::SetActiveWindow& request) {
  if (!parts_.access.MayTouch(tool.peer, request.user))
    return tool.SendReply(kXSchedErrorNotAllowed, 0, "it is another user's display");
  if (request.pid < 0)
    return tool.SendReply(kXSchedErrorInvalidValue, 0, "a process's number is not below 0");
  parts_.work.Charge(tool.peer.uid,
                     (parts_.agents.size() + parts_.queues.size()) / WorkBudget::kLookedAtAsOne);
  const int count = parts_.facts.SetActiveWindow(request.user, request.display, request.pid);
  if (count < 0) return tool.SendReply(kXSchedErrorNotAllowed, 0, "the user has too many displays");
  return tool.SendReply(kXSchedSuccess, static_cast<uint32_t>(count), "");
}

bool Tools::SendStatus(Connection& tool, TimePoint now) {
  ipc::Status status = ipc::StatusFrom(parts_.scheduler, parts_.agents, parts_.queues, parts_.connections,
                                       parts_.recordings, parts_.tenants, parts_.usage);
  status.started_ns = static_cast<uint64_t>(started_at_.time_since_epoch() / std::chrono::nanoseconds(1));
  status.pid = getpid();
  status.uid = geteuid();
  status.uptime_ns = static_cast<uint64_t>((now - started_).count());
  parts_.work.Charge(tool.peer.uid, parts_.queues.size() / WorkBudget::kLookedAtAsOne);
  parts_.queues.ForEach([&](const Queue& queue) {
    if (auto stats = parts_.scheduler.Stats(queue.id, now)) status.incidents += stats->incidents;
  });
  status.is_admin = parts_.access.IsAdmin(tool.peer);
  const Tenant& tenant = parts_.tenants.Of(tool);
  status.max_priority = status.is_admin != 0 ? PRIORITY_MAX : tenant.rights.max_priority;
  ipc::SetText(status.tenant, tenant.name);
  ipc::SetText(status.version, kVersion);
  sched::WritePolicySetting(parts_.scheduler.setting(), status.setting);
  return tool.Send(status);
}

}  // namespace xsched::server
