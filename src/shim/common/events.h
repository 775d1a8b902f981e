// The program's events: which stream each was recorded on last, and behind which command. So a wait of one
// stream for another is known to the scheduler, and a wait of the program tells how far a stream is.
//
// Events are registered when they are made, by their handles; of others (another process's) nothing is known.
#pragma once

#include <atomic>
#include <cstdint>

#include "preempt/api/launch.h"
#include "shim/common/streams.h"

namespace xsched::shim {

// Behind the command `number` of a stream. Null: nothing is known, but that it may be in a capture.
struct EventPoint {
  Stream* stream = nullptr;
  uint32_t life = 0;
  uint64_t number = 0;

  static EventPoint InCapture() { return {nullptr, 0, UINT64_MAX}; }
  bool in_capture() const { return stream == nullptr && number == UINT64_MAX; }

  // Behind what is on it by now.
  static EventPoint NewestOn(Stream* stream, preempt::XQueue* queue) {
    return {stream, stream->life.load(std::memory_order_acquire), preempt::SubmittedNow(queue)};
  }

  // Null: the stream is gone.
  preempt::XQueue* Queue() const;
  void HasHappened() const;
  // Whom a wait of `waiter` for this is to be told of, unless it has happened. Null: nobody cares.
  preempt::XQueue* AwaitedBy(preempt::XQueue* waiter) const;
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

// Null: not known.
Event* FindEvent(uint64_t handle);
EventPoint PointOf(uint64_t handle);
// These two take locks.
void AddEvent(uint64_t handle);
void RemoveEvent(uint64_t handle);

}  // namespace xsched::shim
