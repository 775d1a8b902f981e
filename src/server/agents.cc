#include "server/agents.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <string_view>
#include <utility>

#include "base/device_file.h"
#include "ipc/hints.h"
#include "ipc/job.h"
#include "sched/core/reservation.h"
#include "server/limits.h"

namespace xsched::server {
namespace {

// Longer than any turn. While turns go on, a process is taken off the device at least once in this time.
constexpr Duration kTurnsLast = std::chrono::seconds(1);

bool IsEventFd(int fd) {
  char target[64];
  ssize_t length = readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), target, sizeof target);
  return std::string_view(target, length < 0 ? 0 : static_cast<size_t>(length)) == "anon_inode:[eventfd]";
}

// What of it stays granted if the program sets these hints.
Granted StillGranted(Granted granted, const sched::Hints& hints, const sched::Hints& before) {
  granted.priority &= hints.priority == before.priority;
  const bool same_time = hints.laxity_us == before.laxity_us;
  granted.lax_priority &= same_time && hints.lax_priority == before.lax_priority;
  granted.critical_priority &= same_time && hints.critical_priority == before.critical_priority;
  return granted;
}

// Passes a message about one of its sender's queues to `handle`. False: the sender has no such queue. A
// refused queue exists, but nothing is done for it.
template <typename Message, typename Handle>
bool ForQueue(Agent& agent, const ipc::Packet& packet, Handle&& handle) {
  auto message = packet.As<Message>();
  if (message.index >= ipc::kMaxQueues) return false;
  if (agent.refused[message.index]) return true;
  auto found = agent.queues.find(message.index);
  return found != agent.queues.end() && handle(found->second, message);
}

}  // namespace

// ---- agents come and go ----

bool Agents::Add(Connection& connection, ipc::Packet& packet, TimePoint now) {
  struct stat status {};
  Result<ipc::MappedSegment> segment = ipc::MapSegment(packet.fds[0].get());
  if (!segment || fstat(packet.fds[0].get(), &status) != 0) {
    connection.SendRejected(segment ? "the segment cannot be looked at" : segment.error().text());
    return false;
  }
  if (!IsEventFd(packet.fds[1].get())) return false;
  Result<SegmentGuard::Watched> guarded = parts_.guard.Watch(*segment->get(), connection.id);
  if (!guarded) {
    connection.SendRejected(guarded.error().text());
    return false;
  }
  const SegmentIdentity identity{status.st_dev, status.st_ino};
  CloseFormer(identity, now);
  parts_.wakes.Reserve(agents_.size() + 1);
  auto added = std::make_unique<Agent>(connection, now);
  added->segment = std::move(*segment);
  added->guarded = std::move(*guarded);
  added->segment_identity = identity;
  added->doorbell = std::move(packet.fds[1]);
  packet.fds[0].Reset();
  Agent& agent = *agents_.emplace(connection.id, std::move(added)).first->second;
  by_pid_.emplace(connection.peer.pid, &agent);
  segments_.emplace(identity, connection.id);
  return parts_.bells.Watch(agent);
}

// A process that connects anew has left its former connection, although we may not have seen its end yet.
// What we would write for the former one would hold the new one's queues, and nothing would undo it.
void Agents::CloseFormer(const SegmentIdentity& segment, TimePoint now) {
  auto former = segments_.find(segment);
  if (former == segments_.end()) return;
  Connection& connection = Find(former->second)->connection;
  Remove(connection.id, now);
  parts_.connections.Close(connection, nullptr);
}

void Agents::JoinJob(Agent& agent, uint64_t number) {
  const Job job{agent.connection.peer.uid, number};
  if (number == 0 || agent.jobs.size() == ipc::kMostJobs ||
      std::find(agent.jobs.begin(), agent.jobs.end(), job) != agent.jobs.end())
    return;
  agent.jobs.push_back(job);
  parts_.scheduler.SetJob(agent.process(), jobs_.Join(job));
  if (!jobs_.Unite(job, agent.jobs.front())) return;
  parts_.work.Charge(agent.connection.peer.uid, (agents_.size() + jobs_.size()) / WorkBudget::kLookedAtAsOne);
  for (auto& [id, other] : agents_) {
    if (!other->jobs.empty()) parts_.scheduler.SetJob(other->process(), jobs_.IdOf(other->jobs.front()));
  }
}

