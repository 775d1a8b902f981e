#include "shim/opencl/commands.h"

#include <span>

namespace xsched::opencl {
namespace {

// The event's queue. Null: a user event, or an invalid one.
cl_command_queue QueueOf(const Functions& next, cl_event event) {
  cl_command_queue queue = nullptr;
  if (event == nullptr || next.clGetEventInfo == nullptr) return nullptr;
  cl_int error = next.clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof queue, &queue, nullptr);
  return error == CL_SUCCESS ? queue : nullptr;
}

// Failed commands count as finished: nothing waits for them any more.
bool IsPending(const Functions& next, cl_event event) {
  cl_int status = CL_COMPLETE;
  next.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  return status > CL_COMPLETE;
}

// Asks the driver which queues a command buffer was made for. Returns their number.
cl_uint AskForQueues(const Functions& next, cl_command_buffer_khr recording,
                     cl_command_queue (&queues)[kMaxRecordedQueues]) {
  if (next.clGetCommandBufferInfoKHR == nullptr) return 0;
  size_t size = 0;
  cl_int error =
      next.clGetCommandBufferInfoKHR(recording, CL_COMMAND_BUFFER_QUEUES_KHR, sizeof queues, queues, &size);
  return error == CL_SUCCESS ? static_cast<cl_uint>(size / sizeof queues[0]) : 0;
}

}  // namespace

void AddDependencies(const Functions& next, preempt::XQueue* waiter, cl_uint count, const cl_event* events) {
  // Otherwise the driver need not be asked whose events these are.
  if (!preempt::TracksDependencies(waiter) && !preempt::AnyTracksDependencies()) return;
  // The program may hold locks that its callbacks need.
  preempt::OwnDriverCall guard;
  for (cl_uint i = 0; i < count; ++i) {
    preempt::XQueue* owner = nullptr;
    if (cl_command_queue queue = QueueOf(next, events[i]))
      owner = preempt::FindXQueue(kPlatformOpenCL, KeyOf(queue));
    if (owner != nullptr && preempt::TracksDependency(waiter, owner) && IsPending(next, events[i]))
      preempt::AddDependency(waiter, owner, preempt::SubmittedNow(owner));
  }
}

void Launch::Note(bool blocking, const cl_event* event) {
  QueueRecord* record = FindRecord(queue_);
  if (!follows_all_before_ || record == nullptr || !record->in_order.load(std::memory_order_relaxed)) return;
  if (blocking) {
    preempt::RetiredUpTo(xqueue_, scope_.number());
  } else {
    record->newest_event.Set(*event, scope_.number());
  }
}

RecordingLaunch::RecordingLaunch(const Call& call, cl_uint count, const cl_command_queue* queues,
                                 cl_command_buffer_khr recording, cl_uint wait_count, const cl_event* waits) {
  guard_.emplace();
  const Functions& next = call.next();
  cl_command_queue answer[kMaxRecordedQueues];
  if (const Recording* known = count == 0 ? FindRecording(recording) : nullptr) {
    count = known->count;
    queues = known->queues;
  } else if (count == 0) {
    count = AskForQueues(next, recording, answer);
    queues = answer;
  }
  for (cl_uint i = 0; queues != nullptr && i < count && i < kMaxRecordedQueues; ++i) {
    preempt::XQueue* xqueue = preempt::FindXQueue(kPlatformOpenCL, KeyOf(queues[i]));
    if (xqueue == nullptr) continue;
    if (wait_count != 0 && waits != nullptr) AddDependencies(next, xqueue, wait_count, waits);
    scopes_[i].emplace(xqueue);
  }
}

void RecordingLaunch::Finish(bool launched) {
  guard_.reset();
  for (std::optional<preempt::LaunchScope>& scope : scopes_) {
    if (scope.has_value()) scope->Finish(launched);
  }
}

EventWait::EventWait(const Call& call, cl_uint count, const cl_event* events) {
  for (cl_uint i = 0; events != nullptr && i < count && count_ < kMaxQueues; ++i) {
    if (Find(call.next(), events[i], &awaited_[count_])) ++count_;
  }
}

bool EventWait::Find(const Functions& next, cl_event event, Awaited* found) {
  cl_command_queue queue = QueueOf(next, event);
  preempt::XQueue* xqueue = queue == nullptr ? nullptr : ScheduledQueue(queue);
  QueueRecord* record = xqueue == nullptr ? nullptr : FindRecord(queue);
  if (record == nullptr || !record->in_order.load(std::memory_order_relaxed)) return false;
  const uint64_t number = record->newest_event.NumberOf(event, preempt::SubmittedNow(xqueue));
  *found = {queue, xqueue, number};
  return number != 0;
}

void EventWait::NoteProgress() const {
  for (const Awaited& awaited : std::span(awaited_, count_)) {
    // Meanwhile, both may have become another queue's.
    if (ScheduledQueue(awaited.queue) == awaited.xqueue) preempt::RetiredUpTo(awaited.xqueue, awaited.number);
  }
}

}  // namespace xsched::opencl
