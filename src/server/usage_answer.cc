#include "server/usage_answer.h"

#include <algorithm>
#include <map>
#include <set>

#include "ipc/control_access.h"
#include "sched/core/reservation.h"
#include "server/limits.h"

namespace xsched::server {
namespace {

constexpr uint16_t kKnowsTenants = 7;  // tools of this minor of the protocol and of later ones

void PutCounts(const RequestTimes& times, uint64_t (&counts)[std::size(decltype(RequestTimes::counts){})]) {
  std::copy(times.counts.begin(), times.counts.end(), counts);
}

ipc::Usage MessageOf(const UsageKey& key, const Account& account, uid_t uid) {
  ipc::Usage message = ipc::UsageFrom(key, account.usage);
  message.uid = uid;
  PutCounts(account.usage.requests, message.requests);
  ipc::SetText(message.device_name, account.device_name);
  return message;
}

}  // namespace

UsageAnswer::UsageAnswer(const Parts& parts, Connection& tool, bool with_queues)
    : parts_(parts), reader_(tool.peer), with_queues_(with_queues) {
  const std::set<const Tenant*> tenants = TenantsOf(tool);
  parts_.agents.ForEach([&](const Agent& agent) {
    if (MaySee(agent) || tenants.contains(agent.tenant)) agents_.push_back(agent.id());
  });
  std::sort(agents_.rbegin(), agents_.rend());
  parts_.work.Charge(reader_.uid, parts_.agents.size() / WorkBudget::kLookedAtAsOne);
}

Sent UsageAnswer::Send(Connection& tool, TimePoint now) {
  read_ = 0;
  for (size_t sent = 0; sent < kMaxAccountsPerRound;) {
    if (unsent_.empty()) {
      if (!next_queue_ && read_ >= kMaxAccountsPerRound) break;
      if (next_ == Part::kReply) return tool.SendPart(ipc::ReplyFrom(kXSchedSuccess, sent_, ""));
      PrepareNext(tool, now);
      continue;
    }
    parts_.work.Charge(reader_.uid, WorkBudget::kSent);
    const Sent outcome = tool.SendPart(unsent_.front());
    if (outcome != Sent::kAll) return outcome;
    ++sent;
    ++sent_;
    unsent_.pop_front();
  }
  return Sent::kRestLater;
}

void UsageAnswer::PrepareNext(Connection& tool, TimePoint now) {
  switch (next_) {
    case Part::kProcesses:
      if (PrepareQueue()) return;
      if (agents_.empty()) {
        next_ = Part::kUsers;
      } else {
        ReadNextAgent(now);
      }
      return;
    case Part::kUsers:
      if (!PrepareOfUser()) next_ = Part::kTenants;
      return;
    case Part::kTenants:
      if (!PrepareTenants(tool)) next_ = Part::kReply;
      return;
    case Part::kReply:
      return;
  }
}

void UsageAnswer::ReadNextAgent(TimePoint now) {
  Agent* agent = FindOpen(agents_.back());
  agents_.pop_back();
  CountRead(agent == nullptr ? 0 : agent->queues.size());
  if (agent == nullptr) return;
  if (MaySee(*agent)) {
    Describe(*agent, now);
    if (with_queues_) next_queue_ = {agent->id(), 0};
    return;
  }
  for (auto& [index, queue] : agent->queues) BringUpToDate(queue, now);
}

Agent* UsageAnswer::FindOpen(uint64_t id) const {
  Agent* agent = parts_.agents.Find(id);
  return agent == nullptr || agent->connection.closed ? nullptr : agent;
}

bool UsageAnswer::MaySee(const Agent& agent) const {
  return parts_.access.MayTouch(reader_, agent.connection.peer.uid);
}

// The reader's own, and those that the user's processes are of.
std::set<const Tenant*> UsageAnswer::TenantsOf(Connection& tool) {
  if (tool.minor < kKnowsTenants) return {};
  parts_.work.Charge(reader_.uid, parts_.agents.size() / WorkBudget::kLookedAtAsOne);
  std::set<const Tenant*> tenants = {&parts_.tenants.Of(tool)};
  parts_.agents.ForEach([&](const Agent& agent) {
    if (agent.connection.peer.uid == reader_.uid) tenants.insert(agent.tenant);
  });
  return tenants;
}

// All of them for administrators. There may be many, so some at a time.
bool UsageAnswer::PrepareTenants(Connection& tool) {
  if (tool.minor < kKnowsTenants) return false;
  parts_.work.Charge(reader_.uid, parts_.tenants.size() / WorkBudget::kLookedAtAsOne);
  const std::set<const Tenant*> visible = TenantsOf(tool);
  parts_.tenants.ForEach([&](const Tenant& tenant) {
    if (unsent_.size() == kMaxAccountsPerRound || tenant.name <= last_tenant_) return;
    if (!parts_.access.IsAdmin(reader_) && !visible.contains(&tenant)) return;
    last_tenant_ = tenant.name;
    ipc::Tenant message = ipc::TenantFrom(tenant);
    sched::TakeReservation(message, tenant.rights.share);
    if (const auto account = tenant.memory.lock()) message.memory_used = account->MostUsed();
    unsent_.emplace_back(message);
  });
  return !unsent_.empty();
}

void UsageAnswer::Describe(Agent& agent, TimePoint now) {
  std::map<const Account*, ipc::Usage> accounts;
  for (auto& [index, queue] : agent.queues) {
    if (queue.usage.of_user == nullptr) parts_.usage.Open(queue);
    const sched::QueueStats stats = BringUpToDate(queue, now);
    CountQueue(accounts[queue.usage.of_process], queue, stats, now);
  }
  std::set<uint64_t> devices;  // whose memory is in an account already
  agent.accounts.ForEach([&](const UsageKey& key, const Account& account) {
    const ipc::Usage now_has = accounts[&account];
    auto& message =
        std::get<ipc::Usage>(unsent_.emplace_back(MessageOf(key, account, agent.connection.peer.uid)));
    message.client_id = agent.id();
    message.pid = agent.connection.peer.pid;
    ipc::SetText(message.name, agent.connection.name);
    message.idle = now_has.idle;
    message.running = now_has.running;
    message.held = now_has.held;
    message.stalled = now_has.stalled;
    message.absent = now_has.absent;
    message.longest_wait_ns = now_has.longest_wait_ns;
    if (key.is_last() || !devices.insert(message.device).second) return;
    const ipc::MemoryWords memory = ipc::ReadMemory(*agent.segment.get(), message.device);
    message.memory_used = memory.used;
    message.memory_limit = memory.limit;
  });
}

sched::QueueStats UsageAnswer::BringUpToDate(Queue& queue, TimePoint now) {
  // Reads progress for which the client has not rung.
  parts_.queues.Observe(queue, now);
  const auto stats = parts_.scheduler.Stats(queue.id, now).value_or(sched::QueueStats{});
  UsageMeter::Settle(queue, stats);
  return stats;
}

void UsageAnswer::CountRead(size_t queues) {
  const size_t read = std::max<size_t>(queues, 1);
  read_ += read;
  parts_.work.Charge(reader_.uid, read);
}

// One at a time, because a process may have many queues.
bool UsageAnswer::PrepareQueue() {
  if (!next_queue_) return false;
  const Agent* agent = FindOpen(next_queue_->agent);
  if (agent == nullptr || !PrepareQueueFrom(*agent)) next_queue_.reset();
  return next_queue_.has_value();
}

bool UsageAnswer::PrepareQueueFrom(const Agent& agent) {
  const auto& queues = agent.queues;
  const auto found = std::find_if(queues.lower_bound(next_queue_->index), queues.end(),
                                  [](const auto& entry) { return entry.second.usage.own != nullptr; });
  if (found == queues.end()) return false;
  const auto& [index, queue] = *found;
  next_queue_->index = index + 1;
  ipc::QueueRequests message = ipc::QueueRequestsFrom(queue, agent.connection, *queue.usage.own);
  PutCounts(*queue.usage.own, message.requests);
  unsent_.emplace_back(message);
  return true;
}

void UsageAnswer::CountQueue(ipc::Usage& account, const Queue& queue, const sched::QueueStats& stats,
                             TimePoint now) {
  if (queue.absent || !queue.has_access || !queue.agent->liveness.running()) {
    ++account.absent;
    return;
  }
  if (stats.wait_reason != sched::WaitReason::kNone && stats.wait_reason != sched::WaitReason::kStalled) {
    const auto waited = static_cast<uint64_t>(std::max(now - stats.waiting_since, Duration::zero()).count());
    account.longest_wait_ns = std::max(account.longest_wait_ns, waited);
  }
  if (stats.stalled) {
    ++account.stalled;
  } else if (stats.state == sched::QueueState::kIdle) {
    ++account.idle;
  } else {
    ++(stats.control.run ? account.running : account.held);
  }
}

// A user who is not an administrator gets the own accounts only, and so the others are not searched.
bool UsageAnswer::PrepareOfUser() {
  if (!last_ && !parts_.access.IsAdmin(reader_)) last_ = UsageMeter::Before(reader_.uid);
  last_ = parts_.usage.After(last_ ? &*last_ : nullptr);
  if (last_->entry.account == nullptr || !parts_.access.MayTouch(reader_, last_->uid)) return false;
  unsent_.emplace_back(MessageOf(last_->entry.key, *last_->entry.account, last_->uid));
  return true;
}

}  // namespace xsched::server
