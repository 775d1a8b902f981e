// Stream captures: what is put on a capturing stream is recorded into a graph, not run, and so passes
// untouched. Streams join a capture by waiting for its events; only the driver knows which have. So a launch
// asks the driver, but only while a capture is under way anywhere in the process.
#pragma once

#include <atomic>
#include <cstdint>

#include "cuda/functions.h"
#include "hal/cuda/query_lock.h"

namespace xsched::cuda {

// How many are under way. Never less than there are; a capture whose stream is destroyed may stay counted.
extern std::atomic<uint32_t> captures;

// As the driver says. When in doubt, it is.
bool AskWhetherCapturing(CUstream stream);

inline bool IsCapturing(CUstream stream) {
  return captures.load(std::memory_order_acquire) != 0 && AskWhetherCapturing(stream);
}

// Around a call that begins a capture on `stream`.
class CaptureBegin {
 public:
  explicit CaptureBegin(CUstream stream);
  void Finish(CUresult result);

 private:
  uint64_t key_;
  // Our own queries spoil a capture that begins at the same time.
  QueryLock no_queries_;
};

// Around a call that ends one.
class CaptureEnd {
 public:
  explicit CaptureEnd(CUstream stream) : stream_(stream) {}
  void Finish(CUresult result);

 private:
  CUstream stream_;
};

}  // namespace xsched::cuda
