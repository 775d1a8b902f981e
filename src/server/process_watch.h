// Finds processes that cannot run: stopped (SIGSTOP, a debugger), frozen by their control group, or hanging.
// Their queues make no progress, and must not make others wait. It checks only while other processes may
// wait, and never a process that has just given a sign of life.
#pragma once

#include <sys/types.h>

#include <vector>

#include "base/clock.h"
#include "sched/core/scheduler.h"
#include "server/agents.h"
#include "server/process_state.h"
#include "server/queues.h"
#include "server/wakes.h"

namespace xsched::server {

class ProcessWatch {
 public:
  static constexpr Duration kCheckEvery = std::chrono::milliseconds(20);

  // `is_stopped`: asks the kernel whether a process is stopped.
  ProcessWatch(Agents& agents, Queues& queues, Wakes& wakes, const sched::Scheduler& scheduler,
               bool (*is_stopped)(pid_t) = IsStopped)
      : agents_(agents), queues_(queues), wakes_(wakes), scheduler_(scheduler), is_stopped_(is_stopped) {}

  // The agent has rung its doorbell, or sent something.
  void HeardFrom(Agent& agent, TimePoint now);
  // Checks the processes if it is time to.
  void Check(TimePoint now);
  // Call it after the round's decision. Returns when to call Check.
  TimePoint NextCheck(TimePoint now);

 private:
  bool MayHoldOthers(const Agent& agent, TimePoint now) const;
  bool HasProgressed(Agent& agent, TimePoint now);
  void Check(Agent& agent, TimePoint now);

  Agents& agents_;
  Queues& queues_;
  Wakes& wakes_;
  const sched::Scheduler& scheduler_;
  bool (*is_stopped_)(pid_t);
  TimePoint check_at_ = kNever;
  std::vector<uint64_t> unchecked_;  // the agents that are still to be checked, in the next rounds
  bool all_running_ = true;          // the result of the last check, as far as it has come
};

}  // namespace xsched::server
