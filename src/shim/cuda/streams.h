// The program's streams, and the XQueues over them. A stream gets its XQueue with its first command, whoever
// made it and however; streams and contexts that go without our seeing it are met anew.
//
// Reading takes no lock and allocates nothing.
#pragma once

#include <atomic>
#include <cstdint>

#include "cuda/functions.h"
#include "preempt/launch.h"
#include "shim/cuda/capture.h"
#include "shim/cuda/stream_key.h"

namespace xsched::cuda {

// A stream that has been met. Records are used again and never freed: a reader may hold one a moment longer
// than its stream is there. `life` tells whether it is still the same stream's.
struct Stream {
  std::atomic<uint64_t> key{0};  // 0: none's
  std::atomic<uint32_t> life{0};
  std::atomic<CUcontext> context{nullptr};
  std::atomic<uint64_t> thread{0};    // whose default stream it is; 0: not a thread's
  std::atomic<bool> legacy{false};    // its context's default stream …
  std::atomic<bool> blocking{false};  // … which waits for this one, and the reverse
  Stream* next = nullptr;             // of all
  Stream* next_free = nullptr;        // under the lock of streams.cc
};

// Null: not met yet.
Stream* FindStream(uint64_t key);
// The XQueue of a stream that is met here; null: it is to run unscheduled.
preempt::XQueue* MeetStream(CUstream stream, uint64_t key);
// Its record, without making an XQueue. Null: no such stream, or no memory.
Stream* RecordOf(CUstream stream, uint64_t key);

// Null: it has none, so far.
inline preempt::XQueue* FindQueue(uint64_t key) {
  return key == 0 ? nullptr : preempt::FindXQueue(kPlatformCUDA, key);
}

// The XQueue that a command for `stream` is put on now. Null: it passes untouched.
inline preempt::XQueue* QueueForCommand(CUstream stream) {
  if (preempt::InsideXSched() || IsCapturing(stream)) return nullptr;
  const uint64_t key = KeyOf(stream);
  preempt::XQueue* queue = FindQueue(key);
  return queue != nullptr || key == 0 ? queue : MeetStream(stream, key);
}

// What the default stream waits for, and what waits for it: tells the scheduler, before a command of `waiter`
// on `stream`.
void AddImplicitDependencies(preempt::XQueue* waiter, CUstream stream);

// Calls visit(record) for each stream that is known.
extern std::atomic<Stream*> all_streams;
template <typename Visit>
void ForEachStream(Visit&& visit) {
  for (Stream* stream = all_streams.load(std::memory_order_acquire); stream != nullptr;
       stream = stream->next) {
    if (stream->key.load(std::memory_order_acquire) != 0) visit(*stream);
  }
}

// These: before the driver's call, after which a handle may be another's.
void ForgetStream(uint64_t key);
void ForgetStreamsOfContext(CUcontext context);
void ForgetAllStreams();

// Around cuStreamDestroy.
class StreamDestruction {
 public:
  explicit StreamDestruction(CUstream stream) {
    // The default streams cannot be destroyed.
    if (!preempt::InsideXSched() && !IsDefaultStream(stream)) ForgetStream(KeyOf(stream));
  }
  void Finish(CUresult) {}
};

}  // namespace xsched::cuda