void Agents::Remove(uint64_t connection, TimePoint now) {
  auto found = agents_.find(connection);
  if (found == agents_.end()) return;
  Agent& agent = *found->second;
  parts_.work.Charge(agent.connection.peer.uid, agent.queues.size() * WorkBudget::kForgotten);
  for (auto& [index, queue] : agent.queues) parts_.queues.Forget(queue, now);
  for (const Job& job : agent.jobs) jobs_.Leave(job);
  if (agent.tenant != nullptr) --agent.tenant->processes;
  parts_.scheduler.RemoveProcess(agent.process());
  if (auto segment = segments_.find(agent.segment_identity);
      segment != segments_.end() && segment->second == connection) {
    segments_.erase(segment);
  }
  const auto [first, end] = by_pid_.equal_range(agent.connection.peer.pid);
  const auto it = std::find_if(first, end, [&](const auto& entry) { return entry.second == &agent; });
  if (it != end) by_pid_.erase(it);
  parts_.wakes.Forget(agent);
  // Closing the descriptor does not end the watch, because the client has a copy of it.
  parts_.loop.Unwatch(agent.doorbell.get());
  agents_.erase(found);
}

Agent* Agents::Find(uint64_t connection) {
  auto found = agents_.find(connection);
  return found == agents_.end() ? nullptr : found->second.get();
}

// ---- messages ----

bool Agents::HandleMessage(Agent& agent, const ipc::Packet& packet, TimePoint now) {
  switch (packet.header().type) {
    case ipc::MessageType::kQueueCreated:
      return CreateQueue(agent, packet.As<ipc::QueueCreated>(), now);
    case ipc::MessageType::kQueueDestroyed:
      return DestroyQueue(agent, packet.As<ipc::QueueDestroyed>().index, now);
    case ipc::MessageType::kQueueHints:
      return ForQueue<ipc::QueueHints>(agent, packet, [&](Queue& queue, const ipc::QueueHints& message) {
        const sched::Hints before = queue.hints;
        const sched::Hints hints = ipc::HintsIn(message, before);
        return IsValid(hints) && TakeHints(agent, queue, hints, before);
      });
    case ipc::MessageType::kQueueConfig:
      return ForQueue<ipc::QueueConfig>(agent, packet, [&](Queue& queue, const ipc::QueueConfig& message) {
        if (message.level >= kPreemptLevelMax) return false;
        ipc::KeepIn(queue, message);
        parts_.queues.Touch(queue);
        return true;
      });
    case ipc::MessageType::kQueueAbsent:
      return ForQueue<ipc::QueueAbsent>(agent, packet, [&](Queue& queue, const ipc::QueueAbsent& message) {
        queue.absent = message.absent != 0;
        parts_.queues.RefreshAbsent(queue, now);
        return true;
      });
    case ipc::MessageType::kTimesliceHint:
      return SetTimeslice(agent, packet.As<ipc::TimesliceHint>());
    case ipc::MessageType::kKDeadlineHint:
      return SetAtATime(agent, packet.As<ipc::KDeadlineHint>());
    case ipc::MessageType::kJoinJob:
      JoinJob(agent, packet.As<ipc::JoinJob>().number);
      return true;
    case ipc::MessageType::kDeviceFiles:
      return TakeDeviceFiles(agent, packet, now);
    case ipc::MessageType::kPing:
      return Answer(agent, packet.As<ipc::Ping>());
    default:
      return agent.connection.SendReply(kXSchedErrorNotSupported, 0, "unknown message");
  }
}

bool Agents::CreateQueue(Agent& agent, const ipc::QueueCreated& message, TimePoint now) {
  if (message.index >= ipc::kMaxQueues || message.level == kPreemptLevelUnknown ||
      message.level >= kPreemptLevelMax) {
    return false;
  }
  if (!IsValid(ipc::HintsIn(message, sched::Hints{})) || agent.queues.contains(message.index)) return false;
  if (agent.refused[message.index]) return false;
  // Another queue may have used the block before: reset it.
  ipc::WriteWords(agent.segment->blocks[message.index], ipc::kOpenWords);
  const uid_t user = agent.connection.peer.uid;
  if (!parts_.quotas.MayAddQueue(user, message.device)) {
    const std::string reason = fmt::format(
        "user {} has {} queues already, or queues on {} devices, or all users have {}: further ones "
        "run unscheduled",
        user, kMaxQueuesOfUser, kMaxDevicesOfUser, kMaxQueues);
    if (parts_.quotas.RefuseQueue(user)) spdlog::warn("{}", reason);
    return RefuseQueue(agent, message.index, reason);
  }
  const bool has_access = MayUse(agent, message.device);
  if (has_access && TenantIsFull(agent)) return RefuseQueueOfTenant(agent, message.index);
  parts_.queues.Add(agent, message, has_access, now);
  Queue& queue = agent.queues.at(message.index);
  if (!has_access) return TellOfNoAccess(agent, queue);
  return TakeHints(agent, queue, queue.hints, {});
}

