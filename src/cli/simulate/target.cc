#include "cli/simulate/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "cli/exit_codes.h"

namespace xsched::cli {
namespace {

using sched::sim::Load;
using std::chrono::microseconds;

constexpr int64_t kTimeslicesUs[] = {500, 1000, 2000, 5000, 10000};
constexpr Utilization kUtilizations[] = {25, 50, 75, 90};
constexpr Weight kWeights[] = {200, 400, 1000};    // beside the default one
constexpr double kLaxities[] = {0.25, 0.5, 0.75};  // of the target

// What is tried so far. Each function below adds the same with another value of one hint: of the queues that
// the target names, and where it must be so of the others.
class Variants {
 public:
  Variants(const Load& load, const Scheme& scheme, const Target& target)
      : target_us_(static_cast<int64_t>(target.below_ms * 1000)), schemes_{scheme} {
    if (scheme.hints.empty()) {
      for (const sched::sim::QueueLoad& queue : load.queues) schemes_[0].hints.push_back(queue.hints);
    }
    for (const sched::sim::QueueLoad& queue : load.queues) is_target_.push_back(queue.name == target.queue);
  }

  void AddPriority() {
    ForEach([this](const Scheme& scheme) {
      const Priority priority = std::min(HighestOfOthers(scheme) + 1, PRIORITY_MAX);
      Scheme next = scheme;
      ForTarget(next, [&](sched::Hints& hints) { hints.priority = std::max(hints.priority, priority); });
      if (next.hints != scheme.hints) Add(std::move(next), fmt::format("priority {}", priority));
    });
  }

  void AddUtilization() {
    const auto others = static_cast<Utilization>(std::count(is_target_.begin(), is_target_.end(), false));
    const auto targets = static_cast<Utilization>(is_target_.size()) - others;
    ForEach([&](const Scheme& scheme) {
      for (Utilization share : kUtilizations) {
        Scheme next = scheme;
        for (sched::Hints& hints : next.hints)
          hints.utilization = std::max(1, (100 - share) / std::max(others, 1));
        ForTarget(next, [&](sched::Hints& hints) { hints.utilization = std::max(1, share / targets); });
        Add(std::move(next), fmt::format("utilization {}", share));
      }
    });
  }

  void AddWeight() {
    ForEach([this](const Scheme& scheme) {
      for (Weight weight : kWeights) {
        Scheme next = scheme;
        for (sched::Hints& hints : next.hints) hints.weight = WEIGHT_DEFAULT;
        ForTarget(next, [&](sched::Hints& hints) { hints.weight = weight; });
        Add(std::move(next), fmt::format("weight {}", weight));
      }
    });
  }

  void AddDeadline() {
    ForEach([this](const Scheme& scheme) {
      Scheme next = scheme;
      ForTarget(next, [this](sched::Hints& hints) { hints.deadline_us = target_us_; });
      if (next.hints != scheme.hints) Add(std::move(next), fmt::format("deadline {} µs", target_us_));
    });
  }

  void AddLaxity() {
    ForEach([this](const Scheme& scheme) {
      for (double part : kLaxities) {
        Scheme next = scheme;
        const auto laxity = static_cast<Laxity>(static_cast<double>(target_us_) * part);
        ForTarget(next, [&](sched::Hints& hints) {
          hints.laxity_us = laxity;
          hints.lax_priority = std::max(LowestOfOthers(scheme) - 1, PRIORITY_MIN);
          hints.critical_priority = std::min(HighestOfOthers(scheme) + 1, PRIORITY_MAX);
        });
        Add(std::move(next), fmt::format("laxity {} µs", laxity));
      }
    });
  }

  void AddTimeslice() {
    ForEach([this](const Scheme& scheme) {
      for (int64_t timeslice : kTimeslicesUs) {
        Scheme next = scheme;
        next.timeslice = microseconds(timeslice);
        if (next.timeslice != scheme.timeslice)
          Add(std::move(next), fmt::format("timeslice {} µs", timeslice));
      }
    });
  }

