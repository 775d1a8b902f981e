// Runs a history: programs, agents and devices as they are modelled, in virtual time, under the real
// scheduler.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "sched/sim/history.h"

namespace xsched::sched::sim {

struct Outcome {
  std::string broken;    // the first promise that was not kept, and how; empty: all were
  uint64_t retired = 0;  // commands
  uint64_t events = 0;
  uint64_t incidents = 0;  // how often a queue was taken for stalled, of those that are there at the end
};

// `trace`: writes what the scheduler decides, and what the programs do.
Outcome Run(const History& history, std::ostream* trace = nullptr);

}  // namespace xsched::sched::sim
