#include "server/queues.h"

#include <fmt/format.h>

#include <atomic>
#include <utility>

#include "ipc/hints.h"
#include "sched/core/reservation.h"
#include "server/clean_text.h"

namespace xsched::server {
namespace {

ipc::SchedulerWords WordsFor(const Queue& queue, const sched::Control& control) {
  ipc::SchedulerWords words = ipc::WordsOf(control);
  // Reports alone do not tell one burst from two, if the second one has begun before the first one's end is
  // read.
  if (queue.recorded || (words.scheduled() && queue.CountsReported())) words.flags |= ipc::kFlagCounted;
  return words;
}

}  // namespace

void Queues::Add(Agent& agent, const ipc::QueueCreated& message, bool has_access, TimePoint now) {
  // Allocate first: if memory runs out, nothing may be half done, and a decision cannot stop halfway.
  newly_tracked_.reserve(queues_.size() + 1);
  Queue queue{};
  queue.id = sched::QueueId{next_id_++};
  ipc::KeepIn(queue, message);
  queue.device_name = CleanText(message.device_name, sizeof message.device_name);
  queue.agent = &agent;
  queue.hints = ipc::HintsIn(message, sched::Hints{});
  queue.has_access = has_access;
  Queue& stored = agent.queues.emplace(message.index, std::move(queue)).first->second;
  agent.by_device.emplace(std::pair(stored.device, stored.index), &stored);
  quotas_.AddQueue(agent.connection.peer.uid, message.device);
  queues_.emplace(static_cast<uint64_t>(stored.id), &stored);
  if (has_access) Schedule(stored, now);
  Observe(stored, now);
  if (watcher_ != nullptr) watcher_->Added(stored, now);
}

void Queues::Schedule(Queue& queue, TimePoint now) {
  const sched::QueueTraits traits = {
      .sliceable = queue.level == kPreemptLevelInterrupt && (queue.traits & ipc::kTraitTimeSlices) != 0,
      .runs_beside_others = (queue.traits & ipc::kTraitRunsBesideOthers) != 0,
      .reports_overruns = (queue.traits & ipc::kTraitReportsOverruns) != 0};
  claims_.Add(queue);
  scheduler_.AddQueue(queue.id, queue.agent->process(), sched::DeviceId{queue.device}, CountedHints(queue),
                      now, traits);
  scheduler_.SetFacts(queue.id, queue.agent->facts);
  RefreshAbsent(queue, now);
}

void Queues::GrantAccess(Queue& queue, TimePoint now) {
  newly_tracked_.reserve(queues_.size() + 1);
  queue.has_access = true;
  Schedule(queue, now);
  Observe(queue, now);
  if (watcher_ != nullptr) watcher_->Added(queue, now);
}

void Queues::Forget(Queue& queue, TimePoint now) {
  if (watcher_ != nullptr) watcher_->Gone(queue, now);
  held_ -= queue.words.held();
  queue.agent->by_device.erase({queue.device, queue.index});
  quotas_.RemoveQueue(queue.agent->connection.peer.uid, queue.device);
  claims_.Remove(queue);
  scheduler_.RemoveQueue(queue.id, now);
  queues_.erase(static_cast<uint64_t>(queue.id));
}

std::string Queues::RefusalOf(const Queue& queue, const sched::Hints& hints) const {
  // It takes nothing of the device.
  if (!queue.has_access || sched::GuaranteeOf(hints) == 0) return "";
  constexpr double kRounding = 1e-9;
  const double all =
      scheduler_.GuaranteedWith(queue.id, queue.agent->process(), sched::DeviceId{queue.device}, hints);
  if (all <= 1 + kRounding) return "";
  return fmt::format("the guarantees on {} would be {:.1f} % of it: the reservation stays as it was",
                     queue.device_name, all * 100);
}

size_t Queues::LookedAtFor(const sched::Hints& hints) const {
  return sched::GuaranteeOf(hints) == 0 ? 0 : queues_.size();
}

void Queues::SetHints(Queue& queue, const sched::Hints& hints, Granted granted) {
  claims_.Remove(queue);
  queue.hints = hints;
  queue.granted = granted;
  claims_.Add(queue);
  claims_.Apply(queue);
  Touch(queue);
}

void Queues::SetFacts(Agent& agent, const sched::ProcessFacts& facts) {
  agent.facts = facts;
  for (const auto& [index, queue] : agent.queues) scheduler_.SetFacts(queue.id, facts);
}

Queue* Queues::Find(sched::QueueId id) {
  auto found = queues_.find(static_cast<uint64_t>(id));
  return found == queues_.end() ? nullptr : found->second;
}

const Queue* Queues::Find(sched::QueueId id) const {
  auto found = queues_.find(static_cast<uint64_t>(id));
  return found == queues_.end() ? nullptr : found->second;
}

size_t Queues::ReadDoorbell(Agent& agent, TimePoint now) {
  size_t count = 0;
  ipc::ForEachDirty(*agent.segment.get(), [&](uint32_t index) {
    auto found = agent.queues.find(index);
    if (found == agent.queues.end()) return;
    ++count;
    Observe(found->second, now);
  });
  state_changes_ += count;
  return count;
}

void Queues::Observe(Queue& queue, TimePoint now) {
  const Agent& agent = *queue.agent;
  const ipc::Segment& segment = *agent.segment.get();
  // Bursts first: one that has ended has retired its commands.
  queue.bursts = ipc::ReadBursts(segment.blocks[queue.index]);
  const ipc::Progress progress = ipc::ReadProgress(segment.blocks[queue.index]);
  scheduler_.Moved(queue.id, progress.moved, now);
  scheduler_.Progress(queue.id, progress.submitted, progress.retired, now);
  scheduler_.Drained(queue.id, progress.drained, now);
  scheduler_.FoundIdle(queue.id, progress.found_idle, now);
  queue.submitted = progress.submitted;
  queue.retired = progress.retired;
  RestoreControl(queue);

  sched::Dependency dependencies[ipc::kMaxDependencies];
  size_t count = 0;
  ipc::ForEachWait(segment, queue.index, [&](const ipc::Wait& wait) {
    auto owner = agent.queues.find(wait.queue);
    if (owner != agent.queues.end() && ipc::MeansQueue(wait, owner->second.handle))
      dependencies[count++] = {owner->second.id, wait.until};
  });
  if (count != 0 || queue.has_dependencies) scheduler_.SetDependencies(queue.id, {dependencies, count});
  queue.has_dependencies = count != 0;
  Touch(queue);
}

bool Queues::IsStillIdle(const Queue& queue) {
  const ipc::Progress progress = ipc::ReadProgress(queue.block());
  return progress.submitted == queue.submitted && progress.retired == queue.retired &&
         progress.submitted == progress.retired;
}

// Another server may have written into the block: one that hung, and continued after its clients had left it.
// That must not hold a queue forever. But after a client has left us, its blocks are no longer ours.
void Queues::RestoreControl(Queue& queue) {
  ipc::ControlBlock& block = queue.block();
  if (ipc::HasWords(block, queue.words) || queue.agent->connection.HasLeft()) return;
  ipc::WriteWords(block, queue.words);
  wakes_.Add(*queue.agent);
}

void Queues::RestoreControls(Agent& agent) {
  for (auto& [index, queue] : agent.queues) RestoreControl(queue);
}

// A queue that became ready before it was tracked has not rung the doorbell.
bool Queues::ObserveNewlyTracked(TimePoint now) {
  if (newly_tracked_.empty()) return false;
  // Either the client sees the flag that we have just set, or we see what it submitted before it read the
  // flag.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (sched::QueueId id : newly_tracked_) {
    if (Queue* queue = Find(id)) Observe(*queue, now);
  }
  newly_tracked_.clear();
  return true;
}