bool Agents::TenantIsFull(const Agent& agent) {
  return agent.tenant != nullptr && agent.tenant->queues >= agent.tenant->rights.max_queues;
}

bool Agents::RefuseQueueOfTenant(Agent& agent, uint32_t index) {
  return RefuseQueue(agent, index,
                     fmt::format("tenant {} has {} queues already: further ones run unscheduled",
                                 agent.tenant->name, agent.tenant->queues));
}

// The client gets one message, for the first such queue.
bool Agents::TellOfNoAccess(Agent& agent, const Queue& queue) {
  if (std::exchange(agent.knows_of_no_access, true)) return true;
  return agent.connection.SendReply(
      kXSchedErrorNotAllowed, 0,
      fmt::format("this process has not shown that it can use {}: its queues there run unscheduled",
                  queue.device_name));
}

bool Agents::MayUse(const Agent& agent, XDevice device) {
  const uint64_t before = parts_.device_access.look_ups();
  const bool may_use = parts_.device_access.MayUse(agent.shown, device);
  parts_.work.Charge(agent.connection.peer.uid,
                     (parts_.device_access.look_ups() - before) * WorkBudget::kLookedUp);
  return may_use;
}

// Files that the process has shown already change nothing.
bool Agents::TakeDeviceFiles(Agent& agent, const ipc::Packet& packet, TimePoint now) {
  if (packet.fd_count == 0) return false;
  const uint64_t before = parts_.device_access.look_ups();
  bool any_new = false;
  for (int i = 0; i < packet.fd_count; ++i) {
    const std::optional<dev_t> file = DeviceFileOf(packet.fds[i].get());
    if (file && parts_.device_access.Show(*file, agent.shown)) any_new = true;
  }
  const uint64_t look_ups = parts_.device_access.look_ups() - before;
  parts_.work.Charge(agent.connection.peer.uid,
                     static_cast<uint64_t>(packet.fd_count) + look_ups * WorkBudget::kLookedUp);
  return !any_new || GrantAccess(agent, now);
}

// To the queues on devices that the process can use now.
bool Agents::GrantAccess(Agent& agent, TimePoint now) {
  parts_.work.Charge(agent.connection.peer.uid, agent.queues.size() / WorkBudget::kLookedAtAsOne);
  std::map<XDevice, bool> may_use;  // most queues of an agent are on the same few devices
  for (auto next = agent.queues.begin(); next != agent.queues.end();) {
    Queue& queue = (next++)->second;
    if (queue.has_access) continue;
    const auto [answer, is_first] = may_use.try_emplace(queue.device);
    if (is_first) answer->second = MayUse(agent, queue.device);
    if (answer->second && !GrantAccess(agent, queue, now)) return false;
  }
  return true;
}

// The queue counts from now on, as if it were made now. It may be gone afterwards.
bool Agents::GrantAccess(Agent& agent, Queue& queue, TimePoint now) {
  if (!TenantIsFull(agent)) {
    parts_.queues.GrantAccess(queue, now);
    return TakeHints(agent, queue, queue.hints, {});
  }
  const uint32_t index = queue.index;
  parts_.queues.Forget(queue, now);
  agent.queues.erase(index);
  return RefuseQueueOfTenant(agent, index);
}

// The hints that its program has given to the queue. False: the agent cannot be told that its reservation is
// refused.
bool Agents::TakeHints(Agent& agent, Queue& queue, const sched::Hints& hints, const sched::Hints& before) {
  const bool is_same = sched::HasReservationOf(hints, before);
  const Granted granted = StillGranted(queue.granted, hints, before);
  std::string refusal;
  if (!is_same) {
    parts_.work.Charge(agent.connection.peer.uid,
                       parts_.queues.LookedAtFor(hints) / WorkBudget::kLookedAtAsOne);
    refusal = parts_.queues.RefusalOf(queue, hints);
  }
  if (refusal.empty()) {
    parts_.queues.SetHints(queue, hints, granted);
    return TellOfCorrection(queue);
  }
  sched::Hints kept = hints;
  sched::TakeReservation(kept, before);
  SetHints(queue, kept, granted);
  SendUnsent(agent);
  return agent.connection.SendReply(kXSchedErrorInvalidValue, 0, refusal);
}

