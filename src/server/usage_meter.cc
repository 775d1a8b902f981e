#include "server/usage_meter.h"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "server/ended_bursts.h"
#include "server/limits.h"

namespace xsched::server {
namespace {

// How much a counter has grown since `counted`, which becomes `now`. A client that writes nonsense may make
// it fall, or grow by more than a device does: that counts as nothing, or as little enough for the sums of
// all.
uint64_t TakeGrowth(uint64_t& counted, uint64_t now) {
  constexpr uint64_t kMost = uint64_t{1} << 32;
  const uint64_t before = std::exchange(counted, now);
  return now > before ? std::min(now - before, kMost) : 0;
}

Duration TakeGrowth(Duration& counted, Duration now) {
  return std::max(now - std::exchange(counted, now), Duration::zero());
}

// Null: time with this reason does not count as waiting.
Duration Usage::*WaitedFor(sched::WaitReason why) {
  switch (why) {
    case sched::WaitReason::kHeld:
      return &Usage::held;
    case sched::WaitReason::kTurn:
      return &Usage::turn;
    case sched::WaitReason::kOffDevice:
      return &Usage::off_device;
    case sched::WaitReason::kLimited:
      return &Usage::limited;
    default:
      return nullptr;
  }
}

// For the account of the user, that of the process, and the tenant.
template <typename Change>
void InAll(const QueueUsage& queue, Change&& change) {
  change(queue.of_user->usage);
  change(queue.of_process->usage);
  if (queue.of_tenant != nullptr) change(*queue.of_tenant);
}

// What is read of a queue at one time, for its requests.
struct Look {
  TimePoint now;
  bool busy;
  bool reports;
  uint64_t retired;
  std::optional<ipc::Bursts> bursts;
};

// Requests that have ended.
struct EndedRequests {
  uint32_t count = 0;
  BurstLengths lengths{};
};

// Those that the client has counted since the last look.
EndedRequests SeeCounted(QueueUsage& counted, const Look& look) {
  EndedBursts ended =
      EndedSince(*counted.bursts, *look.bursts, counted.seen_at, counted.seen_end, look.retired);
  if (ended.count == 0) return {};
  const bool goes_on = std::exchange(counted.goes_on, false);
  const TimePoint since = std::exchange(counted.ready_since, kNever);
  const Duration passed = look.now - counted.seen_at;
  if (!goes_on) return {ended.count, LengthsOf(ended, std::nullopt, passed)};
  if (since != kNever) return {ended.count, LengthsOf(ended, counted.seen_at - since, passed)};
  // Its length is not known.
  const BurstLengths lengths = LengthsOf(ended, std::nullopt, passed);
  return {ended.count - 1, {lengths.other, lengths.other}};
}

// Another one has begun if there is work, or if all has retired again.
void SeeBegun(QueueUsage& counted, const Look& look) {
  const bool any_end = look.bursts->ended != counted.bursts->ended;
  const bool retired = look.retired != counted.retired && (!any_end || look.bursts->goes_on);
  if (counted.goes_on || !(look.busy || retired)) return;
  counted.goes_on = true;
  // A client may not have counted yet that it has begun.
  const bool is_counted = look.bursts->began != counted.bursts->began || (any_end && look.bursts->goes_on);
  counted.ready_since = is_counted ? std::clamp(look.bursts->began, counted.seen_at, look.now) : look.now;
}

// The one that goes on, if all has retired: whoever notices that first has seen its end.
EndedRequests SeeIdle(QueueUsage& counted, const Look& look) {
  if (look.busy || !std::exchange(counted.goes_on, false)) return {};
  counted.seen_end = {true, look.retired};
  const TimePoint since = std::exchange(counted.ready_since, kNever);
  if (since == kNever) return {};
  return {1, {look.now - since, {}}};
}

// The same by the reports alone: one or none.
EndedRequests SeeReported(QueueUsage& counted, const Look& look) {
  const bool has_ended = counted.ready_since != kNever && !look.busy;
  // It began and ended between two looks, which is as good as at once.
  const bool unseen = counted.was_idle && !look.busy && look.retired > counted.retired;
  const Duration took = has_ended ? look.now - counted.ready_since : Duration::zero();
  if (!look.busy) counted.ready_since = kNever;
  if (look.busy && counted.was_idle) counted.ready_since = look.now;
  return {has_ended || unseen ? 1u : 0u, {took, {}}};
}

// REQUIRES: it has accounts, and some have ended.
void AddTo(const QueueUsage& counted, const EndedRequests& ended) noexcept {
  const size_t first = RequestTimes::BucketOf(ended.lengths.first);
  const size_t other = RequestTimes::BucketOf(ended.lengths.other);
  const auto add_to = [&](RequestTimes& times) {
    times.Add(ended.lengths.first, first);
    times.Add(ended.lengths.other, other, ended.count - 1);
  };
  InAll(counted, [&](Usage& usage) { add_to(usage.requests); });
  if (counted.own != nullptr) add_to(*counted.own);
}

}  // namespace

void QueueUsage::CountTurn() const noexcept {
  if (of_user != nullptr) InAll(*this, [](Usage& usage) { ++usage.turns; });
}

void UsageMeter::Add(Queue& queue, const sched::QueueStats& stats) noexcept {
  QueueUsage& counted = queue.usage;
  counted.service = stats.service;
  counted.waiting = stats.waiting;
  counted.commands = stats.retired;
  counted.holds = stats.holds;
  counted.incidents = stats.incidents;
  counted.why = stats.wait_reason;
  counted.retired = stats.retired;
  // A queue that is registered without work begins its first request when it is seen with work.
  counted.was_idle = stats.submitted == stats.retired;
}

void UsageMeter::Open(Queue& queue) noexcept {
  queue.usage.priority = queue.hints.priority;
  queue.usage.of_tenant = queue.agent->tenant == nullptr ? nullptr : &queue.agent->tenant->used;
  queue.usage.of_user =
      &Of(queue.agent->connection.peer.uid).At(queue.device, queue.hints.priority, queue.device_name);
  queue.usage.of_process = &queue.agent->accounts.At(queue.device, queue.hints.priority, queue.device_name);
}

Accounts& UsageMeter::Of(uid_t user) noexcept try {
  const auto found = users_.find(user);
  if (found != users_.end()) return found->second;
  if (users_.size() >= kMaxUsersWithAccounts || user == kOtherUsers) return others_;
  return users_.try_emplace(user, kMaxAccountsOfUser).first->second;
} catch (const std::bad_alloc&) {
  return others_;
}

void UsageMeter::See(Queue& queue, const sched::QueueStats& stats, TimePoint now) noexcept {
  const bool has_work = stats.submitted > stats.retired || stats.retired != queue.usage.retired;
  if (queue.usage.of_user == nullptr && has_work) Open(queue);
  SeeRequest(queue, stats, now);
  if (queue.usage.of_user == nullptr) return;
  if (stats.wait_reason != queue.usage.why) Settle(queue, stats);
  if (queue.hints.priority == queue.usage.priority) return;
  // What it had so far was with the former priority, because it is seen in the round that changed it.
  Settle(queue, stats);
  Open(queue);
}

// Only a queue that reports is known to become ready and idle at once.
void UsageMeter::SeeRequest(Queue& queue, const sched::QueueStats& stats, TimePoint now) noexcept {
  QueueUsage& counted = queue.usage;
  const auto add = [&](const EndedRequests& ended) {
    // A client may count bursts of a queue that never had work.
    if (ended.count == 0 || counted.of_user == nullptr) return;
    if (TimesOf(queue) == nullptr) requests_without_queue_ += ended.count;
    AddTo(counted, ended);
  };
  const Look look{.now = now,
                  .busy = stats.submitted > stats.retired,
                  .reports = queue.words.tracked() || queue.words.held(),
                  .retired = stats.retired,
                  .bursts = queue.CountedBursts()};
  if (!look.reports || !counted.reported) {
    counted.ready_since = kNever;
    counted.goes_on = look.busy;
    counted.seen_end = {!look.busy && look.bursts && look.bursts->goes_on, look.retired};
  } else if (look.bursts && counted.bursts) {
    add(SeeCounted(counted, look));
    SeeBegun(counted, look);
    add(SeeIdle(counted, look));
  } else {
    add(SeeReported(counted, look));
  }
  counted.was_idle = !look.busy;
  counted.retired = look.retired;
  counted.reported = look.reports;
  counted.bursts = look.bursts;
  counted.seen_at = now;
}

// It gets them with its first request, because most queues of a program that is alone never report one.
RequestTimes* UsageMeter::TimesOf(Queue& queue) noexcept {
  RequestTimes*& own = queue.usage.own;
  if (own == nullptr) own = times_.Add(queue.id, queue.agent->connection.peer.uid);
  return own;
}

void UsageMeter::Remove(Queue& queue, const sched::QueueStats& stats) noexcept {
  Settle(queue, stats);
  if (queue.usage.own == nullptr) return;
  queue.usage.own = nullptr;
  times_.Remove(queue.id);
}

void UsageMeter::Settle(Queue& queue, const sched::QueueStats& stats) noexcept {
  QueueUsage& counted = queue.usage;
  if (counted.of_user == nullptr) return;
  const Duration service = TakeGrowth(counted.service, stats.service);
  const Duration waited = TakeGrowth(counted.waiting, stats.waiting);
  const uint64_t commands = TakeGrowth(counted.commands, stats.retired);
  const uint64_t holds = TakeGrowth(counted.holds, stats.holds);
  const uint64_t incidents = TakeGrowth(counted.incidents, stats.incidents);
  // It waited for the reason that it had until now. If it had none, it began to wait in this round.
  Duration Usage::*waited_for = WaitedFor(std::exchange(counted.why, stats.wait_reason));
  if (waited_for == nullptr) waited_for = WaitedFor(stats.wait_reason);
  if (waited_for == nullptr) waited_for = &Usage::held;
  InAll(counted, [&](Usage& usage) {
    usage.service += service;
    usage.*waited_for += waited;
    usage.commands += commands;
    usage.holds += holds;
    usage.incidents += incidents;
  });
}

UsageMeter::Position UsageMeter::After(const Position* from) const {
  const bool in_users = from == nullptr || from->uid != kOtherUsers;
  if (in_users) {
    auto user = from == nullptr ? users_.begin() : users_.lower_bound(from->uid);
    for (const UsageKey* key = from == nullptr ? nullptr : &from->entry.key; user != users_.end(); ++user) {
      if (from == nullptr || user->first != from->uid) key = nullptr;
      if (const Accounts::Entry entry = user->second.After(key); entry.account != nullptr)
        return {user->first, entry};
    }
  }
  return {kOtherUsers, others_.After(in_users ? nullptr : &from->entry.key)};
}

UsageMeter::Position UsageMeter::Before(uid_t user) {
  const UsageKey first{.device = 0, .priority = std::numeric_limits<Priority>::min()};
  return {user, {first, nullptr}};
}

}  // namespace xsched::server
