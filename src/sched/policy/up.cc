// Utilisation partition: one queue at a time, each ready one in proportion to its utilisation.
//
// Stride scheduling. A queue's pass is the service it has received per unit of utilisation; the one with the
// lowest pass runs for a slice. A queue that comes back from idle starts at the lowest pass of the others:
// idle time is no credit. The note of a queue is the service that its pass does not count.
#include <algorithm>
#include <cmath>

#include "sched/policy/policies.h"

namespace xsched::sched {
namespace {

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

double Pass(const QueueView& queue) {
  return (Seconds(queue.service) - queue.note) / queue.hints.utilization;
}

class UtilizationPartition final : public Policy {
 public:
  XPolicyType type() const override { return kPolicyUtilizationPartition; }

  TimePoint Decide(TimePoint now, Duration timeslice, std::span<QueueView> ready) const override {
    double total = 0;
    int partners = 0;
    for (QueueView& queue : ready) {
      queue.run = false;
      total += queue.hints.utilization;
      partners += queue.hints.utilization > 0;
    }
    if (partners == 0) {
      // Nobody has a share: whoever is there may use the device.
      for (QueueView& queue : ready) queue.run = true;
      return kNever;
    }
    LevelNewcomers(ready);
    auto slice = [&](const QueueView& queue) {
      double rounds = static_cast<double>(queue.hints.utilization) * partners / total;
      return std::max(Duration(1),
                      Duration(static_cast<int64_t>(static_cast<double>(timeslice.count()) * rounds)));
    };
    for (QueueView& queue : ready) {
      if (!queue.running || queue.hints.utilization == 0 || now >= queue.running_since + slice(queue))
        continue;
      queue.run = true;
      return partners == 1 ? kNever : queue.running_since + slice(queue);
    }
    QueueView* next = Lowest(ready);
    next->run = true;
    return partners == 1 ? kNever : now + slice(*next);
  }

  bool CanHold(const Hints&, const Hints&) const override { return true; }

 private:
  static QueueView* Lowest(std::span<QueueView> ready) {
    QueueView* lowest = nullptr;
    for (QueueView& queue : ready) {
      if (queue.hints.utilization > 0 && (lowest == nullptr || Pass(queue) < Pass(*lowest))) lowest = &queue;
    }
    return lowest;
  }

  static void LevelNewcomers(std::span<QueueView> ready) {
    double lowest = INFINITY;
    for (const QueueView& queue : ready) {
      if (!queue.fresh && queue.hints.utilization > 0) lowest = std::min(lowest, Pass(queue));
    }
    for (QueueView& queue : ready) {
      if (!queue.fresh || queue.hints.utilization == 0) continue;
      double level = std::isinf(lowest) ? 0 : lowest;
      if (Pass(queue) < level || std::isinf(lowest)) {
        queue.note = Seconds(queue.service) - level * queue.hints.utilization;
      }
    }
  }
};

constinit const UtilizationPartition policy;

}  // namespace

const Policy& UtilizationPartitionPolicy() { return policy; }

}  // namespace xsched::sched
