// What the user chooses: which policies decide, and about what. Mostly one policy, or a chain of them:
//
//   UP                    one policy, about what it decides by itself: here, queues
//   UP:process            the same, about processes with all of their queues
//   UP:tenant             the same, about tenants with all of their processes
//   HPF/CFS:process/KEDF  priority classes; in each class, shares of processes; in each process, deadlines
//
// The first policy of a chain decides about all ready queues, and each further one about those that the one
// before it lets run. Each lets one run at least, so a chain never leaves a device unused. Each has its own
// state (PolicyState).
#pragma once

#include <algorithm>
#include <span>

#include "base/result.h"
#include "sched/core/policy.h"

namespace xsched::sched {

// The hints of one queue, by what a policy decides about.
struct ShownHints {
  Hints own;
  Hints of_process;  // valid if a policy in use decides about processes
  Hints of_tenant;   // likewise

  const Hints& For(Granularity by) const {
    return by == Granularity::kQueue ? own : by == Granularity::kProcess ? of_process : of_tenant;
  }
  bool operator==(const ShownHints&) const = default;
};

inline constexpr size_t kMostPolicies = 3;

class PolicySetting {
 public:
  struct Layer {
    const Policy* policy = nullptr;
    Granularity by = Granularity::kQueue;

    bool operator==(const Layer&) const = default;
  };

  // The policy, about what it decides by itself.
  PolicySetting(const Policy& policy)  // NOLINT: implicit
      : PolicySetting(policy, policy.info().granularity) {}
  PolicySetting(const Policy& policy, Granularity by) { Append({&policy, by}); }

  // Appends a policy. False: there are kMostPolicies already.
  bool Add(const Layer& layer);

  std::span<const Layer> layers() const { return {layers_, count_}; }
  const Policy& first() const { return *layers_[0].policy; }
  // True if one policy decides, about what it decides by itself.
  bool IsPlain() const { return count_ == 1 && layers_[0].by == first().info().granularity; }
  bool DecidesAbout(Granularity what) const;
  bool ComparesAllDevices() const { return compares_all_devices_; }
  // True if a policy in use may let none of the ready queues run.
  bool HasLimits() const { return has_limits_; }
  // Can such a policy hold a queue with these hints, also if there is no other one?
  bool CanLimit(const ShownHints& hints) const;
  // True if a policy in use is shown whole processes, also where it decides about queues.
  bool ShowsProcesses() const { return shows_processes_; }
  // True if all policies in use are (PolicyInfo::steady).
  bool IsSteady() const { return steady_; }
  // True if all policies in use do so (PolicyInfo).
  bool ChargesOverruns() const { return charges_overruns_; }
  bool KeepsBusy() const { return keeps_busy_; }
  // True if a policy in use reads this hint.
  bool Reads(bool HintsRead::*hint) const;
  // A bit for each of the layers to whose policies these are not the same.
  uint8_t LayersThatTellApart(const Hints& one, const Hints& other) const;
  uint8_t LayersThatTellApart(const ProcessFacts& one, const ProcessFacts& other) const;
  bool operator==(const PolicySetting&) const = default;

  // Can `victim` ever be held because of `rival`, a queue of another process or of the same one?
  bool CanHold(const ShownHints& victim, const ShownHints& rival, bool same_process = false) const;
  // True if `rival` may hold the queue, and the queue never holds `rival`.
  bool HasBetterClaim(const ShownHints& rival, const ShownHints& queue) const;
  // The time slices of processes: those of the first policy that sets any. `at_a_time`: as in DeviceView.
  Division Divide(std::span<ProcessView> processes, size_t at_a_time) const;

 private:
  template <typename Is>
  bool Any(Is&& is) const {
    return std::any_of(layers().begin(), layers().end(), is);
  }

  template <typename Is>
  uint8_t LayersWhose(Is&& is) const {
    uint8_t found = 0;
    for (size_t i = 0; i < count_; ++i)
      found |= static_cast<uint8_t>(is(layers_[i].policy->info().hints) ? 1u << i : 0u);
    return found;
  }

  void Append(const Layer& layer);

  Layer layers_[kMostPolicies] = {};
  size_t count_ = 0;
  // What every decision asks of the layers together.
  bool compares_all_devices_ = false;
  bool has_limits_ = false;
  bool shows_processes_ = false;
  bool steady_ = true;
  bool charges_overruns_ = true;
  bool keeps_busy_ = true;
};

// The text form, as above. Names of policies and granularities in any case.
inline constexpr size_t kPolicyTextSize = 92;
Result<PolicySetting> ParsePolicySetting(const char* text);
// Writes it with a NUL, cut off where it is too long.
void WritePolicySetting(const PolicySetting& setting, char (&text)[kPolicyTextSize]);
// "queue", "process", "tenant".
const char* GranularityName(Granularity by);

}  // namespace xsched::sched
