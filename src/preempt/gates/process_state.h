// What is so for the whole process and takes precedence over its control blocks. Lock-free.
//
// Written by the agent (is there a scheduler?), by calls of the program that must not find anything held
// (barriers), and by queues that stop the process on a device.
#pragma once

#include <atomic>

namespace xsched::preempt {

class ProcessState {
 public:
  constexpr ProcessState() = default;

  // Is a scheduler in charge? Without one nothing is held: what a former scheduler still writes into the
  // control blocks is ignored.
  bool scheduled() const { return scheduled_.load(std::memory_order_acquire); }
  void SetScheduled(bool scheduled) { scheduled_.store(scheduled, std::memory_order_seq_cst); }

  // The process ends, or loses its driver: everything is open, for good.
  bool shut_down() const { return shut_down_.load(std::memory_order_acquire); }
  void ShutDown() { shut_down_.store(true, std::memory_order_seq_cst); }

  // Nothing is held while calls of the program need that. True: the answer has changed. Nests.
  bool ForceOpen(bool open) { return Count(forced_open_, open); }
  bool forced_open() const { return forced_open_.load(std::memory_order_seq_cst) > 0; }
  // What the program has suspended runs, likewise; what a scheduler holds does not.
  bool LiftSuspensions(bool lift) { return Count(lifted_suspensions_, lift); }
  bool suspensions_lifted() const { return lifted_suspensions_.load(std::memory_order_seq_cst) > 0; }

  // Queues for which the whole process is stopped on their device.
  int hard_stops() const { return hard_stops_.load(std::memory_order_seq_cst); }
  void CountHardStop(int change) { hard_stops_.fetch_add(change, std::memory_order_seq_cst); }

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
