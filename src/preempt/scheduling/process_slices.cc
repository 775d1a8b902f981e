#include "preempt/scheduling/process_slices.h"

#include <string.h>

namespace xsched::preempt {

void ProcessSlices::Use(const XProcessOps& ops) {
  MutexLock lock(mutex_);
  // If the HAL was built before the last fields were added, these stay null.
  ops_ = XProcessOps{};
  memcpy(static_cast<void*>(&ops_), &ops, ops.size < sizeof ops_ ? ops.size : sizeof ops_);
}

XProcessOps ProcessSlices::Ops() {
  MutexLock lock(mutex_);
  return ops_;
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
    *slice = {device, 0, 0, false};
  }
  slice->wanted_us = slice_us;
  changed_.store(true, std::memory_order_release);
}

void ProcessSlices::WantDrivers() {
  MutexLock lock(mutex_);
  for (int i = 0; i < count_; ++i) slices_[i].wanted_us = 0;
  changed_.store(true, std::memory_order_release);
}

bool ProcessSlices::AnyTaken() {
  MutexLock lock(mutex_);
  for (int i = 0; i < count_; ++i) {
    if (slices_[i].wanted_us != 0 || slices_[i].set_us != 0 || slices_[i].unknown) return true;
  }
  return false;
}

bool ProcessSlices::SetSlices(const XProcessOps& ops) {
  bool all = true;
  for (int i = 0;; ++i) {
    Slice slice;
    {
      MutexLock lock(mutex_);
      if (i == count_) return all;
      slice = slices_[i];
    }
    if (slice.wanted_us == slice.set_us && !slice.unknown) continue;
    const bool set = ops.set_slice(slice.device, slice.wanted_us) == kXSchedSuccess;
    all &= set;
    MutexLock lock(mutex_);
    slices_[i].set_us = slice.wanted_us;
    slices_[i].unknown = !set;
  }
}

TimePoint ProcessSlices::Apply(TimePoint now) {
  const XProcessOps ops = Ops();
  if (ops.set_slice == nullptr) return kNever;
  MutexLock applying(applying_);
  if (changed_.exchange(false, std::memory_order_acq_rel)) retry_.Reset();
  if (!retry_.due(now)) return retry_.next();
  bool all = SetSlices(ops);
  if (ops.settle != nullptr) {
    all &= ops.settle();
  } else {
    ops.refresh();
  }
  if (all) {
    retry_.Reset();
  } else {
    retry_.Failed(now);
  }
  // If something else was wanted meanwhile, it is set at once.
  return changed_.load(std::memory_order_acquire) ? now : retry_.next();
}

bool ProcessSlices::Settled() {
  const XProcessOps ops = Ops();
  return ops.settle == nullptr || ops.settle();
}

void ProcessSlices::ResetAfterFork() {
  applying_.ResetAfterFork();
  mutex_.ResetAfterFork();
  retry_.Reset();
  count_ = 0;
}

}  // namespace xsched::preempt
