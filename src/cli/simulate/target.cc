#include "cli/simulate/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <set>
#include <utility>

#include "cli/exit_codes.h"
#include "cli/simulate/guarantees.h"
#include "server/policy_names.h"

namespace xsched::cli {
namespace {

using sched::sim::HintOverrides;
using sched::sim::Load;
using sched::sim::QueueLoad;
using std::chrono::microseconds;

constexpr int64_t kTimeslicesUs[] = {500, 1000, 2000, 5000, 10000};
constexpr Utilization kUtilizations[] = {25, 50, 75, 90};
constexpr Weight kWeights[] = {200, 400, 1000};    // beside the default one
constexpr double kLaxities[] = {0.25, 0.5, 0.75};  // of the target
constexpr double kGuarantees[] = {0.25, 0.5, 0.75};
constexpr size_t kAtATime[] = {2, 4, 8, 16};

// What is tried so far. Each function below adds the same with another value of one hint: of the queues that
// the target names, and where it must be so of the others.
class Variants {
 public:
  Variants(const Load& load, const Scheme& scheme, const Target& target)
      : load_(load), target_us_(static_cast<int64_t>(target.below_ms * 1000)), tried_{{scheme}} {
    tried_[0].scheme.hints.resize(load.queues.size());
    for (const QueueLoad& queue : load.queues) is_target_.push_back(queue.name == target.queue);
  }

  void AddPriority() {
    ForEach([this](const Scheme& scheme) {
      const Priority priority = std::min(HighestOfOthers() + 1, PRIORITY_MAX);
      Priority lowest = PRIORITY_MAX;
      Scheme next = scheme;
      ForTarget(next, [&](HintOverrides& hints, const QueueLoad& queue) {
        hints.priority = std::max(HighestOf(queue), priority);
        lowest = std::min(lowest, *hints.priority);
      });
      if (Differ(next, scheme)) Add(next, fmt::format("priority {}", lowest));
    });
  }

  void AddUtilization() {
    const auto others = static_cast<Utilization>(std::count(is_target_.begin(), is_target_.end(), false));
    const auto targets = static_cast<Utilization>(is_target_.size()) - others;
    ForEach([&](const Scheme& scheme) {
      for (Utilization share : kUtilizations) {
        Scheme next = scheme;
        for (HintOverrides& hints : next.hints)
          hints.utilization = std::max(1, (100 - share) / std::max(others, 1));
        ForTarget(next,
                  [&](HintOverrides& hints, auto&) { hints.utilization = std::max(1, share / targets); });
        Add(next, fmt::format("utilization {}", share));
      }
    });
  }

  void AddWeight() {
    ForEach([this](const Scheme& scheme) {
      for (Weight weight : kWeights) {
        Scheme next = scheme;
        for (HintOverrides& hints : next.hints) hints.weight = WEIGHT_DEFAULT;
        ForTarget(next, [&](HintOverrides& hints, auto&) { hints.weight = weight; });
        Add(next, fmt::format("weight {}", weight));
      }
    });
  }

  void AddDeadline() {
    ForEach([this](const Scheme& scheme) {
      Scheme next = scheme;
      ForTarget(next, [this](HintOverrides& hints, auto&) { hints.deadline_us = target_us_; });
      if (Differ(next, scheme)) Add(next, fmt::format("deadline {} µs", target_us_));
    });
  }

  void AddLatencyTarget() {
    ForEach([this](const Scheme& scheme) {
      Scheme next = scheme;
      const LatencyTarget latency_us = std::min<int64_t>(target_us_, LATENCY_TARGET_MAX);
      ForTarget(next, [&](HintOverrides& hints, auto&) { hints.latency_target_us = latency_us; });
      if (Differ(next, scheme)) Add(next, fmt::format("latency target {} µs", latency_us));
    });
  }

  void AddLaxity() {
    ForEach([this](const Scheme& scheme) {
      for (double part : kLaxities) {
        Scheme next = scheme;
        const auto laxity = static_cast<Laxity>(static_cast<double>(target_us_) * part);
        ForTarget(next, [&](HintOverrides& hints, auto&) {
          hints.laxity_us = laxity;
          hints.lax_priority = std::max(LowestOfOthers() - 1, PRIORITY_MIN);
          hints.critical_priority = std::min(HighestOfOthers() + 1, PRIORITY_MAX);
        });
        Add(next, fmt::format("laxity {} µs", laxity));
      }
    });
  }

  void AddTimeslice() {
    ForEach([this](const Scheme& scheme) {
      for (int64_t timeslice : kTimeslicesUs) {
        Scheme next = scheme;
        next.timeslice = microseconds(timeslice);
        if (next.timeslice != scheme.timeslice) Add(next, fmt::format("timeslice {} µs", timeslice));
      }
    });
  }

