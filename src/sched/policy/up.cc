// Utilisation partition: one queue at a time, each ready one in proportion to its utilisation.
//
// For programs that are to share a device by fixed parts, such as tenants or experiments. What one leaves,
// the others get, in proportion.
//
// It fails where latency counts: a task waits for its turn, up to a round of time slices. On devices that do
// not divide their time by themselves, queues that could fill the device side by side run one after another.
//
// Stride scheduling. A queue's pass is the service it has received per unit of utilisation; the one with the
// lowest pass runs for a slice.
//
// A newcomer starts at the lowest pass of the others, or up to a timeslice's worth behind, if it had used
// more: idle time is no credit, the time that it had the device to itself is no debt, and going idle for a
// moment is no way out of one.
#include <algorithm>
#include <cmath>

#include "sched/core/policy.h"

namespace xsched::sched::up {
namespace {

constexpr PolicyInfo kInfo = {
    .type = kPolicyUtilizationPartition,
    .name = "UP",
    .summary = "utilisation partition: shares of the device's time, one queue at a time",
    .hints = {.utilization = true, .timeslice = true},
};

struct QueueState {
  double uncounted;  // seconds of service that the queue's pass does not count
};

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

class UtilizationPartition final : public PolicyWithState<QueueState> {
 public:
  using PolicyWithState::PolicyWithState;

  TimePoint Decide(const DeviceView& device) const override {
    double total = 0;
    int partners = 0;
    for (QueueView& queue : device.ready) {
      queue.run = false;
      total += queue.hints.utilization;
      partners += queue.hints.utilization > 0;
    }
    if (partners == 0) {
      // Nobody has a share: whoever is there may use the device.
      for (QueueView& queue : device.ready) queue.run = true;
      return kNever;
    }
    LevelNewcomers(device);
    auto slice = [&](const QueueView& queue) {
      double rounds = static_cast<double>(queue.hints.utilization) * partners / total;
      return std::max(Duration(1),
                      Duration(static_cast<int64_t>(static_cast<double>(device.timeslice.count()) * rounds)));
    };
    for (QueueView& queue : device.ready) {
      if (!queue.running || queue.hints.utilization == 0 || device.now >= queue.running_since + slice(queue))
        continue;
      queue.run = true;
      return partners == 1 ? kNever : queue.running_since + slice(queue);
    }
    QueueView* next = Lowest(device.ready);
    next->run = true;
    return partners == 1 ? kNever : device.now + slice(*next);
  }

  // One that has no share runs only when nobody else is ready.
  bool CanHold(const Hints&, const Hints& rival) const override { return rival.utilization > 0; }

  // Slices in proportion: the device does the rest. Not where a process has no share, for the shortest slice
  // is one as well.
  Division Divide(std::span<ProcessView> processes) const override {
    double total = 0;
    for (const ProcessView& process : processes) {
      if (process.utilization <= 0) return Division::kNone;
      total += process.utilization;
    }
    const auto count = static_cast<double>(processes.size());
    for (ProcessView& process : processes) {
      double rounds = process.utilization * count / total;
      process.slice = std::max(kShortestShare, Duration(static_cast<int64_t>(kMeanSlice.count() * rounds)));
    }
    return Division::kAlone;
  }

 private:
  // 3000 to 1000 µs gave 75.3 to 24.7 % at 98.4 % of the native total (H200); 50 µs cost 90 % of it.
  static constexpr Duration kMeanSlice = std::chrono::microseconds(2000);
  static constexpr Duration kShortestShare = std::chrono::microseconds(200);

  static double Pass(const QueueView& queue) {
    return (Seconds(queue.service) - StateOf(queue).uncounted) / queue.hints.utilization;
  }

  static QueueView* Lowest(std::span<QueueView> ready) {
    QueueView* lowest = nullptr;
    for (QueueView& queue : ready) {
      if (queue.hints.utilization > 0 && (lowest == nullptr || Pass(queue) < Pass(*lowest))) lowest = &queue;
    }
    return lowest;
  }

  static void LevelNewcomers(const DeviceView& device) {
    double lowest = INFINITY;  // of who was here
    for (const QueueView& queue : device.ready) {
      if (!queue.newly_ready && queue.hints.utilization > 0) lowest = std::min(lowest, Pass(queue));
    }
    for (QueueView& queue : device.ready) {
      if (!queue.newly_ready || queue.hints.utilization == 0) continue;
      double pass = 0;
      if (!std::isinf(lowest)) {
        pass = std::clamp(Pass(queue), lowest, lowest + Seconds(device.timeslice) / queue.hints.utilization);
      }
      StateOf(queue).uncounted = Seconds(queue.service) - pass * queue.hints.utilization;
    }
  }
};

constinit const UtilizationPartition policy(kInfo);

}  // namespace

const Policy& Get() { return policy; }

}  // namespace xsched::sched::up
