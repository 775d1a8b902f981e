// Calls that begin and end stream captures (shim/common/captures.h).
#pragma once

#include <cstdint>

#include "cuda/functions.h"
#include "preempt/queue/query_lock.h"
#include "shim/common/captures.h"
#include "shim/cuda/stream_key.h"

namespace xsched::cuda {

// As the driver says. When in doubt, it is.
bool AskWhetherCapturing(CUstream stream);
inline bool IsCapturing(CUstream stream) { return shim::AnyCapture() && AskWhetherCapturing(stream); }

// Around a call that begins a capture on `stream`.
class CaptureBegin {
 public:
  // Before the call: no command may slip in between.
  explicit CaptureBegin(CUstream stream) : key_(KeyOf(stream)) { shim::CaptureBegins(key_); }
  void Finish(CUresult result) {
    if (result != CUDA_SUCCESS) shim::CaptureEnded(key_);
  }

 private:
  uint64_t key_;
  // Our own queries spoil a capture that begins at the same time.
  preempt::QueryLock no_queries_;
};

// Around a call that ends one.
class CaptureEnd {
 public:
  explicit CaptureEnd(CUstream stream) : stream_(stream) {}
  // A capture that went wrong ends with an error; one that another thread must end does not end.
  void Finish(CUresult result) {
    if (result == CUDA_SUCCESS || !AskWhetherCapturing(stream_)) shim::CaptureEnded(KeyOf(stream_));
  }

 private:
  CUstream stream_;
};

}  // namespace xsched::cuda
