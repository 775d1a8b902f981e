// A ControlSink that records everything, for tests and the simulator.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sched/core/scheduler.h"

namespace xsched::sched {

class Recorder final : public ControlSink {
 public:
  void SetControl(QueueId queue, const Control& control) override {
    controls_[queue] = control;
    changes.push_back(queue);
  }
  void Query(QueueId queue) override { ++queries[queue]; }
  void SetSlice(ProcessId process, DeviceId device, Duration slice) override {
    slices[process] = slice;
    slices_on_[{process, device}] = slice;
    ++slice_changes;
  }

  void SetTurn(ProcessId process, DeviceId device, bool has_turn) override {
    if (has_turn) {
      turns_[device].insert(process);
    } else {
      turns_[device].erase(process);
    }
    ++turn_changes;
  }

  // The last control of the queue; the default if there was none.
  Control Of(QueueId queue) const {
    auto found = controls_.find(queue);
    return found == controls_.end() ? Control{} : found->second;
  }

  // The last slice of the process on the device; the driver's if there was none.
  Duration SliceOf(ProcessId process, DeviceId device) const {
    auto found = slices_on_.find({process, device});
    return found == slices_on_.end() ? kDriversSlice : found->second;
  }

  // The processes that have their turn on the device: at most one.
  const std::set<ProcessId>& WithTurn(DeviceId device) { return turns_[device]; }

  std::vector<QueueId> changes;
  std::map<QueueId, int> queries;
  std::map<ProcessId, Duration> slices;
  int slice_changes = 0;
  int turn_changes = 0;

 private:
  std::map<QueueId, Control> controls_;
  std::map<std::pair<ProcessId, DeviceId>, Duration> slices_on_;
  std::map<DeviceId, std::set<ProcessId>> turns_;
};

}  // namespace xsched::sched