// The program is told once how its claims are corrected, and again when that is another correction.
bool Agents::TellOfCorrection(Queue& queue) {
  Agent& agent = *queue.agent;
  std::string correction = CorrectionOf(queue);
  if (correction.empty() || correction == agent.told) return true;
  ++agent.tenant->refused;
  agent.told = std::move(correction);
  return agent.connection.SendReply(kXSchedErrorInvalidValue, 0, agent.told);
}

// The queue runs unscheduled, and the client gets one message with the reason. It may not be this client's
// fault, so the connection stays.
bool Agents::RefuseQueue(Agent& agent, uint32_t index, const std::string& reason) {
  if (agent.tenant != nullptr) ++agent.tenant->refused;
  const bool is_first = agent.refused.none();
  agent.refused.set(index);
  ++refused_queues_;
  return !is_first || agent.connection.SendReply(kXSchedErrorNotAllowed, 0, reason);
}

bool Agents::DestroyQueue(Agent& agent, uint32_t index, TimePoint now) {
  if (index >= ipc::kMaxQueues) return false;
  if (agent.refused[index]) {
    agent.refused.reset(index);
    return true;
  }
  auto found = agent.queues.find(index);
  // It was destroyed while its client was connecting anew.
  if (found == agent.queues.end()) return true;
  parts_.queues.Forget(found->second, now);
  agent.queues.erase(found);
  return true;
}

bool Agents::SetTimeslice(Agent& agent, const ipc::TimesliceHint& message) {
  if (message.timeslice_us < TIMESLICE_MIN || message.timeslice_us > TIMESLICE_MAX) return false;
  // There is one timeslice for all. Only a client that may set the policy may set it.
  if (parts_.access.IsAdmin(agent.connection.peer))
    parts_.scheduler.SetTimeslice(std::chrono::microseconds(message.timeslice_us));
  return true;
}

bool Agents::SetAtATime(Agent& agent, const ipc::KDeadlineHint& message) {
  if (message.at_a_time == 0 || message.at_a_time > sched::kMostAtATime) return false;
  if (parts_.access.IsAdmin(agent.connection.peer)) parts_.scheduler.SetAtATime(message.at_a_time);
  return true;
}

// An agent pings while anything is taken from its process, as its control blocks show. A queue that is held
// by mistake may never ring its doorbell, so its control block is checked here as well.
//
// The agent's buffer may be full because its process was stopped. Then it gets the answer when it has read.
bool Agents::Answer(Agent& agent, const ipc::Ping& ping) {
  parts_.work.Charge(agent.connection.peer.uid, agent.queues.size() / WorkBudget::kLookedAtAsOne);
  parts_.queues.RestoreControls(agent);
  if (!agent.outbox.SendPong(agent.connection, ping.cookie)) return false;
  return agent.outbox.empty() || parts_.connections.Watch(agent.connection, EPOLLIN | EPOLLOUT);
}

// ---- what agents are sent ----

void Agents::SetHints(Queue& queue, const sched::Hints& hints, Granted granted) {
  parts_.queues.SetHints(queue, hints, granted);
  queue.hints_unsent = queue.agent->hints_unsent = true;
}

size_t Agents::SendUnsent(Agent& agent) {
  if (agent.outbox.empty() && !agent.hints_unsent && !agent.configs_unsent && !agent.memory_unsent) return 0;
  size_t sent = 0;
  const bool sent_all = agent.outbox.SendKept(agent.connection) && SendUnsentHints(agent, sent) &&
                        SendUnsentConfigs(agent, sent) && SendMemory(agent);
  if (!parts_.connections.Watch(agent.connection, sent_all ? EPOLLIN : EPOLLIN | EPOLLOUT))
    parts_.connections.Close(agent.connection, "it cannot be watched");
  return sent;
}

// False: there was no room for all of them, or they were too many for this round.
bool Agents::SendUnsentHints(Agent& agent, size_t& sent) {
  if (!agent.hints_unsent) return true;
  for (auto& [index, queue] : agent.queues) {
    if (!queue.hints_unsent) continue;
    if (sent == kMaxHintsPerRound) return false;
    ipc::QueueHints message{};
    message.index = index;
    ipc::SetHintsIn(message, queue.hints);
    message.handle = queue.handle;
    if (!agent.connection.Send(message)) return false;
    queue.hints_unsent = false;
    ++sent;
  }
  agent.hints_unsent = false;
  return true;
}

