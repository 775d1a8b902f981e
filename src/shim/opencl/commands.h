// The scopes of commands and waits, which the generated wrappers use. The program sees no difference: the
// arguments, the result and the side effects of its calls are the driver's.
//
// During a call, nested calls pass through: those of a layer below, and of the driver to its own entry
// points. They belong to the command that is counted already. Those of the program's callbacks do not
// (callbacks.h).
#pragma once

#include <optional>

#include "preempt/api/launch.h"
#include "shim/opencl/call.h"
#include "shim/opencl/callbacks.h"
#include "shim/opencl/queues.h"
#include "shim/opencl/recordings.h"

namespace xsched::opencl {

// Null: not scheduled.
inline preempt::XQueue* ScheduledQueue(cl_command_queue queue) {
  return preempt::FindXQueue(kPlatformOpenCL, KeyOf(queue));
}

// Notifies the scheduler of the queues that the next command of `waiter` waits for.
void AddDependencies(const Functions& next, preempt::XQueue* waiter, cl_uint count, const cl_event* events);

class Launch {
 public:
  Launch(const Call& call, cl_command_queue queue, cl_uint wait_count, const cl_event* waits)
      : queue_(queue),
        xqueue_(ScheduledQueue(queue)),
        issued_before_(Announce(call.next(), xqueue_, wait_count, waits)),
        scope_(xqueue_),
        follows_all_before_(xqueue_ != nullptr && preempt::HasAllBefore(issued_before_, scope_.number())) {
    if (xqueue_ != nullptr) guard_.emplace();
  }

  // `blocking`: the call returned after the command had finished. `event`: points to the command's event, or
  // null.
  void Finish(bool launched, cl_bool blocking, const cl_event* event) {
    if (xqueue_ == nullptr) return;
    guard_.reset();
    scope_.Finish(launched);
    if (launched && (blocking != CL_FALSE || event != nullptr)) Note(blocking != CL_FALSE, event);
  }

 private:
  // Returns how many commands of the queue the driver has by then.
  static uint64_t Announce(const Functions& next, preempt::XQueue* xqueue, cl_uint count,
                           const cl_event* events) {
    if (xqueue == nullptr) return 0;
    if (count != 0 && events != nullptr) AddDependencies(next, xqueue, count, events);
    return xqueue->issued();
  }
  void Note(bool blocking, const cl_event* event);

  cl_command_queue queue_;
  preempt::XQueue* xqueue_;
  const uint64_t issued_before_;
  preempt::LaunchScope scope_;
  const bool follows_all_before_;  // for the driver, too
  std::optional<preempt::ReentrancyGuard> guard_;
};

// A launch of a command that calls a function of the program.
template <typename Function>
class CallingLaunch {
 public:
  CallingLaunch(const Call& call, Function& function, void*& data, cl_command_queue queue, cl_uint wait_count,
                const cl_event* waits)
      : callback_(call, function, data), launch_(call, queue, wait_count, waits) {}
  void Finish(bool launched, cl_bool blocking, const cl_event* event) {
    launch_.Finish(launched, blocking, event);
    callback_.Finish(launched);
  }

 private:
  EndCallback<Function> callback_;
  Launch launch_;
};

// The launch of a command buffer, on the given queues. Without any, on those that it was recorded for.
class RecordingLaunch {
 public:
  RecordingLaunch(const Call& call, cl_uint count, const cl_command_queue* queues,
                  cl_command_buffer_khr recording, cl_uint wait_count, const cl_event* waits);
  void Finish(bool launched);

 private:
  std::optional<preempt::LaunchScope> scopes_[kMaxRecordedQueues];
  std::optional<preempt::ReentrancyGuard> guard_;
};

// clFinish.
class QueueWait {
 public:
  QueueWait(const Call&, cl_command_queue queue) : xqueue_(ScheduledQueue(queue)) {
    if (xqueue_ == nullptr) return;
    newest_ = preempt::SubmittedNow(xqueue_);
    guard_.emplace();
  }
  void Finish(bool waited) {
    if (xqueue_ != nullptr && waited) preempt::RetiredUpTo(xqueue_, newest_);
  }

 private:
  preempt::XQueue* xqueue_;
  uint64_t newest_ = 0;
  std::optional<preempt::ReentrancyGuard> guard_;
};

// clWaitForEvents. For out-of-order queues, and for those beyond kMaxQueues, markers report progress instead.
//
// The events are looked at before the call. Afterwards, a callback may have released them.
class EventWait {
 public:
  EventWait(const Call& call, cl_uint count, const cl_event* events);
  void Finish(bool waited) const {
    if (waited) NoteProgress();
  }

 private:
  // The event that the call waits for is of this command.
  struct Awaited {
    cl_command_queue queue;
    preempt::XQueue* xqueue;
    uint64_t number;
  };
  static constexpr cl_uint kMaxQueues = 4;

  // False: the end of the event shows nothing.
  static bool Find(const Functions& next, cl_event event, Awaited* found);
  void NoteProgress() const;

  preempt::ReentrancyGuard guard_;
  cl_uint count_ = 0;
  Awaited awaited_[kMaxQueues];
};

}  // namespace xsched::opencl
