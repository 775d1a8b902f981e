// The nouns of scheduling. Pure: nothing here knows of threads, clocks, sockets or drivers.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "xsched/types.h"

namespace xsched::sched {

// Strong ids. A queue's id is unique for the life of one scheduler and never reused.
enum class QueueId : uint64_t {};
enum class ProcessId : uint64_t {};  // a client connection, not a pid
enum class DeviceId : uint64_t {};   // an XDevice
// Processes that work together, such as the ranks of a distributed program. They have their turns at the same
// time on all their devices. 0: no job is known.
enum class JobId : uint64_t {};

// Processes that have one share of each device together, such as those of one user. 0: those of which no
// tenant is known; together they are one.
enum class TenantId : uint64_t {};

// What a queue's owner (or an administrator) asks for. Ranges: xsched/types.h.
struct Hints {
  Priority priority = PRIORITY_DEFAULT;
  Utilization utilization = UTILIZATION_DEFAULT;
  Deadline deadline_us = NO_DEADLINE;
  Laxity laxity_us = NO_LAXITY;
  Priority lax_priority = PRIORITY_DEFAULT;
  Priority critical_priority = PRIORITY_DEFAULT;
  Weight weight = WEIGHT_DEFAULT;
  Floor floor = FLOOR_DEFAULT;
  // A reservation (core/reservation.h); all 0: none.
  int64_t guarantee_us = 0;
  int64_t period_us = 0;
  int64_t limit_us = 0;
  int64_t burst_us = 0;
  LatencyTarget latency_target_us = NO_LATENCY_TARGET;

  bool operator==(const Hints&) const = default;
};

// What a tenant has of each device, whatever its processes ask for. The reservation is as in Hints.
struct TenantShare {
  Weight weight = WEIGHT_DEFAULT;
  int64_t guarantee_us = 0;
  int64_t period_us = 0;
  int64_t limit_us = 0;
  int64_t burst_us = 0;

  bool operator==(const TenantShare&) const = default;
};

// What is known of a process, and what nobody asks for: its owner cannot hint it.
struct ProcessFacts {
  // By the CPU's scheduler; bigger is more urgent. -19 … 20: the opposite of the nice value; above that:
  // real-time processes.
  int cpu_priority = 0;
  bool window_active = false;  // a window of it is the active one of a display

  bool operator==(const ProcessFacts&) const = default;
};

// "`queue` must retire its command number `until` before the waiter can go on."
struct Dependency {
  QueueId queue;
  uint64_t until;
};

// What the scheduler sets for a queue, in the queue's control block (ipc/control_block.h).
struct Control {
  bool run = true;       // false: hold
  bool tracked = false;  // others wait because of this queue: report its progress at once
  bool gated = false;    // another queue may make this one wait: keep what is in flight bounded
  bool sliced = false;   // gated only for other processes, which time slices serve before any gate does
  bool charges_overruns = false;  // it is charged for what it still does after a hold: report the end of that
  bool keeps_busy = false;        // that harms nobody: keep the device busy rather than stop soon

  bool operator==(const Control&) const = default;
};

}  // namespace xsched::sched
