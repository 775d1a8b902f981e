#include "sched/sim/device_model.h"

#include <algorithm>
#include <cmath>

#include "sched/core/policy.h"

namespace xsched::sched::sim {
namespace {

constexpr Duration kDriversOwn = microseconds(2048);  // the driver's own slice
// With a slice up to this, a process makes no progress while another is runnable.
constexpr Duration kUseless = microseconds(10);

Duration Length(Duration slice) { return slice == kDriversSlice ? kDriversOwn : slice; }

}  // namespace

void DeviceModel::SetHead(QueueModel& queue, int commands, double work) const {
  queue.head_commands = commands;
  queue.head_left = work;
  queue.stage = Stage::kHeld;
}

bool DeviceModel::MayUse(const ProcessModel& process, int device) const {
  return process.alive && process.slice[device] != kNoSlice && !process.own_off[device];
}

bool DeviceModel::IsSatisfied(const QueueModel& queue) const {
  if (queue.await_arrived == 0) return true;
  const QueueModel& target = queues_[static_cast<size_t>(queue.script->target)];
  return !target.exists || target.arrived >= queue.await_arrived;
}

uint64_t DeviceModel::Coming(const QueueModel& queue) {
  if (!queue.exists || !queue.HasHead()) return 0;
  const bool has_next = queue.submitted > queue.retired + static_cast<uint64_t>(queue.head_commands);
  return static_cast<uint64_t>(queue.stage != Stage::kSpins) + static_cast<uint64_t>(has_next);
}

bool DeviceModel::MayStart(const QueueModel& queue) const {
  const ProcessModel& process = processes_[static_cast<size_t>(queue.script->process)];
  return !queue.suspended && (!queue.hold || queue.overrun > 0) && MayUse(process, queue.script->device);
}

void DeviceModel::Settle(TimePoint now) {
  for (ProcessModel& process : processes_) {
    std::fill_n(process.wants, kMaxDevices, false);
    std::fill_n(process.executing, kMaxDevices, 0);
  }
  for (QueueModel& queue : queues_) {
    if (!queue.HasHead()) continue;
    if (!queue.Started()) {
      const QueueModel& target = queues_[static_cast<size_t>(queue.script->target)];
      const bool waits = queue.await_retired != 0 && target.exists && target.retired < queue.await_retired;
      queue.stage = waits ? Stage::kAwaits : Stage::kHeld;
      if (!waits && MayStart(queue)) {
        queue.stage = Stage::kExecutes;
        if (queue.hold) --queue.overrun;
      }
    }
    ProcessModel& process = processes_[static_cast<size_t>(queue.script->process)];
    const int device = queue.script->device;
    // At level 1, what is held is not on the device.
    process.wants[device] |=
        MayUse(process, device) && (queue.stage != Stage::kHeld || process.script->level > 1);
    process.executing[device] += queue.stage == Stage::kExecutes;
  }
  Divide(now);
}

void DeviceModel::Divide(TimePoint now) {
  Duration total[kMaxDevices] = {};
  int runnable[kMaxDevices] = {};
  for (const ProcessModel& process : processes_) {
    for (int device = 0; device < kMaxDevices; ++device) {
      if (!process.wants[device]) continue;
      ++runnable[device];
      total[device] += Length(process.slice[device]);
    }
  }
  for (QueueModel& queue : queues_) {
    queue.rate = 0;
    queue.finish_at = kNever;
    if (queue.stage != Stage::kExecutes) continue;
    const int device = queue.script->device;
    const ProcessModel& process = processes_[static_cast<size_t>(queue.script->process)];
    if (!process.wants[device]) continue;
    const Duration slice = Length(process.slice[device]);
    if (runnable[device] > 1 && slice <= kUseless) continue;
    const double share = static_cast<double>(slice.count()) / static_cast<double>(total[device].count());
    queue.rate = share / process.executing[device];
    queue.finish_at =
        now + Duration(static_cast<int64_t>(std::ceil(std::max(0.0, queue.head_left) / queue.rate)));
  }
}

void DeviceModel::Advance(Duration time) {
  for (QueueModel& queue : queues_) {
    if (queue.rate > 0) queue.head_left -= queue.rate * static_cast<double>(time.count());
  }
}

TimePoint DeviceModel::NextFinish() const {
  TimePoint next = kNever;
  for (const QueueModel& queue : queues_) next = std::min(next, queue.finish_at);
  return next;
}

}  // namespace xsched::sched::sim
