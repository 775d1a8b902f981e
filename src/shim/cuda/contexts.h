// The scopes of calls that wait inside the driver for whole contexts, and of calls that end contexts. Most of
// them keep other threads from launching. Such a call could wait for a command behind a gate, and the thread
// that opens the gate could wait for this call. So nothing is held during the call. Before the call, the
// thread waits outside the driver, so that a held program cannot run by repeating such calls:
//
//   Drain, and the scopes of calls on contexts   the call is known to wait for all work of a context or
//   device
//                                                (measured or documented): until that work has finished
//   PossibleWait                                 it may wait, and only the driver knows: while work of the
//                                                current context is held
#pragma once

#include <optional>

#include "preempt/api/launch.h"
#include "shim/common/barrier.h"
#include "shim/common/streams.h"
#include "shim/cuda/platform.h"

namespace xsched::cuda {

// preempt::AwaitGiven. A null context is the current one.
void AwaitGivenTo(CUcontext context, Duration patience);

// The context of a green context's streams.
CUcontext ContextOf(CUgreenCtx green);

// The default stream of `context`, as the home of its streams.
inline uint64_t HomeOf(CUcontext context) { return LegacyStreamKey(reinterpret_cast<uint64_t>(context)); }

// The scope of such calls that are no calls of the program, or are part of a command that it submitted: they
// cannot wait for that command.
using Barrier = shim::Barrier<Platform>;

// The scope of a call that may wait inside the driver for everything on a context, and only the driver knows
// which. Other contexts of the process run during the call itself.
class PossibleWait {
 public:
  explicit PossibleWait(const Call&) {}
  void Finish(CUresult) {}

 private:
  struct NotHeld {
    NotHeld();
  };
  NotHeld not_held_;  // before the barrier
  preempt::Barrier barrier_;
};

// The scope of a call that waits inside the driver only while a launch of the context waits for room on a
// stream: a PossibleWait while a launch is in progress, and else nothing.
class WaitForLaunches {
 public:
  explicit WaitForLaunches(const Call& call);

 private:
  std::optional<preempt::Barrier> barrier_;  // after the wait
};

// The scope of a call that waits for all work of a context, and keeps others from launching meanwhile. A null
// context is the current one.
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

// The scope of cuMemFree. It drains, unless the memory is of a pool, or null: then the driver waits for
// nothing (documented for the former; both measured on an H200, driver 580).
class MemoryFreeing {
 public:
  MemoryFreeing(const Call& call, CUdeviceptr memory);
  void Finish(CUresult) {}

 private:
  std::optional<Drain> drain_;
};

// The scope of cuCtxSynchronize, which does not keep other threads from launching. Held queues stay held,
// unless the caller may be more urgent. A null context is the current one.
class ContextWait {
 public:
  ContextWait(const Call& call, CUcontext context);
  void Finish(CUresult result) const {
    if (result == CUDA_SUCCESS) streams_.Succeeded();
  }

 private:
  static bool NeedsBarrier(CUcontext context);
  struct BarrierIf {
    explicit BarrierIf(bool needed) {
      if (needed) barrier.emplace();
    }
    std::optional<preempt::Barrier> barrier;
  };
  CUcontext context_;
  BarrierIf barrier_;
  preempt::SuspensionLift lift_;
  shim::HomeWait streams_;
};

// The scope of cuCtxCreate, which waits for the work of the device's other contexts.
class ContextCreation {
 public:
  ContextCreation(const Call& call, CUdevice device);
  void Finish(CUresult) const { ForgetCurrentContext(); }  // the new one is current

 private:
  std::optional<preempt::Barrier> barrier_;  // after the wait
};

// The end of a context and its streams, around the call that ends it. If the context stays, its streams are
// registered anew.
class ContextEnd {
 public:
  // Null: there is none.
  ContextEnd(const Call& call, CUcontext context);
  void Finish(bool ended) const;

 private:
  CUcontext context_;
  std::optional<preempt::Barrier> barrier_;  // after the wait
};

// The scope of cuCtxDestroy.
class ContextDestruction {
 public:
  ContextDestruction(const Call& call, CUcontext context);
  void Finish(CUresult) const;

 private:
  ContextEnd end_;
};

// The scope of cuCtxDetach. The context stays while it has other users (cuCtxAttach), and a primary one
// always does. Then it is still current; otherwise it is not (measured on an H200, driver 580).
class ContextDetachment {
 public:
  ContextDetachment(const Call& call, CUcontext context);
  void Finish(CUresult) const;

 private:
  CUcontext context_;
  ContextEnd end_;
};

// The scope of cuDevicePrimaryCtxRetain, which makes the context if there is none. Only this call shows which
// device's context it is.
class PrimaryContextRetention {
 public:
  PrimaryContextRetention(const Call& call, CUdevice device);
  void Finish(CUresult result, const CUcontext* context);

 private:
  CUdevice device_;
  std::optional<ContextCreation> creation_;
};

// The scope of cuDevicePrimaryCtxRelease. The context may stay, because we missed that it was retained.
class PrimaryContextRelease {
 public:
  PrimaryContextRelease(const Call& call, CUdevice device);
  void Finish(CUresult) const;

 private:
  const Call& call_;
  CUdevice device_;
  std::optional<ContextEnd> end_;  // as far as we know
};

// The scope of cuGreenCtxCreate, which retains the device's primary context.
class GreenContextCreation {
 public:
  GreenContextCreation(const Call& call, CUdevice device);
  void Finish(CUresult result, const CUgreenCtx* green);

 private:
  const Call& call_;
  CUdevice device_;
  ContextCreation creation_;
};

// The scope of cuGreenCtxDestroy, which releases it. `context`: ContextOf the green context.
class GreenContextDestruction {
 public:
  GreenContextDestruction(const Call& call, CUcontext context);
  void Finish(CUresult result);

 private:
  CUcontext context_;
  std::optional<preempt::Barrier> barrier_;
  std::optional<PrimaryContextRelease> release_;
  std::optional<ContextDestruction> destruction_;  // we did not see it being made
};

// The scope of cuDevicePrimaryCtxReset.
class PrimaryContextReset {
 public:
  PrimaryContextReset(const Call& call, CUdevice device);
  void Finish(CUresult) const;

 private:
  ContextEnd end_;
};

}  // namespace xsched::cuda
