// The program's command queues, from their creation to the program's last release.
#pragma once

#include <atomic>
#include <cstdint>

#include "preempt/api/launch.h"
#include "shim/opencl/call.h"
#include "shim/opencl/records.h"

namespace xsched::opencl {

inline uint64_t KeyOf(cl_command_queue queue) { return reinterpret_cast<uint64_t>(queue); }

// The newest command of a queue whose event the program has, and that event. They are one word, so that both
// change atomically: the low halves of the command's number and of the event's address.
class NewestEvent {
 public:
  void Set(cl_event event, uint64_t number) { word_.store(Pack(event, number), std::memory_order_relaxed); }
  void Clear() { word_.store(0, std::memory_order_relaxed); }
  // The command's number if it is `event`'s, given that the queue's newest is `submitted`; else 0.
  uint64_t NumberOf(cl_event event, uint64_t submitted) const {
    uint64_t word = word_.load(std::memory_order_relaxed);
    if (word == 0 || (word ^ Pack(event, 0)) >> 32 != 0) return 0;
    uint32_t behind = static_cast<uint32_t>(submitted) - static_cast<uint32_t>(word);
    return behind < submitted ? submitted - behind : 0;
  }

 private:
  // Objects are aligned, so the lowest bits of their addresses carry no information.
  static uint64_t Pack(cl_event event, uint64_t number) {
    return (reinterpret_cast<uint64_t>(event) >> 4) << 32 | static_cast<uint32_t>(number);
  }
  std::atomic<uint64_t> word_{0};
};

struct QueueRecord : CountedRecord<QueueRecord> {
  std::atomic<bool> in_order{false};
  NewestEvent newest_event;
};

// Null: we did not see its creation.
QueueRecord* FindRecord(cl_command_queue queue);

// The scope of a call that makes a queue.
class QueueCreation {
 public:
  explicit QueueCreation(const Call& call) : next_(call.next()) {}
  void Finish(bool created, cl_command_queue queue);

 private:
  const Functions& next_;
  preempt::ReentrancyGuard guard_;
};

// The scope of clRetainCommandQueue.
class QueueRetention {
 public:
  QueueRetention(const Call& call, cl_command_queue queue) : next_(call.next()), queue_(queue) {}
  void Finish(bool retained);

 private:
  const Functions& next_;
  cl_command_queue queue_;
};

// The scope of clReleaseCommandQueue.
class QueueRelease {
 public:
  // Before the call: after the last release the queue may not exist any more, and its handle may be reused.
  QueueRelease(const Call&, cl_command_queue queue);
  void Finish(bool) {}
};

// The scope of a call that may change a queue's properties, also where it fails.
class QueueReconfiguration {
 public:
  QueueReconfiguration(const Call& call, cl_command_queue queue) : next_(call.next()), queue_(queue) {}
  void Finish(bool);

 private:
  const Functions& next_;
  cl_command_queue queue_;
};

}  // namespace xsched::opencl
