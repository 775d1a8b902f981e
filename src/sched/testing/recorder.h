// A ControlSink that remembers, for tests and the simulator.
#pragma once

#include <cstdint>
#include <map>
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
  void SetSlice(ProcessId process, DeviceId, Duration slice) override {
    slices[process] = slice;
    ++slice_changes;
  }

  // What the scheduler last said of the queue; the defaults if nothing.
  Control Of(QueueId queue) const {
    auto found = controls_.find(queue);
    return found == controls_.end() ? Control{} : found->second;
  }

  std::vector<QueueId> changes;
  std::map<QueueId, int> queries;
  std::map<ProcessId, Duration> slices;
  int slice_changes = 0;

 private:
  std::map<QueueId, Control> controls_;
};

}  // namespace xsched::sched
