// Calls that wait inside the driver for whole contexts, and the end of contexts. Nothing is held while such a
// call is under way: what it waits for could otherwise be behind a gate, and what would open the gate behind
// this call.
#pragma once

#include "cuda/functions.h"
#include "preempt/launch.h"
#include "shim/common/streams.h"

namespace xsched::cuda {

// A green context's, as its streams have it.
CUcontext ContextOf(CUgreenCtx green);

// Around a call that may wait for everything. Whose context it is about, only the driver knows (freeing
// memory is for the memory's, whichever is current): so for all of the process.
class Barrier {
 public:
  explicit Barrier(CUcontext) {}
  void Finish(CUresult) {}

 private:
  preempt::Barrier barrier_;
};

// Around cuCtxSynchronize. A null context is the current one.
class ContextWait {
 public:
  explicit ContextWait(CUcontext context);
  void Finish(CUresult result) const {
    if (result == CUDA_SUCCESS) streams_.Succeeded();
  }

 private:
  preempt::Barrier barrier_;
  shim::HomeWait streams_;
};

// Around cuCtxDestroy.
class ContextDestruction {
 public:
  explicit ContextDestruction(CUcontext context);
  void Finish(CUresult) {}

 private:
  preempt::Barrier barrier_;
};

// Around cuDevicePrimaryCtxRetain, which may make the context: only it tells which context is whose.
class PrimaryContextRetention {
 public:
  void Finish(CUresult result, CUdevice device, const CUcontext* context);

 private:
  preempt::Barrier barrier_;
};

// Around cuDevicePrimaryCtxRelease. If the context lives on, because somebody was not seen retaining it, its
// streams are met anew.
class PrimaryContextRelease {
 public:
  explicit PrimaryContextRelease(CUdevice device);
  void Finish(CUresult) {}

 private:
  preempt::Barrier barrier_;
};

// Around cuDevicePrimaryCtxReset.
class PrimaryContextReset {
 public:
  explicit PrimaryContextReset(CUdevice device);
  void Finish(CUresult) {}

 private:
  preempt::Barrier barrier_;
};

}  // namespace xsched::cuda