  // A guarantee of the target's process in each period, which is as long as the target allows. Others keep
  // theirs. What would be more than the whole device is refused by the server, and is not tried.
  void AddGuarantee() {
    ForEach([this](const Scheme& scheme) {
      for (double part : kGuarantees) {
        Scheme next = scheme;
        const auto period_us =
            std::clamp<int64_t>(target_us_, RESERVATION_PERIOD_MIN, RESERVATION_PERIOD_MAX);
        ForTarget(next, [&](HintOverrides& hints, auto&) {
          hints.period_us = period_us;
          hints.guarantee_us = static_cast<int64_t>(static_cast<double>(period_us) * part);
          hints.limit_us = hints.burst_us = 0;
        });
        if (MostGuaranteed(load_, next.hints).CanBeKept())
          Add(next, fmt::format("guarantee {:.0f} %", part * 100));
      }
    });
  }

  // REQUIRES: the user has not chosen a k.
  void AddAtATime() {
    ForEach([this](const Scheme& scheme) {
      for (size_t k : kAtATime) {
        if (k < load_.queues.size()) tried_.push_back({WithAtATime(scheme, k), changes_ + 1});
      }
    });
  }

  // The same policy about processes in place of queues, or about queues in place of processes.
  void AddGranularity() {
    if (!AnyProcessHasSeveralQueues()) return;
    ForEach([this](const Scheme& scheme) {
      using sched::Granularity;
      if (!scheme.policy->IsPlain()) return;
      const sched::Policy& policy = scheme.policy->first();
      Scheme next = scheme;
      next.policy = sched::PolicySetting(policy, policy.info().granularity == Granularity::kQueue
                                                     ? Granularity::kProcess
                                                     : Granularity::kQueue);
      next.name = server::TextOf(*next.policy) + scheme.name.substr(server::TextOf(*scheme.policy).size());
      tried_.push_back({next, changes_ + 1});
    });
  }

  std::vector<Candidate> Take() { return std::move(tried_); }

 private:
  template <typename Do>
  void ForEach(Do act) {
    const std::vector<Candidate> before = tried_;
    for (const Candidate& candidate : before) {
      changes_ = candidate.changes;
      act(candidate.scheme);
    }
  }
  template <typename Do>
  void ForTarget(Scheme& scheme, Do act) const {
    for (size_t i = 0; i < is_target_.size(); ++i) {
      if (is_target_[i]) act(scheme.hints[i], load_.queues[i]);
    }
  }
  void Add(Scheme scheme, const std::string& what) {
    scheme.name += ", " + what;
    tried_.push_back({std::move(scheme), changes_ + 1});
  }
  bool AnyProcessHasSeveralQueues() const {
    std::set<std::pair<int, int>> seen;
    return std::any_of(load_.queues.begin(), load_.queues.end(), [&](const QueueLoad& queue) {
      return !seen.emplace(queue.process, queue.device).second;
    });
  }
  // Whether a queue of the target has other hints at any time.
  bool Differ(const Scheme& one, const Scheme& other) const {
    bool differ = false;
    for (size_t i = 0; i < is_target_.size(); ++i) {
      load_.queues[i].ForEachHints([&](const sched::Hints& hints) {
        differ |= is_target_[i] && one.hints[i].Over(hints) != other.hints[i].Over(hints);
      });
    }
    return differ;
  }
  // At any time.
  static Priority HighestOf(const QueueLoad& queue) {
    Priority highest = PRIORITY_MIN;
    queue.ForEachHints([&](const sched::Hints& hints) { highest = std::max(highest, hints.priority); });
    return highest;
  }
  Priority HighestOfOthers() const {
    Priority highest = PRIORITY_MIN;
    for (size_t i = 0; i < is_target_.size(); ++i) {
      if (!is_target_[i]) highest = std::max(highest, HighestOf(load_.queues[i]));
    }
    return highest;
  }
  Priority LowestOfOthers() const {
    Priority lowest = PRIORITY_MAX;
    for (size_t i = 0; i < is_target_.size(); ++i) {
      if (is_target_[i]) continue;
      load_.queues[i].ForEachHints(
          [&](const sched::Hints& hints) { lowest = std::min(lowest, hints.priority); });
    }
    return lowest;
  }