  std::vector<Scheme> Take() { return std::move(schemes_); }

 private:
  template <typename Do>
  void ForEach(Do act) {
    const std::vector<Scheme> before = schemes_;
    for (const Scheme& scheme : before) act(scheme);
  }
  template <typename Do>
  void ForTarget(Scheme& scheme, Do act) const {
    for (size_t i = 0; i < is_target_.size(); ++i) {
      if (is_target_[i]) act(scheme.hints[i]);
    }
  }
  void Add(Scheme scheme, const std::string& what) {
    scheme.name += ", " + what;
    schemes_.push_back(std::move(scheme));
  }
  Priority HighestOfOthers(const Scheme& scheme) const {
    Priority highest = PRIORITY_MIN;
    for (size_t i = 0; i < is_target_.size(); ++i) {
      if (!is_target_[i]) highest = std::max(highest, scheme.hints[i].priority);
    }
    return highest;
  }
  Priority LowestOfOthers(const Scheme& scheme) const {
    Priority lowest = PRIORITY_MAX;
    for (size_t i = 0; i < is_target_.size(); ++i) {
      if (!is_target_[i]) lowest = std::min(lowest, scheme.hints[i].priority);
    }
    return lowest;
  }

  int64_t target_us_;
  std::vector<bool> is_target_;
  std::vector<Scheme> schemes_;
};

void MustExist(const Load& load, const std::string& name) {
  std::string names;
  for (const sched::sim::QueueLoad& queue : load.queues) {
    if (queue.name == name) return;
    names += " " + queue.name;
  }
  throw CommandError(kExitUsage, fmt::format("the load has no queue {}; it has{}", name, names));
}

}  // namespace

bool Target::IsMet(const Outcome& outcome) const {
  const QueueOutcome* found = outcome.Find(queue);
  return found != nullptr && found->tasks > 0 && found->*figure < below_ms;
}

Target ParseTarget(const std::string& text) {
  static const std::regex form(R"(\s*(\S+)\s+(p50|p99|max)\s*<\s*([0-9.]+)\s*(us|µs|ms|s)\s*)");
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
  target.below_ms = value * (parts[4] == "s" ? 1e3 : parts[4] == "ms" ? 1 : 1e-3);
  return target;
}

std::vector<Scheme> Candidates(const Load& load, const Scheme& scheme, const Target& target) {
  if (!scheme.policy) return {scheme};
  Variants variants(load, scheme, target);
  using sched::HintsRead;
  if (scheme.policy->Reads(&HintsRead::priority)) variants.AddPriority();
  if (scheme.policy->Reads(&HintsRead::utilization)) variants.AddUtilization();
  if (scheme.policy->Reads(&HintsRead::weight)) variants.AddWeight();
  if (scheme.policy->Reads(&HintsRead::deadline)) variants.AddDeadline();
  if (scheme.policy->Reads(&HintsRead::laxity)) variants.AddLaxity();
  if (scheme.policy->Reads(&HintsRead::timeslice)) variants.AddTimeslice();
  return variants.Take();
}

std::vector<Outcome> Search(const Load& load, const std::vector<Scheme>& schemes, const Target& target,
                            const std::string& maximize, Duration warm_up) {
  MustExist(load, target.queue);
  MustExist(load, maximize);
  std::vector<Outcome> outcomes;
  for (const Scheme& scheme : schemes) {
    for (const Scheme& candidate : Candidates(load, scheme, target))
      outcomes.push_back(Predict(load, candidate, warm_up));
  }
  std::stable_sort(outcomes.begin(), outcomes.end(), [&](const Outcome& one, const Outcome& other) {
    const bool met = target.IsMet(one);
    if (met != target.IsMet(other)) return met;
    if (met) return one.Find(maximize)->share > other.Find(maximize)->share;
    return one.Find(target.queue)->*target.figure < other.Find(target.queue)->*target.figure;
  });
  return outcomes;
}

}  // namespace xsched::cli
