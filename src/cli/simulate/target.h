// What a user wants of a load: "serve p99 < 5 ms", and with that as much as possible for another. The search
// tries policies and the hints that they read.
#pragma once

#include <string>
#include <vector>

#include "cli/simulate/outcome.h"

namespace xsched::cli {

struct Target {
  std::string queue;
  double QueueOutcome::*figure = &QueueOutcome::p99_ms;
  double below_ms = 0;

  bool IsMet(const Outcome& outcome) const;
};

// "NAME p50|p99|max < NUMBER us|ms|s". Throws CommandError.
Target ParseTarget(const std::string& text);

// What is tried for one scheme: each combination of the hints that its policy reads, with `target.queue` as
// the one that is to be served better. The scheme as it is comes first.
std::vector<Scheme> Candidates(const sched::sim::Load& load, const Scheme& scheme, const Target& target);

// Simulates all candidates of all schemes. The result begins with those that meet the target: the one that
// gives most of the device's time to the queue `maximize` first. The others follow, the nearest first.
std::vector<Outcome> Search(const sched::sim::Load& load, const std::vector<Scheme>& schemes,
                            const Target& target, const std::string& maximize, Duration warm_up);

}  // namespace xsched::cli
