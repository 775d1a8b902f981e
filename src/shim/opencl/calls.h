// What happens around an intercepted call, by its kind (registry/opencl.txt). The generated wrappers use these.
#pragma once

#include "hal/opencl/driver.h"
#include "preempt/launch.h"
#include "shim/opencl/queues.h"

namespace xsched::opencl {

inline preempt::XQueue* XQueueOf(cl_command_queue queue) {
  return queue == nullptr ? nullptr : preempt::FindXQueue(kPlatformOpenCL, reinterpret_cast<uint64_t>(queue));
}

// Tells the scheduler which other queues `waiter` waits for.
void NoteDependencies(preempt::XQueue* waiter, cl_command_queue queue, cl_uint count, const cl_event* events);

class LaunchCall {
 public:
  LaunchCall(cl_command_queue queue, cl_uint wait_count, const cl_event* waits)
      : queue_(queue), xqueue_(XQueueOf(queue)), scope_(xqueue_) {
    if (xqueue_ != nullptr && wait_count != 0 && waits != nullptr && preempt::TracksDependencies(xqueue_)) {
      NoteDependencies(xqueue_, queue, wait_count, waits);
    }
  }

  // `blocking`: the call returned when its command, and on an in-order queue all before it, had finished.
  void Finish(bool launched, cl_bool blocking) {
    if (xqueue_ == nullptr) return;
    scope_.Finish(launched);
    if (launched && blocking != CL_FALSE && IsInOrder(queue_)) preempt::RetiredUpTo(xqueue_, scope_.number());
  }

 private:
  cl_command_queue queue_;
  preempt::XQueue* xqueue_;
  preempt::LaunchScope scope_;
  // The driver may call other functions of OpenCL, through another route that is wrapped as well.
  preempt::ReentrancyGuard guard_;
};

class FinishCall {
 public:
  explicit FinishCall(cl_command_queue queue)
      : xqueue_(XQueueOf(queue)), newest_(xqueue_ == nullptr ? 0 : preempt::SubmittedNow(xqueue_)) {}
  void Finish(bool finished) {
    if (xqueue_ != nullptr && finished) preempt::RetiredUpTo(xqueue_, newest_);
  }

 private:
  preempt::XQueue* xqueue_;
  uint64_t newest_;
  preempt::ReentrancyGuard guard_;
};

}  // namespace xsched::opencl
