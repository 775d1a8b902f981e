#include "shim/cuda/contexts.h"

#include <atomic>

#include "hal/cuda/device.h"
#include "hal/cuda/green_contexts.h"
#include "hal/cuda/queue.h"
#include "shim/common/memory.h"
#include "shim/cuda/code.h"

namespace xsched::cuda {
namespace {

struct PrimaryContext {
  std::atomic<CUcontext> context{nullptr};
  std::atomic<int64_t> references{0};  // that we have seen
};
constexpr CUdevice kMaxDevices = 128;
// How long to wait without progress. The driver itself would wait without a limit, and a kernel may run for
// this long.
constexpr Duration kDrainPatience = std::chrono::milliseconds(50);
// The same for a call that natively may wait for nothing.
constexpr Duration kPossibleWaitPatience = std::chrono::milliseconds(5);

constinit PrimaryContext primary_contexts[kMaxDevices];

PrimaryContext* PrimaryContextOf(CUdevice device) {
  return device >= 0 && device < kMaxDevices ? &primary_contexts[device] : nullptr;
}

CUcontext OrCurrent(CUcontext context) { return context == nullptr ? CurrentContext() : context; }

// The queues of the context and of those with the same owner. Null: of any context.
preempt::AwaitedQueues QueuesOf(CUcontext context) {
  return {.context = reinterpret_cast<uint64_t>(CudaOwnerOf(context))};
}

// Waits while work of the context is held. Null: of the current one; if there is none, it could be any.
void AwaitNotHeldOf(CUcontext context) {
  if (preempt::AnyMayBeHeld()) preempt::AwaitNotHeld(QueuesOf(OrCurrent(context)), kPossibleWaitPatience);
}

// Waits for all work on the device.
void AwaitGivenToDevice(const Functions& next, CUdevice device) {
  DeviceIdentity identity;
  if (!preempt::AnyMayBeHeld() || !IdentifyDevice(next, device, &identity)) return;
  preempt::AwaitGiven({.device = identity.device}, kDrainPatience);
}

// The driver did not destroy the context: it is a primary one, or none. Other errors may be those of earlier
// commands.
bool Refused(CUresult result) {
  return result == CUDA_ERROR_INVALID_CONTEXT || result == CUDA_ERROR_INVALID_VALUE;
}

bool IsOfPool(const Functions& next, CUdeviceptr memory) {
  CUmemoryPool pool = nullptr;
  const auto ask = next.cuPointerGetAttribute;
  return ask != nullptr && ask(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, memory) == CUDA_SUCCESS &&
         pool != nullptr;
}

bool IsActive(const Functions& next, CUdevice device) {
  unsigned flags = 0;
  int active = 0;
  const auto get_state = next.cuDevicePrimaryCtxGetState;
  return get_state != nullptr && get_state(device, &flags, &active) == CUDA_SUCCESS && active != 0;
}

CUcontext Known(const PrimaryContext* primary) {
  return primary == nullptr ? nullptr : primary->context.load(std::memory_order_acquire);
}

// Only retaining a primary context shows which one it is. REQUIRES: the device has one. Null: the driver does
// not say.
CUcontext AskPrimaryContext(const Functions& next, CUdevice device) {
  const preempt::Barrier barrier;  // another thread may release it meanwhile, so that it ends here
  CUcontext context = nullptr;
  if (next.cuDevicePrimaryCtxRetain == nullptr || next.cuDevicePrimaryCtxRelease_v2 == nullptr ||
      next.cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS)
    return nullptr;
  next.cuDevicePrimaryCtxRelease_v2(device);
  return context;
}

// The primary context, which is about to end as far as we know. Null: there is none.
CUcontext TakePrimaryContext(const Call& call, CUdevice device) {
  PrimaryContext* primary = PrimaryContextOf(device);
  if (primary == nullptr) return nullptr;
  primary->references.store(0, std::memory_order_relaxed);
  if (CUcontext known = primary->context.exchange(nullptr)) return known;
  // We did not see it being retained.
  return IsActive(call.next(), device) ? AskPrimaryContext(call.next(), device) : nullptr;
}

}  // namespace

void AwaitGivenTo(CUcontext context, Duration patience) {
  if (!preempt::AnyMayBeHeld()) return;
  const CUcontext actual = OrCurrent(context);
  if (actual != nullptr) preempt::AwaitGiven(QueuesOf(actual), patience);
}

CUcontext ContextOf(CUgreenCtx green) {
  CUcontext context = nullptr;
  const Functions& next = Driver();
  if (green == nullptr || next.cuCtxFromGreenCtx == nullptr) return nullptr;
  return next.cuCtxFromGreenCtx(&context, green) == CUDA_SUCCESS ? context : nullptr;
}

Drain::Given::Given(CUcontext context) { AwaitGivenTo(context, kDrainPatience); }

// While nothing may be held, draining costs less than the question.
MemoryFreeing::MemoryFreeing(const Call& call, CUdeviceptr memory) {
  if (memory == 0 || (preempt::AnyMayBeHeld() && IsOfPool(call.next(), memory))) return;
  drain_.emplace(call, nullptr);
}

PossibleWait::NotHeld::NotHeld() { AwaitNotHeldOf(nullptr); }

WaitForLaunches::WaitForLaunches(const Call& call) {
  if (!preempt::AnyLaunchMayWait()) return;
  if (call.is_the_programs()) AwaitNotHeldOf(nullptr);
  barrier_.emplace();
}

bool ContextWait::NeedsBarrier(CUcontext context) {
  // A scheduler that comes during the call may hold a queue that is less urgent than the caller.
  if (context == nullptr || !preempt::AnyMayBeHeld()) return true;
  if (CudaOwnerOf(context) == context) {
    if (!preempt::OfSeveralClasses(QueuesOf(context))) return false;
    AwaitGivenTo(context, kDrainPatience);
    return true;
  }
  // The driver waits for the green context only, and we know only all queues of its owner. So do not wait for
  // any that runs.
  AwaitNotHeldOf(context);
  return true;
}

ContextWait::ContextWait(const Call&, CUcontext context)
    : context_(OrCurrent(context)), barrier_(NeedsBarrier(context_)), streams_(HomeOf(context_)) {}

ContextCreation::ContextCreation(const Call& call, CUdevice device) {
  if (call.is_the_programs()) AwaitGivenToDevice(call.next(), device);
  barrier_.emplace();
}

ContextEnd::ContextEnd(const Call& call, CUcontext context) : context_(context) {
  if (context == nullptr) return;
  // A command that the program submitted cannot wait for itself.
  if (call.is_the_programs()) AwaitGivenTo(context, kDrainPatience);
  UsedCode::Forget();
  shim::ForgetStreamsOf(HomeOf(context));
  CudaContextGoes(context);
  barrier_.emplace();
}

void ContextEnd::Finish(bool ended) const {
  ForgetCurrentContext();
  if (context_ == nullptr) return;
  if (ended) {
    shim::ForgetMemoryOf(HomeOf(context_));
    CudaContextGone(context_);
  } else {
    CudaContextStays(context_);
  }
}

ContextDestruction::ContextDestruction(const Call& call, CUcontext context) : end_(call, context) {}

void ContextDestruction::Finish(CUresult result) const { end_.Finish(!Refused(result)); }

ContextDetachment::ContextDetachment(const Call& call, CUcontext context)
    : context_(context), end_(call, context) {}

void ContextDetachment::Finish(CUresult result) const {
  end_.Finish(!Refused(result) && CurrentContext() != context_);
}

PrimaryContextRetention::PrimaryContextRetention(const Call& call, CUdevice device) : device_(device) {
  if (!IsActive(call.next(), device)) creation_.emplace(call, device);
}

void PrimaryContextRetention::Finish(CUresult result, const CUcontext* context) {
  PrimaryContext* primary = PrimaryContextOf(device_);
  if (result != CUDA_SUCCESS || primary == nullptr || context == nullptr) return;
  primary->context.store(*context, std::memory_order_release);
  primary->references.fetch_add(1, std::memory_order_relaxed);
}

PrimaryContextRelease::PrimaryContextRelease(const Call& call, CUdevice device)
    : call_(call), device_(device) {
  PrimaryContext* primary = PrimaryContextOf(device);
  if (primary == nullptr || primary->references.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  end_.emplace(call, TakePrimaryContext(call, device));
}

void PrimaryContextRelease::Finish(CUresult) const {
  if (end_.has_value()) end_->Finish(!IsActive(call_.next(), device_));
}

GreenContextCreation::GreenContextCreation(const Call& call, CUdevice device)
    : call_(call), device_(device), creation_(call, device) {}

void GreenContextCreation::Finish(CUresult result, const CUgreenCtx* green) {
  PrimaryContext* primary = PrimaryContextOf(device_);
  if (result != CUDA_SUCCESS || primary == nullptr || green == nullptr) return;
  const CUcontext owner = AskPrimaryContext(call_.next(), device_);
  if (owner == nullptr) return;
  CudaGreenContextMade(ContextOf(*green), owner);
  primary->context.store(owner, std::memory_order_release);
  primary->references.fetch_add(1, std::memory_order_relaxed);
}

GreenContextDestruction::GreenContextDestruction(const Call& call, CUcontext context) : context_(context) {
  const CUcontext owner = CudaOwnerOf(context);
  if (owner == context) {
    destruction_.emplace(call, context);
    return;
  }
  if (call.is_the_programs()) AwaitNotHeldOf(context);
  shim::ForgetStreamsOf(HomeOf(context));
  barrier_.emplace();
  for (CUdevice device = 0; device < kMaxDevices; ++device) {
    if (Known(&primary_contexts[device]) == owner) release_.emplace(call, device);
  }
}

void GreenContextDestruction::Finish(CUresult result) {
  if (destruction_.has_value()) destruction_->Finish(result);
  if (release_.has_value()) release_->Finish(result);
  ForgetCurrentContext();
  CudaGreenContextGone(context_);
}

PrimaryContextReset::PrimaryContextReset(const Call& call, CUdevice device)
    : end_(call, TakePrimaryContext(call, device)) {}

void PrimaryContextReset::Finish(CUresult result) const { end_.Finish(!Refused(result)); }

}  // namespace xsched::cuda
