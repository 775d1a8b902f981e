// Calls that begin and end stream captures (shim/common/captures.h).
#pragma once

#include <cstdint>

#include "preempt/queue/query_lock.h"
#include "shim/cuda/streams.h"

namespace xsched::cuda {

// Around a call that begins a capture on `stream`.
class CaptureBegin {
 public:
  // Before the call: no command may slip in between.
  CaptureBegin(const Call&, CUstream stream) : key_(KeyOf(stream)) { shim::CaptureBegins(key_); }
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
  CaptureEnd(const Call&, CUstream stream) : stream_(stream), key_(KeyOf(stream)) {}
  // A capture that went wrong ends with an error; one that another thread must end does not end.
  void Finish(CUresult result) {
    if (result == CUDA_SUCCESS || !AskWhetherCapturing(stream_)) shim::CaptureEnded(key_);
  }

 private:
  CUstream stream_;
  uint64_t key_;
};

}  // namespace xsched::cuda
