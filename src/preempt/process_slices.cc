#include "preempt/process_slices.h"

#include "base/log.h"

namespace xsched::preempt {
namespace {

constinit ProcessSlices the_slices;

}  // namespace

ProcessSlices& ProcessSlices::Get() { return the_slices; }

void ProcessSlices::Use(const XProcessOps& ops) {
  MutexLock lock(mutex_);
  ops_ = ops;
}

void ProcessSlices::Want(XDevice device, uint64_t slice_us) {
  MutexLock lock(mutex_);
  Slice* slice = nullptr;
  for (int i = 0; i < count_; ++i) {
    if (slices_[i].device == device) slice = &slices_[i];
  }
  if (slice == nullptr) {
    if (count_ == kMaxDevices) return;
    slice = &slices_[count_++];
    *slice = {device, 0, 0};
  }
  slice->wanted_us = slice_us;
  changed_.store(true, std::memory_order_release);
}

void ProcessSlices::WantDrivers() {
  MutexLock lock(mutex_);
  for (int i = 0; i < count_; ++i) slices_[i].wanted_us = 0;
  changed_.store(true, std::memory_order_release);
}

void ProcessSlices::Apply() {
  XProcessOps ops;
  {
    MutexLock lock(mutex_);
    ops = ops_;
  }
  if (ops.set_slice == nullptr) return;
  if (changed_.exchange(false, std::memory_order_acq_rel)) {
    for (int i = 0;; ++i) {
      Slice slice;
      {
        MutexLock lock(mutex_);
        if (i == count_) break;
        slice = slices_[i];
        slices_[i].set_us = slice.wanted_us;
      }
      if (slice.wanted_us != slice.set_us) ops.set_slice(slice.device, slice.wanted_us);
    }
  }
  ops.refresh();
}

void ProcessSlices::ResetAfterFork() {
  mutex_.ResetAfterFork();
  count_ = 0;
}

}  // namespace xsched::preempt

void ProcessOpsRegister(const XProcessOps* ops) { xsched::preempt::ProcessSlices::Get().Use(*ops); }
