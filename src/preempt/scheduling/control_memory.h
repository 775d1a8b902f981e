// What the process shares with its scheduler: the segment with the control blocks of its queues, and two
// bells (eventfds). One wakes the scheduler, the other one the agent.
//
// The program may close descriptors that it does not know, and open files of its own in their place. So each
// use checks first that the descriptor is still ours. If not, all of them count as lost: every gate opens,
// and the process runs unscheduled until its end.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/guarded_fd.h"
#include "base/result.h"
#include "ipc/control_access.h"
#include "ipc/segment.h"
#include "preempt/queue/xqueue_table.h"

namespace xsched::preempt {

class ControlMemory {
 public:
  constexpr ControlMemory(const XQueueTable& queues, ProcessState& state) : queues_(queues), state_(state) {}

  // Not thread-safe. REQUIRES: not created.
  Result<> Create();
  bool created() const { return segment_.load(std::memory_order_acquire) != nullptr; }
  // In a forked child, whose launches must not count in the parent's control blocks.
  void ForgetAfterFork();

  // ---- REQUIRES for what follows, unless it says otherwise: created ----
  ipc::Segment& segment() const { return *segment_.load(std::memory_order_acquire); }
  // The mapping that holds the control blocks.
  SharedMemory blocks() const { return {&segment(), ipc::kSegmentSize}; }
  int memfd() const { return memfd_.get(); }
  int scheduler_bell() const { return scheduler_bell_fd_.get(); }
  // -1: it is not ours any more. Another file with its number may be ready all the time.
  int agent_bell() const { return agent_bell_fd_.Intact() ? agent_bell_fd_.get() : -1; }
  // Which thread the scheduler runs on.
  enum class Scheduler { kServers, kAgents };
  void UseBellOf(Scheduler scheduler);

  // The control block of queue slot `index`, reset for a new queue.
  ipc::ControlBlock* ResetBlock(uint32_t index);
  // Opens every gate and clears every flag, wherever they are not open and clear.
  void OpenControls();
  // True if something is taken from a queue with work. The next launch on a queue without work notifies the
  // agent.
  bool AnythingTaken() const;
  // Queue `waiter` waits until `owner` has retired `until` commands. Of several waits for one owner, the one
  // that ends last is kept. Not created: does nothing. False: nothing new is known.
  bool AddWait(const XQueue& waiter, const XQueue& owner, uint64_t until);

  // What the process has taken of the device that has this number (memory_account.h). Lock-free. Not created:
  // does nothing.
  void ReportMemory(int number, XDevice device, uint64_t limit, uint64_t used);

  // ---- the bells. Lock-free, async-signal-safe. Not created: they do nothing ----
  void RingScheduler(uint32_t index);
  void RingAgent();
  void SilenceAgent();

  // True if no descriptor is lost. Otherwise they count as lost from now on.
  bool Intact();
  // The descriptors count as lost. Async-signal-safe.
  void Lose();
  bool lost() const { return lost_.load(std::memory_order_acquire); }

 private:
  // True if the wait's command has retired, or its queue has gone.
  bool HasPassed(const ipc::Wait& wait) const;

  const XQueueTable& queues_;
  ProcessState& state_;
  std::atomic<ipc::Segment*> segment_{nullptr};
  std::atomic<const GuardedFd*> scheduler_bell_{nullptr};
  std::atomic<const GuardedFd*> agent_bell_{nullptr};
  std::atomic<bool> lost_{false};

  ipc::MappedSegment mapping_;
  GuardedFd memfd_;
  GuardedFd scheduler_bell_fd_;
  GuardedFd agent_bell_fd_;
};

}  // namespace xsched::preempt
