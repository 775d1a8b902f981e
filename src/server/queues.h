// The queues of all agents: passes their progress from the control blocks to the scheduler, and its decisions
// back. It knows no message except the one that describes a new queue, and decides nothing.
//
//   doorbell -> counters from the client's segment -> sched::Scheduler
//   sched::Scheduler -> gate and flags in the client's segment; a wake if its agent must act
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "ipc/messages.h"
#include "sched/core/scheduler.h"
#include "server/agent.h"
#include "server/quotas.h"
#include "server/tenants/priority_claims.h"
#include "server/wakes.h"

namespace xsched::server {

// Is notified of what becomes of queues. Throws nothing: a decision cannot stop halfway.
class QueueWatcher {
 public:
  virtual void Added(Queue& queue, TimePoint now) noexcept = 0;
  // Something of the queue may have changed.
  virtual void Touched(Queue& queue) noexcept = 0;
  // The queue is about to be forgotten.
  virtual void Gone(Queue& queue, TimePoint now) noexcept = 0;

 protected:
  ~QueueWatcher() = default;
};

class Queues {
 public:
  Queues(sched::Scheduler& scheduler, Quotas& quotas, Wakes& wakes)
      : scheduler_(scheduler), quotas_(quotas), wakes_(wakes), claims_(scheduler) {}

  // Registers a queue: with the scheduler as well if its process has access to its device. Without it, the
  // queue is only shown. REQUIRES: the agent has no queue with this index, its user may have one more
  // (Quotas), and the message is valid.
  void Add(Agent& agent, const ipc::QueueCreated& message, bool has_access, TimePoint now);
  // The queue's process has access now. REQUIRES: it had not.
  void GrantAccess(Queue& queue, TimePoint now);
  // Forgets the queue. Its control block stays as it is. The caller must remove the queue from its agent.
  void Forget(Queue& queue, TimePoint now);
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

  // Observes the queues that the agent has rung for. Returns how many there are.
  size_t ReadDoorbell(Agent& agent, TimePoint now);
  // Reads the queue's counters and reports them to the scheduler.
  void Observe(Queue& queue, TimePoint now);
  // True if the queue has no unfinished work, and that is known: Observe would find nothing new.
  static bool IsStillIdle(const Queue& queue);
  // Observes the queues that became tracked in the last decision. True: there were some, so decide again.
  bool ObserveNewlyTracked(TimePoint now);
  // Reports to the scheduler whether the queue is absent: its program has suspended it, or its process cannot
  // run.
  void RefreshAbsent(const Queue& queue, TimePoint now);
  void RefreshAbsent(const Agent& agent, TimePoint now);
  // Why the queue cannot have the reservation in these hints; "": it can, or it does not count. Its process
  // would be guaranteed more of the device than the others leave.
  std::string RefusalOf(const Queue& queue, const sched::Hints& hints) const;
  // How many queues that looks at, at most.
  size_t LookedAtFor(const sched::Hints& hints) const;
  void SetHints(Queue& queue, const sched::Hints& hints, Granted granted);
  PriorityClaims& claims() { return claims_; }
  // Reports to the scheduler what is known of the agent's process.
  void SetFacts(Agent& agent, const sched::ProcessFacts& facts);

  // ---- what the scheduler decided: see sched::ControlSink ----

  void SetControl(sched::QueueId id, const sched::Control& control);
  void Query(sched::QueueId id);
  // Writes the decisions on this agent's queues again if its blocks say something else.
  void RestoreControls(Agent& agent);
  // Opens every gate. The clients would do this when they notice that the server has gone, but later.
  void OpenAllGates();

  // ---- recordings ----

  // Null: nobody watches.
  void SetWatcher(QueueWatcher* watcher) { watcher_ = watcher; }
  // A recorded queue reports when it becomes ready and idle, although nobody may wait for it. REQUIRES:
  // ObserveNewlyTracked afterwards.
  void SetRecorded(Queue& queue, bool recorded);
  void Touch(Queue& queue) noexcept {
    if (watcher_ != nullptr) watcher_->Touched(queue);
  }

  bool any_held() const { return held_ != 0; }
  uint64_t state_changes() const { return state_changes_; }

 private:
  // The queue counts from now on.
  void Schedule(Queue& queue, TimePoint now);
  void RestoreControl(Queue& queue);

  sched::Scheduler& scheduler_;
  Quotas& quotas_;
  Wakes& wakes_;
  PriorityClaims claims_;
  std::unordered_map<uint64_t, Queue*> queues_;  // by QueueId
  uint64_t next_id_ = 1;
  size_t held_ = 0;  // queues whose gate is closed
  std::vector<sched::QueueId> newly_tracked_;
  QueueWatcher* watcher_ = nullptr;
  uint64_t state_changes_ = 0;
};

}  // namespace xsched::server