  const Load& load_;
  int64_t target_us_;
  std::vector<bool> is_target_;
  std::vector<Candidate> tried_;
  int changes_ = 0;  // of the candidate that ForEach has come to
};

void MustExist(const Load& load, const std::string& name) {
  std::string names;
  for (const QueueLoad& queue : load.queues) {
    if (queue.name == name) return;
    names += " " + queue.name;
  }
  throw CommandError(kExitUsage, fmt::format("the load has no queue {}; it has{}", name, names));
}

}  // namespace

bool Target::HasTasks(const Outcome& outcome) const {
  const QueueOutcome* found = outcome.Find(queue);
  return found != nullptr && found->tasks > 0;
}

bool Target::IsMet(const Outcome& outcome) const {
  return HasTasks(outcome) && outcome.Find(queue)->*figure < below_ms;
}

Target ParseTarget(const std::string& text) {
  static const std::regex form(R"(\s*(\S|\S.*\S)\s+(p50|p99|max)\s*<\s*([0-9.]+)\s*(us|µs|ms|s)\s*)");
  std::smatch parts;
  char* end = nullptr;
  const bool matches = std::regex_match(text, parts, form);
  const std::string number = matches ? parts[3].str() : "";
  const double value = std::strtod(number.c_str(), &end);
  if (!matches || *end != '\0' || value <= 0) {
    throw CommandError(kExitUsage,
                       fmt::format("--target: \"{}\" is not of the form \"serve p99 < 5 ms\"", text));
  }
  Target target;
  target.queue = parts[1];
  target.figure = parts[2] == "p50"   ? &QueueOutcome::p50_ms
                  : parts[2] == "p99" ? &QueueOutcome::p99_ms
                                      : &QueueOutcome::max_ms;
  // As what is tried as a deadline, in whole microseconds.
  const double below_us = value * (parts[4] == "s" ? 1e6 : parts[4] == "ms" ? 1e3 : 1);
  if (below_us < 1 || below_us > static_cast<double>(DEADLINE_MAX))
    throw CommandError(kExitUsage, fmt::format("--target: \"{}\" is not from 1 us to a year", text));
  target.below_ms = value * (parts[4] == "s" ? 1e3 : parts[4] == "ms" ? 1 : 1e-3);
  return target;
}

std::vector<Candidate> Candidates(const Load& load, const Scheme& scheme, const Target& target) {
  if (!scheme.policy) return {{scheme}};
  Variants variants(load, scheme, target);
  const auto reads = [&](bool sched::HintsRead::*hint) { return scheme.policy->Reads(hint); };
  using sched::HintsRead;
  if (reads(&HintsRead::priority)) variants.AddPriority();
  if (reads(&HintsRead::utilization)) variants.AddUtilization();
  if (reads(&HintsRead::weight)) variants.AddWeight();
  if (reads(&HintsRead::reservation)) variants.AddGuarantee();
  if (reads(&HintsRead::deadline)) variants.AddDeadline();
  if (reads(&HintsRead::latency_target)) variants.AddLatencyTarget();
  if (reads(&HintsRead::laxity)) variants.AddLaxity();
  if (reads(&HintsRead::at_a_time) && !scheme.at_a_time) variants.AddAtATime();
  if (reads(&HintsRead::timeslice)) variants.AddTimeslice();
  variants.AddGranularity();
  return variants.Take();
}

std::vector<Scheme> NaturalChains() {
  const std::string classes = sched::PolicyName(sched::kDefaultPolicy);
  std::vector<Scheme> chains;
  for (sched::PolicyGetter policy : sched::Policies()) {
    if (policy().info().hints.timeslice) chains.push_back(SchemeByName(classes + "/" + policy().info().name));
  }
  return chains;
}

std::vector<Outcome> Search(const Load& load, const std::vector<Scheme>& schemes, const Target& target,
                            const std::string& maximize, Duration warm_up, bool distributions) {
  MustExist(load, target.queue);
  MustExist(load, maximize);
  std::vector<Candidate> candidates;
  for (const Scheme& scheme : schemes) {
    for (Candidate& candidate : Candidates(load, scheme, target)) candidates.push_back(std::move(candidate));
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& one, const Candidate& other) { return one.changes < other.changes; });
  if (candidates.size() > kMostCandidates) candidates.resize(kMostCandidates);
  std::vector<Scheme> tried;
  for (Candidate& candidate : candidates) tried.push_back(std::move(candidate.scheme));
  std::vector<Outcome> outcomes = PredictAll(load, tried, warm_up, distributions);
  std::stable_sort(outcomes.begin(), outcomes.end(), [&](const Outcome& one, const Outcome& other) {
    const bool met = target.IsMet(one);
    if (met != target.IsMet(other)) return met;
    if (met) return one.Find(maximize)->share > other.Find(maximize)->share;
    const bool has_tasks = target.HasTasks(one);
    if (has_tasks != target.HasTasks(other)) return has_tasks;
    return one.Find(target.queue)->*target.figure < other.Find(target.queue)->*target.figure;
  });
  return outcomes;
}

}  // namespace xsched::cli
