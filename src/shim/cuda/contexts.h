// Calls that wait inside the driver for whole contexts, and the end of contexts. Most of them keep other
// threads from launching meanwhile: nothing is held while such a call is under way, for what it waits for
// could be behind a gate, and what would open the gate behind this call. Those that are known to wait for all
// that a context has been given let what is held come to its end first, outside the driver.
#pragma once

#include <optional>

#include "preempt/api/launch.h"
#include "shim/common/barrier.h"
#include "shim/common/streams.h"
#include "shim/cuda/platform.h"

namespace xsched::cuda {

// preempt::AwaitGiven. A null context is the current one.
bool AwaitGivenTo(CUcontext context, Duration patience);

// A green context's, as its streams have it.
CUcontext ContextOf(CUgreenCtx green);

// The default stream of `context`, as the home of its streams.
inline uint64_t HomeOf(CUcontext context) { return LegacyStreamKey(reinterpret_cast<uint64_t>(context)); }

using Barrier = shim::Barrier<Platform>;

// Around a call that waits for all that a context has been given, and keeps others from launching meanwhile.
// A null context is the current one.
class Drain {
 public:
  Drain(const Call&, CUcontext context) : given_(context) {}
  void Finish(CUresult) {}

 private:
  struct Given {
    explicit Given(CUcontext context);
  };
  Given given_;  // before the barrier
  preempt::Barrier barrier_;
};

// Around cuCtxSynchronize, which keeps nobody from launching: what is held stays held, unless the caller may
// be more urgent. A null context is the current one.
class ContextWait {
 public:
  ContextWait(const Call& call, CUcontext context);
  void Finish(CUresult result) const {
    if (result == CUDA_SUCCESS) streams_.Succeeded();
  }

 private:
  struct BarrierIf {
    explicit BarrierIf(bool needed) {
      if (needed) barrier.emplace();
    }
    std::optional<preempt::Barrier> barrier;
  };
  BarrierIf barrier_;
  preempt::SuspensionLift lift_;
  shim::HomeWait streams_;
};

// Around cuCtxDestroy.
class ContextDestruction {
 public:
  ContextDestruction(const Call& call, CUcontext context);
  void Finish(CUresult) const;

 private:
  CUcontext context_;
  preempt::Barrier barrier_;
};

// Around cuDevicePrimaryCtxRetain, which may make the context: only it tells which context is whose.
class PrimaryContextRetention {
 public:
  explicit PrimaryContextRetention(const Call&) {}
  void Finish(CUresult result, CUdevice device, const CUcontext* context);

 private:
  preempt::Barrier barrier_;
};

// Around cuDevicePrimaryCtxRelease. If the context lives on, because somebody was not seen retaining it, its
// streams are registered anew.
class PrimaryContextRelease {
 public:
  PrimaryContextRelease(const Call& call, CUdevice device);
  void Finish(CUresult) const;

 private:
  bool ends_ = false;
  CUcontext context_ = nullptr;  // null: it could be any
  preempt::Barrier barrier_;
};

// Around cuDevicePrimaryCtxReset.
class PrimaryContextReset {
 public:
  PrimaryContextReset(const Call& call, CUdevice device);
  void Finish(CUresult) const;

 private:
  CUcontext context_;  // null: it could be any
  preempt::Barrier barrier_;
};

}  // namespace xsched::cuda
