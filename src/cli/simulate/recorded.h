// What was recorded of a load: the figures that a simulation predicts, as they were.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/simulate/outcome.h"

namespace xsched::cli {

// A queue had work without a break, or a part of such a time.
struct RecordedBurst {
  Duration at{};    // since the beginning
  Duration span{};  // from then until it was idle
  uint64_t commands = 0;
  Duration device{};     // device time
  bool follows = false;  // it is the rest of the one before
  bool unseen = false;   // its length is not known
};

// Gives bursts of unknown length that of the queue's other commands. If there are none, it stays 0.
void EstimateUnseen(std::vector<RecordedBurst>& bursts);

// `bursts` of each queue of the load. A burst is a task, and its span is the task's latency.
Outcome RecordedOutcome(const sched::sim::Load& load, const std::vector<std::vector<RecordedBurst>>& bursts,
                        Duration warm_up, bool distributions = false);

}  // namespace xsched::cli
