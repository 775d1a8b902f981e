// Calls that begin and end stream captures (shim/common/captures.h).
#pragma once

#include <cstdint>

#include "preempt/queue/query_lock.h"
#include "shim/common/captures.h"
#include "shim/hip/streams.h"

namespace xsched::hip {

// Around a call that begins a capture on `stream`.
class CaptureBegin {
 public:
  // Before the call: no command may slip in between.
  CaptureBegin(const Call& call, hipStream_t stream) : key_(KeyOf(call.copy(), stream)) {
    shim::CaptureBegins(key_);
  }
  void Finish(hipError_t result) {
    if (result != hipSuccess) shim::CaptureEnded(key_);
  }

 private:
  uint64_t key_;
  // Our own queries spoil a capture that begins at the same time.
  preempt::QueryLock no_queries_;
};

// Around a call that ends one.
class CaptureEnd {
 public:
  CaptureEnd(const Call& call, hipStream_t stream)
      : copy_(call.copy()), stream_(stream), key_(KeyOf(copy_, stream)) {}
  // A capture that went wrong ends with an error; one that another thread must end does not end.
  void Finish(hipError_t result) {
    if (result == hipSuccess || !AskWhetherCapturing(copy_, stream_)) shim::CaptureEnded(key_);
  }

 private:
  const Copy& copy_;
  hipStream_t stream_;
  uint64_t key_;
};

}  // namespace xsched::hip
