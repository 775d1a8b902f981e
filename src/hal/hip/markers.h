// The markers of one stream: events of the runtime's, recorded behind the program's commands, and looked at
// until they have happened. The runtime's own way to be told (host functions) holds up the stream meanwhile.
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
  // Reports those that have been reached, in order. An event that tells of an error counts: nothing before it
  // will run any more.
  void Poll(const Functions& next);
  // Reports all, and gives the events back.
  void Drop(const Functions& next);

 private:
  struct Marker {
    hipEvent_t event;
    uint64_t ticket;
  };

  bool PopReached(const Functions& next, uint64_t* ticket);

  Mutex mutex_;
  Fifo<Marker> waiting_;
  Array<hipEvent_t> spare_;
};

}  // namespace xsched::hip
