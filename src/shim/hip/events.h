// What a HIP program's events are to XSched: shim/common/events.h, for the events of any copy of the runtime.
#pragma once

#include <cstdint>
#include <optional>

#include "shim/common/events.h"
#include "shim/hip/streams.h"

namespace xsched::hip {

inline uint64_t HandleOf(hipEvent_t event) { return reinterpret_cast<uint64_t>(event); }

// Around hipEventCreate.
class EventCreation {
 public:
  explicit EventCreation(const Call&) {}
  void Finish(hipError_t result, const hipEvent_t* event) {
    if (result == hipSuccess && event != nullptr) shim::AddEvent(HandleOf(*event));
  }
};

// Around hipEventDestroy.
class EventDestruction {
 public:
  EventDestruction(const Call&, hipEvent_t event) { shim::RemoveEvent(HandleOf(event)); }
  void Finish(hipError_t) {}
};

// Around hipEventRecord. What is recorded in a capture happens in the graph's launches.
class EventRecording {
 public:
  EventRecording(const Call& call, hipStream_t stream, hipEvent_t event);
  void Finish(hipError_t result) {
    if (event_ != nullptr && result == hipSuccess) event_->Set(point_);
  }

 private:
  shim::Event* event_;
  shim::EventPoint point_;
};

// Around hipEventSynchronize and hipEventQuery.
class EventWait {
 public:
  EventWait(const Call&, hipEvent_t event) : point_(shim::PointOf(HandleOf(event))) {}
  void Finish(hipError_t result) const {
    if (point_.stream != nullptr && result == hipSuccess) point_.HasHappened();
  }

 private:
  shim::EventPoint point_;  // of the recording that is waited for: there may be a later one by the end of it
};

// Around hipStreamWaitEvent. A wait for what has not happened yet is a command, where others are scheduled
// against one of the two: the waiter has work to do, be it nothing else, and so may lend its right to run.
class EventOrder {
 public:
  EventOrder(const Call& call, hipStream_t stream, hipEvent_t event);
  void Finish(hipError_t result) {
    if (wait_.has_value()) wait_->Finish(result == hipSuccess);
  }

 private:
  std::optional<preempt::LaunchScope> wait_;
};

}  // namespace xsched::hip
