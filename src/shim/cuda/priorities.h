// The scopes of calls on the priorities of CUDA streams. XSched changes them in the driver
// (hal/cuda/stream_priority.h). The program reads what it has set itself, and hints count from that.
#pragma once

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
  PrioritySetting(const Call& call, CUstream stream) : call_(call), stream_(stream) {}
  void Finish(CUresult result, CUstreamAttrID attribute, const CUstreamAttrValue* value) const;

 private:
  const Call& call_;
  CUstream stream_;
};

// The scope of cuStreamCopyAttributes: the driver copies the priority that XSched has set.
class PriorityCopy {
 public:
  PriorityCopy(const Call& call, CUstream to, CUstream from) : call_(call), to_(to), from_(from) {}
  void Finish(CUresult result) const;

 private:
  const Call& call_;
  CUstream to_;
  CUstream from_;
};

}  // namespace xsched::cuda
