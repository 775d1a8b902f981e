// A client's agent, as far as the scheduler can tell: it sets the slices that it was sent, by control calls
// that take time and may fail, and tries again until the driver has reported success. Nothing happens while
// its process is stopped, except that a call that is under way ends.
#pragma once

#include "sched/core/policy.h"
#include "sched/sim/device_model.h"

namespace xsched::sched::sim {

class ClientModel {
 public:
  explicit ClientModel(ProcessModel& process) : process_(process) {}

  void Want(int device, Duration slice, TimePoint now);
  // The process has been continued.
  void Continue(TimePoint now) { wake_at_ = now; }
  TimePoint next() const {
    return call_until_ != kNever ? call_until_ : process_.stopped ? kNever : wake_at_;
  }
  // Does what is due. True: the device has another slice now.
  bool Act(TimePoint now);
  // Has it set all that it was sent?
  bool AllSet() const;
  bool HasDriversSlices() const;

 private:
  void End(TimePoint now);
  void Begin(TimePoint now);

  ProcessModel& process_;
  Duration wanted_[kMaxDevices] = {};
  Duration set_[kMaxDevices] = {};  // as the driver has reported
  bool sure_[kMaxDevices] = {true, true, true};
  int calls_ = 0;
  int call_device_ = 0;
  Duration call_slice_{};
  TimePoint call_until_ = kNever;
  TimePoint wake_at_ = kNever;
};

}  // namespace xsched::sched::sim
