// The queues of all agents: carries their progress from the control blocks to the scheduler, and its
// decisions back. It knows no messages but what a new queue is described with, and decides nothing itself.
//
//   doorbell -> counters from the client's segment -> sched::Scheduler
//   sched::Scheduler -> gate and flags in the client's segment, a wake where its agent must act
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "ipc/messages.h"
#include "sched/core/scheduler.h"
#include "server/agent.h"
#include "server/quotas.h"
#include "server/wakes.h"

namespace xsched::server {

class Queues {
 public:
  Queues(sched::Scheduler& scheduler, Quotas& quotas, Wakes& wakes)
      : scheduler_(scheduler), quotas_(quotas), wakes_(wakes) {}

  // Registers a queue with the scheduler. REQUIRES: the agent has none with this index, its user may have one
  // more (Quotas), and the message is valid.
  void Add(Agent& agent, const ipc::QueueCreated& message, TimePoint now);
  // The queue is unknown from now on. What stands in its control block stays. Its agent must remove it.
  void Forget(const Queue& queue, TimePoint now);
  // Null: it is gone.
  Queue* Find(sched::QueueId id);
  const Queue* Find(sched::QueueId id) const;
  size_t size() const { return queues_.size(); }
  // `visit(queue)` for each.
  template <typename Visit>
  void ForEach(Visit&& visit) const {
    for (auto& [id, queue] : queues_) visit(*queue);
  }

  // ---- what clients did ----

  // Observes the queues that the agent has rung for.
  void ReadDoorbell(Agent& agent, TimePoint now);
  // Reads the queue's control block and tells the scheduler what it says.
  void Observe(Queue& queue, TimePoint now);
  // True: new queues have become tracked in the last decision. They have been observed, and may change it.
  bool ObserveNewlyTracked(TimePoint now);
  // Tells the scheduler whether the queue makes others wait: not if its program has suspended it, and not if
  // its process cannot run.
  void RefreshAbsent(const Queue& queue, TimePoint now);
  void RefreshAbsent(const Agent& agent, TimePoint now);

  // ---- what the scheduler decided: see sched::ControlSink ----

  void SetControl(sched::QueueId id, const sched::Control& control);
  void Query(sched::QueueId id);
  // Opens every gate. The clients would do so themselves when they find us gone: this is sooner.
  void OpenAllGates();

  bool any_held() const { return held_ != 0; }
  uint64_t state_changes() const { return state_changes_; }

 private:
  void RestoreControl(Queue& queue);

  sched::Scheduler& scheduler_;
  Quotas& quotas_;
  Wakes& wakes_;
  std::unordered_map<uint64_t, Queue*> queues_;  // by QueueId
  uint64_t next_id_ = 1;
  size_t held_ = 0;  // queues whose gate is closed
  std::vector<sched::QueueId> newly_tracked_;
  uint64_t state_changes_ = 0;
};

}  // namespace xsched::server