bool Agents::SetConfig(Queue& queue, const ipc::SetConfig& request) {
  constexpr uint16_t kTakesConfigs = 3;  // this minor and later ones; older agents ignore the message
  if (queue.agent->connection.minor < kTakesConfigs) return false;
  if (!queue.config_unsent) queue.config_unsent.emplace();
  if (request.level != 0) queue.config_unsent->level = request.level;
  if (request.threshold != 0) queue.config_unsent->threshold = request.threshold;
  if (request.batch_size != 0) queue.config_unsent->batch_size = request.batch_size;
  queue.agent->configs_unsent = true;
  return true;
}

bool Agents::SendUnsentConfigs(Agent& agent, size_t& sent) {
  if (!agent.configs_unsent) return true;
  for (auto& [index, queue] : agent.queues) {
    if (!queue.config_unsent) continue;
    if (sent == kMaxHintsPerRound) return false;
    ipc::QueueConfig message{};
    message.index = index;
    message.level = queue.config_unsent->level;
    message.threshold = queue.config_unsent->threshold;
    message.batch_size = queue.config_unsent->batch_size;
    message.handle = queue.handle;
    if (!agent.connection.Send(message)) return false;
    queue.config_unsent.reset();
    ++sent;
  }
  agent.configs_unsent = false;
  return true;
}

bool Agents::SendMemory(Agent& agent) {
  if (!agent.memory_unsent) return true;
  ipc::TenantMemory message{};
  message.slot = agent.memory->number();
  const int memfd = agent.memory->memfd();
  if (!ipc::Send(agent.connection.socket.get(), message, &memfd, 1)) return false;
  agent.memory_unsent = false;
  return true;
}

// ---- decisions ----

TimePoint Agents::Decide(TimePoint now) {
  decided_at_ = now;
  ++decisions_;
  parts_.queues.claims().ApplyChanged(parts_.queues, parts_.work);
  TimePoint next = parts_.scheduler.Decide(now, *this);
  if (parts_.queues.ObserveNewlyTracked(now)) next = parts_.scheduler.Decide(now, *this);
  parts_.wakes.Send(now);
  return next;
}

void Agents::SetControl(sched::QueueId id, const sched::Control& control) {
  parts_.queues.SetControl(id, control);
}

void Agents::Query(sched::QueueId id) { parts_.queues.Query(id); }

// Throws nothing, because a decision cannot stop halfway.
void Agents::SetSlice(sched::ProcessId process, sched::DeviceId device, Duration slice) {
  Agent* agent = Find(static_cast<uint64_t>(process));
  if (agent == nullptr) return;
  if (slice == sched::kNoSlice) turns_until_ = decided_at_ + kTurnsLast;
  bool counts = slice == sched::kNoSlice;
  agent->ForEachOn(static_cast<uint64_t>(device), [&](Queue& queue) {
    if (std::exchange(counts, false)) queue.usage.CountTurn();
    parts_.queues.Touch(queue);
    return true;
  });
  ipc::ProcessSlice message{};
  message.device = static_cast<uint64_t>(device);
  message.slice_us =
      slice == sched::kNoSlice ? ~uint64_t{0} : static_cast<uint64_t>(slice / std::chrono::microseconds(1));
  Connection& connection = agent->connection;
  try {
    if (!agent->outbox.SendSlice(connection, message))
      return parts_.connections.Close(connection, "time slices of too many devices left unread");
  } catch (const std::bad_alloc&) {
    return parts_.connections.Close(connection, "no memory for its time slices");
  }
  if (!agent->outbox.empty() && !parts_.connections.Watch(connection, EPOLLIN | EPOLLOUT))
    parts_.connections.Close(connection, "it cannot be watched");
}

// For recordings only. They look at queues, and read there what their process has. So one queue is touched.
void Agents::SetTurn(sched::ProcessId process, sched::DeviceId device, bool /*has_turn*/) {
  Agent* agent = Find(static_cast<uint64_t>(process));
  if (agent == nullptr) return;
  agent->ForEachOn(static_cast<uint64_t>(device), [&](Queue& queue) {
    parts_.queues.Touch(queue);
    return false;
  });
}

}  // namespace xsched::server
