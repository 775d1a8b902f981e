// The nouns of scheduling. Pure: nothing here knows of threads, clocks, sockets or drivers.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "xsched/types.h"

namespace xsched::sched {

// Strong ids: a queue's is unique for the life of one scheduler and never reused.
enum class QueueId : uint64_t {};
enum class ProcessId : uint64_t {};  // a client connection, not a pid
enum class DeviceId : uint64_t {};   // an XDevice
// Processes that work together, such as the ranks of a distributed program: they are given their turns at the
// same time, on whatever devices they are. 0: none is known.
enum class JobId : uint64_t {};

// What a queue's owner (or an administrator) asks for. Ranges: xsched/types.h.
struct Hints {
  Priority priority = PRIORITY_DEFAULT;
  Utilization utilization = UTILIZATION_DEFAULT;
  Deadline deadline_us = NO_DEADLINE;
  Laxity laxity_us = NO_LAXITY;
  Priority lax_priority = PRIORITY_DEFAULT;
  Priority critical_priority = PRIORITY_DEFAULT;

  bool operator==(const Hints&) const = default;
};

// "`queue` must retire its command number `until` before the waiter can go on."
struct Dependency {
  QueueId queue;
  uint64_t until;
};

// What a scheduler tells the client about a queue, through the queue's control block (ipc/control_block.h).
struct Control {
  bool run = true;       // false: hold
  bool tracked = false;  // somebody waits because of this queue: report its progress at once
  bool gated = false;    // somebody may make this queue wait: keep what is in flight bounded
  bool sliced = false;   // … only other processes may, and time slices serve those before any gate does

  bool operator==(const Control&) const = default;
};

}  // namespace xsched::sched
