#include "server/process_watch.h"

#include <algorithm>
#include <utility>

#include "server/limits.h"

namespace xsched::server {
namespace {

// Work, in what one process takes: so many queues of it.
constexpr size_t kQueuesAsOne = 16;

}  // namespace

void ProcessWatch::HeardFrom(Agent& agent, TimePoint now) {
  if (agent.liveness.HeardFrom(now)) queues_.RefreshAbsent(agent, now);
}

TimePoint ProcessWatch::NextCheck(TimePoint now) {
  // While a check goes on, it is not known yet whether all are running: one that is not may be unchecked.
  const bool all_known_to_run = all_running_ && unchecked_.empty();
  if (!queues_.any_held() && all_known_to_run && now >= agents_.turns_until()) {
    check_at_ = kNever;
  } else if (check_at_ == kNever) {
    check_at_ = now + kCheckEvery;
  }
  return check_at_;
}

void ProcessWatch::Check(TimePoint now) {
  if (now < check_at_) return;
  check_at_ = now + kCheckEvery;
  if (unchecked_.empty()) {
    all_running_ = true;
    agents_.ForEach([&](const Agent& agent) { unchecked_.push_back(agent.id()); });
  }
  for (size_t work = 0; work < kMaxCheckedPerRound && !unchecked_.empty(); ++work) {
    Agent* agent = agents_.Find(unchecked_.back());
    unchecked_.pop_back();
    if (agent == nullptr) continue;
    work += agent->queues.size() / kQueuesAsOne;
    if (!agent->liveness.running() || MayHoldOthers(*agent, now)) Check(*agent, now);
    all_running_ = all_running_ && agent->liveness.running();
  }
  if (!unchecked_.empty()) check_at_ = now;
}

void ProcessWatch::Check(Agent& agent, TimePoint now) {
  Liveness::Signs signs{};
  signs.stopped = is_stopped_(agent.connection.peer.pid);
  signs.has_read_all = agent.connection.HasReadAll();
  signs.has_progressed = HasProgressed(agent, now);
  const Liveness::Verdict verdict = agent.liveness.Check(signs, now);
  if (verdict.must_ask) wakes_.Add(agent);
  check_at_ = std::min(check_at_, verdict.check_at);
  if (verdict.changed) queues_.RefreshAbsent(agent, now);
}

// True if the agent has new commands since its queues were last read. Most queues of a program are idle, and
// to pass on what is known would take most of the time of a check.
bool ProcessWatch::HasProgressed(Agent& agent, TimePoint now) {
  bool progressed = false;
  for (auto& [index, queue] : agent.queues) {
    if (Queues::IsStillIdle(queue)) continue;
    const uint64_t former = queue.submitted;
    queues_.Observe(queue, now);
    progressed = progressed || queue.submitted != former;
  }
  return progressed;
}

// True if a queue of this process, which gave no sign of life for a while, may hold another one.
bool ProcessWatch::MayHoldOthers(const Agent& agent, TimePoint now) const {
  if (agent.liveness.IsPresumedAlive(now)) return false;
  return std::any_of(agent.queues.begin(), agent.queues.end(), [&](const auto& entry) {
    auto stats = scheduler_.Stats(entry.second.id, now);
    return stats && stats->state != sched::QueueState::kIdle && stats->control.run;
  });
}

}  // namespace xsched::server
