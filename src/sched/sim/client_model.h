// A client's agent, as the scheduler sees it. It sets the slices that it was sent. It uses control calls,
// which take time and may fail, and it tries again until the driver reports success. While its process is
// stopped, it only ends a call that is under way.
#pragma once

#include "sched/core/policy.h"
#include "sched/sim/device_model.h"

namespace xsched::sched::sim {

class ClientModel {
 public:
  explicit ClientModel(ProcessModel& process) : process_(process) {}

  void Want(int device, Duration slice, TimePoint now);
  // The process was continued.
  void Continue(TimePoint now) { wake_at_ = now; }
  TimePoint next() const {
    return call_until_ != kNever ? call_until_ : process_.stopped ? kNever : wake_at_;
  }
  // Does what is due. Returns true if a slice of the device has changed.
  bool Act(TimePoint now);
  // True if it has set all that it was sent.
  bool AllSet() const;
  bool HasDriversSlices() const;

 private:
  void End(TimePoint now);
  void Begin(TimePoint now);

  ProcessModel& process_;
  Duration wanted_[kMaxDevices] = {};
  Duration set_[kMaxDevices] = {};  // what the driver reported as set
  bool sure_[kMaxDevices] = {true, true, true};
  int calls_ = 0;
  int call_device_ = 0;
  Duration call_slice_{};
  TimePoint call_until_ = kNever;
  TimePoint wake_at_ = kNever;
};

}  // namespace xsched::sched::sim
