#include "sched/core/sharing.h"

#include <algorithm>

#include "sched/core/process_slices.h"

namespace xsched::sched {
namespace {

using std::chrono::milliseconds;

// Of the device's time, for each process and each way. A training has phases of some 10 ms with commands of
// other lengths.
constexpr Duration kEnough = milliseconds(150);
// A trial is over after so much time for each process, also if some have hardly used the device.
constexpr Duration kAtMost = 3 * kEnough;
// Sharing makes a more urgent process wait, so it must do clearly more.
constexpr double kWorth = 1.15;
constexpr Duration kKeepLongest = std::chrono::seconds(128);

bool IsEnough(const Pace& pace) { return pace.time >= kEnough && pace.commands > 0; }

double TimeOfCommand(const Pace& pace) {
  return static_cast<double>(pace.time.count()) / static_cast<double>(pace.commands);
}

// True if each of those that compete has used the device for long enough.
bool AllEnough(std::span<ProcessRecord* const> processes, Pace ProcessRecord::*way) {
  return std::all_of(processes.begin(), processes.end(), [way](const ProcessRecord* process) {
    return !process->competes || IsEnough(process->*way);
  });
}

}  // namespace

void Sharing::ProcessCame() {
  keep_ = kKeepFirst;
  if (phase_ == Phase::kKnown) until_ = std::min(until_, soonest_);
}

void Sharing::Begin(Phase phase, TimePoint now, Duration at_most) {
  phase_ = phase;
  until_ = now + at_most;
}

bool Sharing::Pays(std::span<ProcessRecord* const> processes, TimePoint now) {
  const Duration at_most = kAtMost * static_cast<int64_t>(processes.size());
  if (phase_ == Phase::kNew || (phase_ == Phase::kKnown && now >= until_)) {
    for (ProcessRecord* process : processes) process->in_turns = process->in_sharing = Pace{};
    Begin(Phase::kTriesTurns, now, at_most);
  }
  if (phase_ == Phase::kTriesTurns && (now >= until_ || AllEnough(processes, &ProcessRecord::in_turns)))
    Begin(Phase::kTriesSharing, now, at_most);
  if (phase_ == Phase::kTriesSharing && (now >= until_ || AllEnough(processes, &ProcessRecord::in_sharing))) {
    double gain = 0;
    int known = 0;
    bool all_have_gaps = true;
    for (const ProcessRecord* process : processes) {
      // Those that hardly use the device in their turns have gaps.
      all_have_gaps &= !IsEnough(process->in_turns);
      if (!IsEnough(process->in_turns) || !IsEnough(process->in_sharing)) continue;
      gain += TimeOfCommand(process->in_turns) / TimeOfCommand(process->in_sharing);
      ++known;
    }
    pays_ = known == 0 ? all_have_gaps : gain >= kWorth * known;
    Begin(Phase::kKnown, now, keep_);
    soonest_ = now + kKeepFirst;
    keep_ = std::min(2 * keep_, kKeepLongest);
  }
  return phase_ == Phase::kTriesSharing || (phase_ == Phase::kKnown && pays_);
}

}  // namespace xsched::sched
