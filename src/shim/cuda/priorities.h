// The scopes of calls on the priorities of CUDA streams. XSched changes them in the driver
// (hal/cuda/stream_priority.h). The program reads what it has set itself, and hints count from that.
// While a launch waits for room on a stream, the driver sets no attribute of any stream of the context.
#pragma once

#include "shim/cuda/contexts.h"
#include "shim/cuda/platform.h"

namespace xsched::cuda {

class PriorityQuery {
 public:
  PriorityQuery(const Call& call, CUstream stream) : call_(call), stream_(stream) {}
  void Finish(CUresult result, int* priority) const;
  void Finish(CUresult result, CUstreamAttrID attribute, CUstreamAttrValue* value) const;

 private:
  const Call& call_;
  CUstream stream_;
};

class PrioritySetting {
 public:
  PrioritySetting(const Call& call, CUstream stream) : call_(call), stream_(stream), launches_(call) {}
  void Finish(CUresult result, CUstreamAttrID attribute, const CUstreamAttrValue* value) const;

 private:
  const Call& call_;
  CUstream stream_;
  WaitForLaunches launches_;
};

// The scope of cuStreamCopyAttributes: the driver copies the priority that XSched has set.
class PriorityCopy {
 public:
  PriorityCopy(const Call& call, CUstream to, CUstream from)
      : call_(call), to_(to), from_(from), launches_(call) {}
  void Finish(CUresult result) const;

 private:
  const Call& call_;
  CUstream to_;
  CUstream from_;
  WaitForLaunches launches_;  // also for the setting after the call
};

}  // namespace xsched::cuda
