// What a CUDA program's events are to XSched: shim/common/events.h.
#pragma once

#include <cstdint>
#include <optional>

#include "cuda/functions.h"
#include "preempt/api/launch.h"
#include "preempt/queue/query_lock.h"
#include "shim/common/events.h"
#include "shim/cuda/streams.h"

namespace xsched::cuda {

inline uint64_t HandleOf(CUevent event) { return reinterpret_cast<uint64_t>(event); }

// Around cuEventCreate.
class EventCreation {
 public:
  explicit EventCreation(const Call&) {}
  void Finish(CUresult result, const CUevent* event) {
    if (result == CUDA_SUCCESS && event != nullptr) shim::AddEvent(HandleOf(*event));
  }
};

// Around cuEventDestroy.
class EventDestruction {
 public:
  EventDestruction(const Call&, CUevent event) { shim::RemoveEvent(HandleOf(event)); }
  void Finish(CUresult) {}
};

// Around cuEventRecord. What is recorded in a capture happens in the graph's launches.
class EventRecording {
 public:
  EventRecording(const Call& call, CUstream stream, CUevent event);
  void Finish(CUresult result) {
    if (event_ != nullptr && result == CUDA_SUCCESS) event_->Set(point_);
  }

 private:
  shim::Event* event_;
  shim::EventPoint point_;
};

// Around a call that records an event of which nothing is known: cuCtxRecordEvent, of many streams; one that
// is not the program's own.
class UnknownRecording {
 public:
  UnknownRecording(const Call&, CUevent event) : event_(shim::FindEvent(HandleOf(event))) {}
  void Finish(CUresult result) {
    if (event_ != nullptr && result == CUDA_SUCCESS) event_->Set(shim::EventPoint());
  }

 private:
  shim::Event* event_;
};

// Around cuEventSynchronize and cuEventQuery.
class EventWait {
 public:
  EventWait(const Call&, CUevent event) : point_(shim::PointOf(HandleOf(event))) {}
  void Finish(CUresult result) const {
    if (point_.stream != nullptr && result == CUDA_SUCCESS) point_.HasHappened();
  }

 private:
  shim::EventPoint point_;  // of the recording that is waited for: there may be a later one by the end of it
};

// Around cuStreamWaitEvent. A wait for what has not happened yet is a command, where others are scheduled
// against one of the two: the waiter has work to do, be it nothing else, and so may lend its right to run.
class EventOrder {
 public:
  EventOrder(const Call& call, CUstream stream, CUevent event);
  void Finish(CUresult result) {
    if (wait_.has_value()) wait_->Finish(result == CUDA_SUCCESS);
  }

 private:
  std::optional<preempt::LaunchScope> wait_;
  // The wait joins the stream to a capture: our own query of the stream at the same time would spoil that.
  std::optional<preempt::QueryLock> joins_capture_;
};

// Around cuCtxWaitEvent. A null context is the current one.
class ContextOrder {
 public:
  ContextOrder(const Call& call, CUcontext context, CUevent event);
  void Finish(CUresult) {}
};

}  // namespace xsched::cuda
