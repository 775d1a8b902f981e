#include "sched/core/proportional_share.h"

#include <algorithm>
#include <limits>

namespace xsched::sched {
namespace {

// The pass counts what was received exactly. So a weight that is too small for a slice of its own has longer
// slices, and they come less often.
constexpr double kNanosecondsPerSecond = 1e9;
constexpr double kNobody = std::numeric_limits<double>::infinity();

// 3000 to 1000 µs gave 75.3 to 24.7 % at 98.4 % of the native total (H200); 50 µs cost 90 % of it.
constexpr Duration kMeanSlice = std::chrono::microseconds(3000);
// Two programs with slices of 200 µs, while a third had no work, did 47 % of what they do natively.
constexpr Duration kShortestShare = std::chrono::microseconds(1000);
constexpr Duration kLongestShare = std::chrono::microseconds(20'000);

}  // namespace

Division DivideInProportion(std::span<ProcessView> processes, WeightOfProcess weight_of) {
  double total = 0;
  double lowest = kNobody;
  double highest = 0;
  for (const ProcessView& process : processes) {
    const double weight = weight_of(process);
    total += weight;
    lowest = std::min(lowest, weight);
    highest = std::max(highest, weight);
  }
  if (highest <= 0) return Division::kNone;              // all may use the device
  if (lowest <= 0) return OnlyTheRunningOne(processes);  // even the shortest slice would give it a share
  // The mean is longer where the shortest slice would be too short.
  const double per_weight = std::max(InSeconds(kMeanSlice) * static_cast<double>(processes.size()) / total,
                                     InSeconds(kShortestShare) / lowest);
  if (highest * per_weight > InSeconds(kLongestShare)) return OnlyTheRunningOne(processes);
  for (ProcessView& process : processes) {
    process.slice = Duration(static_cast<int64_t>(weight_of(process) * per_weight * kNanosecondsPerSecond));
  }
  return Division::kAlone;
}

TimePoint ProportionalShare::LetOneRun(const DeviceView& device) const {
  double total = 0;
  int partners = 0;
  for (QueueView& claimant : device.ready) {
    claimant.run = false;
    Charge(claimant);
    const double weight = WeightOf(claimant);
    total += weight;
    partners += weight > 0;
  }
  if (partners == 0) {
    // None has a share: all may use the device.
    for (QueueView& claimant : device.ready) claimant.run = true;
    return kNever;
  }
  LevelStrides(
      device.ready, StateOf(device), InSeconds(device.timeslice),
      [this](QueueView& claimant) { return WeightOf(claimant) > 0 ? &StateOf(claimant).stride : nullptr; },
      [this](const QueueView& claimant) { return WeightOf(claimant); });
  auto slice = [&](const QueueView& claimant) {
    const double rounds = WeightOf(claimant) * partners / total;
    return std::max(kShortestTurn,
                    Duration(static_cast<int64_t>(static_cast<double>(device.timeslice.count()) * rounds)));
  };
  for (QueueView& claimant : device.ready) {
    if (!claimant.running || WeightOf(claimant) == 0) continue;
    const TimePoint end = claimant.running_since + slice(claimant);
    if (device.now >= end) continue;
    claimant.run = true;
    return partners == 1 ? kNever : end;
  }
  QueueView& next = Lowest(device.ready);
  next.run = true;
  return partners == 1 ? kNever : device.now + slice(next);
}

// What it received without a share counts for nothing.
void ProportionalShare::Charge(const QueueView& claimant) const {
  ShareState& state = StateOf(claimant);
  const Duration received = state.known ? claimant.service - state.counted : Duration::zero();
  state.counted = claimant.service;
  state.known = true;
  const double weight = WeightOf(claimant);
  if (weight > 0) {
    state.stride.Charge(InSeconds(received), weight);
  } else {
    state.stride.debt = 0;
  }
  if (weight == 0 || claimant.newly_ready) state.stride.Leave();
}

QueueView& ProportionalShare::Lowest(std::span<QueueView> ready) const {
  QueueView* lowest = nullptr;
  for (QueueView& claimant : ready) {
    if (WeightOf(claimant) == 0) continue;
    if (lowest == nullptr || StateOf(claimant).stride.pass < StateOf(*lowest).stride.pass) lowest = &claimant;
  }
  return *lowest;
}

}  // namespace xsched::sched
