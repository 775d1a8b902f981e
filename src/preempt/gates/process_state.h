// State of the whole process that takes precedence over its control blocks. Lock-free.
//
// Written by the agent (whether there is a scheduler, whether its thread checks), by calls of the program
// during which nothing may be held (barriers), and by queues that stop the process on a device.
#pragma once

#include <atomic>

#include "preempt/gates/taken_watch.h"

namespace xsched::preempt {

class ProcessState {
 public:
  constexpr ProcessState() = default;

  // True if there is a scheduler. Without one nothing is held: what a former scheduler still writes into the
  // control blocks is ignored.
  bool scheduled() const { return scheduled_.load(std::memory_order_acquire); }
  void SetScheduled(bool scheduled) { scheduled_.store(scheduled, std::memory_order_seq_cst); }

  // True if the process ends or loses its driver: everything is open forever.
  bool shut_down() const { return shut_down_.load(std::memory_order_acquire); }
  void ShutDown() { shut_down_.store(true, std::memory_order_seq_cst); }

  // While this is set, nothing is held. Returns true if forced_open() has changed. Nests.
  bool ForceOpen(bool open) { return Count(forced_open_, open); }
  bool forced_open() const { return forced_open_.load(std::memory_order_seq_cst) > 0; }
  // Likewise, but only for queues that the program has suspended. Queues that a scheduler holds stay held.
  bool LiftSuspensions(bool lift) { return Count(lifted_suspensions_, lift); }
  bool suspensions_lifted() const { return lifted_suspensions_.load(std::memory_order_seq_cst) > 0; }

  // The number of queues for which the whole process is stopped on their device.
  int hard_stops() const { return hard_stops_.load(std::memory_order_seq_cst); }
  void CountHardStop(int change) { hard_stops_.fetch_add(change, std::memory_order_seq_cst); }

  // Whether the agent checks what is taken from the process.
  TakenWatch taken_watch;

  // In a forked child: nobody schedules it.
  void ResetAfterFork() {
    scheduled_.store(false, std::memory_order_relaxed);
    forced_open_.store(0, std::memory_order_relaxed);
    lifted_suspensions_.store(0, std::memory_order_relaxed);
    hard_stops_.store(0, std::memory_order_relaxed);
  }

 private:
  static bool Count(std::atomic<int>& calls, bool begins) {
    const int before = calls.fetch_add(begins ? 1 : -1, std::memory_order_seq_cst);
    return begins ? before == 0 : before == 1;
  }

  std::atomic<bool> scheduled_{false};
  std::atomic<bool> shut_down_{false};
  std::atomic<int> forced_open_{0};
  std::atomic<int> lifted_suspensions_{0};
  std::atomic<int> hard_stops_{0};
};

}  // namespace xsched::preempt
