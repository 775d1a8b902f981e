// The context of a stream, made current for a thread that asks the driver about the stream. A thread that has
// called only the runtime has no current context before its first command, and the current one may belong to
// another device.
#pragma once

#include "cuda/functions.h"
#include "hal/cuda/green_contexts.h"

namespace xsched::cuda {

// Makes the context of `stream` current, or the owner of a green context, unless it is. The context of a
// default stream is the current one.
class StreamContext {
 public:
  StreamContext(const Functions& next, CUstream stream) : next_(next) {
    if (next.cuStreamGetCtx == nullptr || next.cuStreamGetCtx(stream, &context_) != CUDA_SUCCESS)
      context_ = nullptr;
    CUcontext current = nullptr;
    if (next.cuCtxGetCurrent == nullptr || next.cuCtxGetCurrent(&current) != CUDA_SUCCESS) current = nullptr;
    const CUcontext owner = CudaOwnerOf(context_);
    if (owner != nullptr && owner != CudaOwnerOf(current))
      pushed_ = next.cuCtxPushCurrent_v2(owner) == CUDA_SUCCESS;
  }
  ~StreamContext() {
    CUcontext ours = nullptr;
    if (pushed_) next_.cuCtxPopCurrent_v2(&ours);
  }
  StreamContext(const StreamContext&) = delete;
  StreamContext& operator=(const StreamContext&) = delete;

  CUcontext get() const { return context_; }  // null: there is no such stream, or no context is current

 private:
  const Functions& next_;
  CUcontext context_ = nullptr;
  bool pushed_ = false;
};

}  // namespace xsched::cuda
