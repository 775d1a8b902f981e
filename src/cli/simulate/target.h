// What a user wants of a load: "serve p99 < 5 ms", and with that as much as possible for another. The search
// tries policies, chains of them, and the hints that they read.
#pragma once

#include <string>
#include <vector>

#include "cli/simulate/outcome.h"

namespace xsched::cli {

struct Target {
  std::string queue;
  double QueueOutcome::*figure = &QueueOutcome::p99_ms;
  double below_ms = 0;

  // False: no task of it has ended. It starves, or always has work.
  bool HasTasks(const Outcome& outcome) const;
  bool IsMet(const Outcome& outcome) const;
};

// "NAME p50|p99|max < NUMBER us|ms|s". Throws CommandError.
Target ParseTarget(const std::string& text);

// A scheme that is tried, and in how many things it differs from what the load and the user say.
struct Candidate {
  Scheme scheme;
  int changes = 0;
};

// What is tried for one scheme: each combination of the hints that its policy reads, with `target.queue` as
// the one that is to be served better; of k, the timeslice, and what the policy decides about. The scheme as
// it is comes first.
std::vector<Candidate> Candidates(const sched::sim::Load& load, const Scheme& scheme, const Target& target);

// Chains that are tried as well if the user names no policies: priority classes first, and in each of them a
// policy that lets queues run in turn.
std::vector<Scheme> NaturalChains();

// At most so many candidates are simulated. Those with the fewest changes come first.
inline constexpr size_t kMostCandidates = 400;

// Simulates the candidates of all schemes. The result begins with those that meet the target: the one that
// gives most of the device's time to the queue `maximize` first. The others follow, the nearest first; last
// are those under which the target's queue ends no task.
std::vector<Outcome> Search(const sched::sim::Load& load, const std::vector<Scheme>& schemes,
                            const Target& target, const std::string& maximize, Duration warm_up,
                            bool distributions = false);

}  // namespace xsched::cli
