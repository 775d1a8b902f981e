// What a policy makes of a load, in figures: one row per queue, or for all queues of one name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/distribution.h"
#include "sched/sim/simulation.h"
#include "server/tenants/tenants_file.h"

namespace xsched::cli {

// What decides who runs: a policy, or the device by itself.
struct Scheme {
  std::string name;                                 // "HPF", "native", "UP, timeslice 1000 µs"
  std::optional<sched::PolicySetting> policy = {};  // none: no scheduler
  sched::sim::Order order = sched::sim::Order::kInTurn;
  Duration timeslice = sched::SchedulerConfig{}.timeslice;
  std::optional<size_t> at_a_time = {};               // none: the default k, of which a search may try others
  std::vector<sched::sim::HintOverrides> hints = {};  // of each queue; empty: as in the load
};

// The scheme of that name: policies (PolicySetting), "native" or "FIFO", in any case. Throws CommandError.
Scheme SchemeByName(const std::string& name);
// All of them, without a scheduler first.
std::vector<Scheme> AllSchemes();
// The same policy with another k. A scheme whose policy does not count queues stays as it is.
Scheme WithAtATime(const Scheme& scheme, size_t at_a_time);

struct QueueOutcome {
  std::string name;
  size_t tasks = 0;  // that ended; 0: its latencies are not known
  // Of tasks that ended. The age of one that has not ended counts as well if it is longer than any of these.
  double p50_ms = 0;
  double p99_ms = 0;
  double max_ms = 0;
  Distribution latencies = {};  // if it was asked for
  bool has_deadline = false;    // at one time or another
  uint64_t missed = 0;  // tasks that were later than the queue's deadline, or are by the end of the load
  double commands_per_second = 0;
  double share = 0;  // of the device's time
};

// What all processes of a tenant have together.
struct TenantOutcome {
  std::string name;
  double commands_per_second = 0;
  double share = 0;  // of the device's time
};

struct Outcome {
  Scheme scheme;
  std::vector<QueueOutcome> queues;
  std::vector<TenantOutcome> tenants = {};  // as the load names them

  // Null: there is no such queue.
  const QueueOutcome* Find(const std::string& name) const;
};

// The figures of each queue, or of all queues of one name. `distributions`: of latencies as well, for a page.
Outcome OutcomeOf(const sched::sim::Load& load, const Scheme& scheme, const sched::sim::Result& result,
                  bool distributions);
// Gives the load's tenants the shares and the highest priorities that a tenants' file says, by their names.
void SetRights(sched::sim::Load& load, const server::TenantRules& rules);
Outcome Predict(const sched::sim::Load& load, const Scheme& scheme, Duration warm_up,
                bool distributions = false);
// Of each scheme, in the same order. As many are simulated at a time as there are processors.
std::vector<Outcome> PredictAll(const sched::sim::Load& load, const std::vector<Scheme>& schemes,
                                Duration warm_up, bool distributions = false);

}  // namespace xsched::cli