void Queues::RefreshAbsent(const Queue& queue, TimePoint now) {
  const bool absent = queue.absent || !queue.agent->liveness.running();
  scheduler_.SetAbsent(queue.id, absent, now);
}

void Queues::RefreshAbsent(const Agent& agent, TimePoint now) {
  for (auto& [index, queue] : agent.queues) RefreshAbsent(queue, now);
}

void Queues::SetControl(sched::QueueId id, const sched::Control& control) {
  Queue* queue = Find(id);
  if (queue == nullptr) return;
  Agent& agent = *queue->agent;
  const ipc::SchedulerWords words = WordsFor(*queue, control);
  // The client may have changed its block. Compare with what we wrote last.
  const ipc::SchedulerWords former = std::exchange(queue->words, words);
  ipc::WriteWords(queue->block(), words, [&] {
    // A sleeping agent does not check whether the server lives. So it is woken before the first hold: the
    // server may hang right after that (docs/model.md).
    if (!former.scheduled() && words.scheduled()) agent.connection.Send(ipc::Wake{});
  });
  held_ += words.held();
  held_ -= former.held();
  // Closing a gate at level 1 needs no agent: the next launch or the next gate sees it.
  const bool agent_acts =
      (queue->traits & ipc::kTraitDeviceGates) == 0 &&
      (control.run || words.flags != former.flags || queue->level >= kPreemptLevelDeactivate);
  if (agent_acts) wakes_.Add(agent);
  if (words.tracked() && !former.tracked()) newly_tracked_.push_back(id);
  Touch(*queue);
}

void Queues::SetRecorded(Queue& queue, bool recorded) {
  queue.recorded = recorded;
  SetControl(queue.id, scheduler_.GetControl(queue.id));
}

void Queues::Query(sched::QueueId id) {
  Queue* queue = Find(id);
  if (queue == nullptr) return;
  ipc::AskProgress(queue->block());
  RestoreControl(*queue);
  wakes_.Add(*queue->agent);
}

void Queues::OpenAllGates() {
  ForEach([](const Queue& queue) { ipc::WriteWords(queue.block(), ipc::kOpenWords); });
}

}  // namespace xsched::server
