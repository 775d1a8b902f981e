// The program's events: which stream each was recorded on last, and behind which command. So a wait of one
// stream for another is known to the scheduler, and a wait of the program tells how far a stream is.
//
// Events are met when they are made; of others (another process's) nothing is known.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "cuda/functions.h"
#include "preempt/launch.h"
#include "shim/cuda/streams.h"

namespace xsched::cuda {

// Behind the command `number` of a stream. Null: nothing is known.
struct EventPoint {
  Stream* stream = nullptr;
  uint32_t life = 0;
  uint64_t number = 0;

  // Null: the stream is gone.
  preempt::XQueue* Queue() const;
  void HasHappened() const;
};

// Written and read without a lock, as one:
//   version even --Set--> odd (being written) --> even, 2 more
class Event {
 public:
  void Set(const EventPoint& point);
  EventPoint Get() const;

 private:
  friend class EventTable;
  std::atomic<uint32_t> version_{0};
  std::atomic<Stream*> stream_{nullptr};
  std::atomic<uint32_t> life_{0};
  std::atomic<uint64_t> number_{0};
  Event* next_free_ = nullptr;
};

// Around cuEventCreate.
class EventCreation {
 public:
  void Finish(CUresult result, const CUevent* event);
};

// Around cuEventDestroy.
class EventDestruction {
 public:
  explicit EventDestruction(CUevent event);
  void Finish(CUresult) {}
};

// Around cuEventRecord. What is recorded in a capture happens in the graph's launches.
class EventRecording {
 public:
  EventRecording(CUstream stream, CUevent event);
  void Finish(CUresult result) {
    if (event_ != nullptr && result == CUDA_SUCCESS) event_->Set(point_);
  }

 private:
  Event* event_;
  EventPoint point_;
};

// Around cuCtxRecordEvent: an event of many streams, of which nothing is known.
class ContextRecording {
 public:
  explicit ContextRecording(CUevent event);
  void Finish(CUresult result) {
    if (event_ != nullptr && result == CUDA_SUCCESS) event_->Set(EventPoint());
  }

 private:
  Event* event_;
};

// Around cuEventSynchronize and cuEventQuery.
class EventWait {
 public:
  explicit EventWait(CUevent event);
  void Finish(CUresult result) const {
    if (point_.stream != nullptr && result == CUDA_SUCCESS) point_.HasHappened();
  }

 private:
  EventPoint point_;  // of the recording that is waited for: there may be a later one by the end of the wait
};

// Around cuStreamWaitEvent. A wait for what has not happened yet is a command, where others are scheduled
// against one of the two: the waiter has work to do, be it nothing else, and so may lend its right to run.
class EventOrder {
 public:
  EventOrder(CUstream stream, CUevent event);
  void Finish(CUresult result) {
    if (wait_.has_value()) wait_->Finish(result == CUDA_SUCCESS);
  }

 private:
  std::optional<preempt::LaunchScope> wait_;
};

// Around cuCtxWaitEvent. A null context is the current one.
class ContextOrder {
 public:
  ContextOrder(CUcontext context, CUevent event);
  void Finish(CUresult) {}
};

}  // namespace xsched::cuda
