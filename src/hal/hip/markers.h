// The markers of one stream: events of the runtime, recorded behind the program's commands, and polled until
// they have happened. The runtime's own notification (host functions) would delay the stream.
#pragma once

#include <cstdint>

#include "base/fifo.h"
#include "base/mutex.h"
#include "hal/hip/runtime.h"

namespace xsched::hip {

class Markers {
 public:
  // All calls of the runtime's are made by the caller of these, with the stream's device current where it
  // says.
  Markers() = default;
  Markers(const Markers&) = delete;
  Markers& operator=(const Markers&) = delete;

  // REQUIRES: the stream's device is current, the stream does not capture.
  bool Append(const Functions& next, hipStream_t stream, uint64_t ticket);
  // Reports the markers that have been reached, in order. An event with an error counts as reached: nothing
  // before it will run any more. Never waits for a thread that appends, which the runtime may block until
  // the stream has room: the next poll finds what this one would have found.
  void Poll(const Functions& next);
  bool AnyToPoll() EXCLUDES(mutex_);
  // Reports all markers without a call of the runtime. Their events are used again: an event that is recorded
  // again belongs to that recording only.
  void PutAway();
  // Reports all markers, and releases the events.
  void Drop(const Functions& next);

 private:
  struct Marker {
    hipEvent_t event;
    uint64_t ticket;
  };

  bool PopReached(const Functions& next, uint64_t* ticket) EXCLUDES(mutex_);
  bool PopAny(uint64_t* ticket) EXCLUDES(mutex_);
  // The marker is not waited for any more.
  uint64_t Pop() REQUIRES(mutex_);

  Mutex<LockRank::kHipMarkers> mutex_;
  Fifo<Marker> waiting_ GUARDED_BY(mutex_);
  Array<hipEvent_t> spare_ GUARDED_BY(mutex_);
};

}  // namespace xsched::hip
