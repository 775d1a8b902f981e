// The program's events: on which stream each was recorded last, and behind which command. So the scheduler
// knows when one stream waits for another, and a wait of the program shows the progress of a stream.
//
// Events are registered by their handles when they are made. Of others, such as another process's, nothing is
// known. Nor is it of an event that something else than the program's calls may record, such as a graph.
#pragma once

#include <atomic>
#include <cstdint>

#include "preempt/api/launch.h"
#include "shim/common/streams.h"

namespace xsched::shim {

// A point behind the command `number` of a stream. Null: unknown, or in a capture.
struct EventPoint {
  Stream* stream = nullptr;
  uint32_t life = 0;
  uint64_t number = 0;

  static EventPoint InCapture() { return {nullptr, 0, UINT64_MAX}; }
  bool in_capture() const { return stream == nullptr && number == UINT64_MAX; }

  // The point behind all commands that are on the stream now.
  static EventPoint NewestOn(Stream* stream, preempt::XQueue* queue) {
    return {stream, stream->life.load(std::memory_order_acquire), preempt::SubmittedNow(queue)};
  }

  // Null: the stream does not exist any more.
  preempt::XQueue* Queue() const;
  void HasHappened() const;
  // The queue on which a wait of `waiter` for this depends. Null: the event has happened, or no scheduler
  // needs to know.
  preempt::XQueue* AwaitedBy(preempt::XQueue* waiter) const;
};

// Written and read atomically, without a lock (a seqlock):
//   version even --Set--> odd (being written) --> even, 2 more
class Event {
 public:
  void Set(const EventPoint& point);
  EventPoint Get() const;
  // From now on it is recorded by more than calls: its point on a stream is unknown, whatever is set.
  void IsRecordedUnseen() { seen_.store(false, std::memory_order_release); }

 private:
  friend class EventTable;
  std::atomic<bool> seen_{true};
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
