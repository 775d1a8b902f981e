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

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

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
  const double per_weight = std::max(Seconds(kMeanSlice) * static_cast<double>(processes.size()) / total,
                                     Seconds(kShortestShare) / lowest);
  if (highest * per_weight > Seconds(kLongestShare)) return OnlyTheRunningOne(processes);
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
    const double weight = WeightOf(claimant);
    total += weight;
    partners += weight > 0;
  }
  if (partners == 0) {
    // None has a share: all may use the device.
    for (QueueView& claimant : device.ready) claimant.run = true;
    return kNever;
  }
  LevelNewcomers(device);
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
    Remember(device);
    return partners == 1 ? kNever : end;
  }
  QueueView& next = Lowest(device.ready);
  next.run = true;
  Remember(device);
  return partners == 1 ? kNever : device.now + slice(next);
}

double ProportionalShare::Pass(const QueueView& claimant) const {
  const ShareState& state = StateOf(claimant);
  return state.pass + Seconds(claimant.service - state.service) / WeightOf(claimant);
}

QueueView& ProportionalShare::Lowest(std::span<QueueView> ready) const {
  QueueView* lowest = nullptr;
  double lowest_pass = kNobody;
  for (QueueView& claimant : ready) {
    if (WeightOf(claimant) == 0) continue;
    const double pass = Pass(claimant);
    if (lowest != nullptr && pass >= lowest_pass) continue;
    lowest = &claimant;
    lowest_pass = pass;
  }
  return *lowest;
}

void ProportionalShare::LevelNewcomers(const DeviceView& device) const {
  double lowest = kNobody;  // of those that were ready before
  for (const QueueView& claimant : device.ready) {
    if (!claimant.newly_ready && WeightOf(claimant) > 0) lowest = std::min(lowest, Pass(claimant));
  }
  double& clock = StateOf(device).lowest;
  if (lowest != kNobody) clock = lowest;
  for (QueueView& claimant : device.ready) {
    const double weight = WeightOf(claimant);
    if (!claimant.newly_ready || weight == 0) continue;
    ShareState& state = StateOf(claimant);
    // A held claimant received what it overran since.
    const double debt = state.ahead + (state.held ? Seconds(claimant.service - state.service) : 0);
    const double most = std::max(Seconds(device.timeslice), debt);
    state.pass = std::clamp(Pass(claimant), clock, clock + most / weight);
    state.service = claimant.service;
  }
}

void ProportionalShare::Remember(const DeviceView& device) const {
  const double lowest = StateOf(device).lowest = Pass(Lowest(device.ready));
  for (QueueView& claimant : device.ready) {
    const double weight = WeightOf(claimant);
    if (weight == 0) continue;
    ShareState& state = StateOf(claimant);
    state.pass = Pass(claimant);
    state.ahead = (state.pass - lowest) * weight;
    state.service = claimant.service;
    state.held = !claimant.run;
  }
}

}  // namespace xsched::sched
