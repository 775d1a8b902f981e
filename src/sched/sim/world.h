// Runs a history in virtual time: models of programs, agents and devices, under the real scheduler.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "sched/sim/history.h"

namespace xsched::sched::sim {

struct Outcome {
  std::string broken;    // the first promise that was not kept, and how; empty: all were kept
  uint64_t retired = 0;  // commands
  uint64_t events = 0;
  uint64_t incidents = 0;  // how often a queue counted as stalled; of the queues that exist at the end
};

// `trace`, if not null, receives what the scheduler decides and what the programs do.
Outcome Run(const History& history, std::ostream* trace = nullptr);

}  // namespace xsched::sched::sim
