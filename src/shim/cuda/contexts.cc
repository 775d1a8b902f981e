#include "shim/cuda/contexts.h"

#include <atomic>

#include "hal/cuda/queue.h"
#include "shim/cuda/code.h"

namespace xsched::cuda {
namespace {

struct PrimaryContext {
  std::atomic<CUcontext> context{nullptr};
  std::atomic<int64_t> references{0};  // that were seen
};
constexpr CUdevice kMaxDevices = 128;
// The driver would wait for as long as it takes. A kernel may well run for so long.
constexpr Duration kDrainPatience = std::chrono::milliseconds(50);

constinit PrimaryContext primary_contexts[kMaxDevices];

PrimaryContext* PrimaryContextOf(CUdevice device) {
  return device >= 0 && device < kMaxDevices ? &primary_contexts[device] : nullptr;
}

void ContextEnds(CUcontext context) {
  if (context == nullptr) return;
  ForgetUsedCode();
  shim::ForgetStreamsOf(HomeOf(context));
  CudaContextGoes(context);
}

// One that was never seen being retained could be any; null.
CUcontext PrimaryContextEnds(PrimaryContext* primary) {
  CUcontext context = primary == nullptr ? nullptr : primary->context.exchange(nullptr);
  if (primary != nullptr) primary->references.store(0, std::memory_order_relaxed);
  if (context != nullptr) {
    ContextEnds(context);
  } else {
    ForgetUsedCode();
    shim::ForgetAllStreams();
    CudaContextGoes(nullptr);
  }
  return context;
}

}  // namespace

bool AwaitGivenTo(CUcontext context, Duration patience) {
  if (!preempt::AnyMayBeHeld()) return false;
  const CUcontext actual = context == nullptr ? CurrentContext() : context;
  return actual != nullptr && preempt::AwaitGiven(reinterpret_cast<uint64_t>(actual), patience);
}

CUcontext ContextOf(CUgreenCtx green) {
  CUcontext context = nullptr;
  const Functions& next = Driver();
  if (green == nullptr || next.cuCtxFromGreenCtx == nullptr) return nullptr;
  return next.cuCtxFromGreenCtx(&context, green) == CUDA_SUCCESS ? context : nullptr;
}

Drain::Given::Given(CUcontext context) { AwaitGivenTo(context, kDrainPatience); }

ContextWait::ContextWait(const Call&, CUcontext context)
    : barrier_(!AwaitGivenTo(context, kDrainPatience)),
      streams_(HomeOf(context == nullptr ? CurrentContext() : context)) {}

ContextDestruction::ContextDestruction(const Call&, CUcontext context) : context_(context) {
  ContextEnds(context);
}

void ContextDestruction::Finish(CUresult) const {
  if (context_ != nullptr) CudaContextGone(context_);
}

void PrimaryContextRetention::Finish(CUresult result, CUdevice device, const CUcontext* context) {
  PrimaryContext* primary = PrimaryContextOf(device);
  if (result != CUDA_SUCCESS || primary == nullptr || context == nullptr) return;
  primary->context.store(*context, std::memory_order_release);
  primary->references.fetch_add(1, std::memory_order_relaxed);
}

PrimaryContextRelease::PrimaryContextRelease(const Call&, CUdevice device) {
  PrimaryContext* primary = PrimaryContextOf(device);
  if (primary == nullptr) return;
  ends_ = primary->references.fetch_sub(1, std::memory_order_acq_rel) <= 1;
  if (ends_) context_ = PrimaryContextEnds(primary);
}

void PrimaryContextRelease::Finish(CUresult) const {
  if (ends_) CudaContextGone(context_);
}

PrimaryContextReset::PrimaryContextReset(const Call&, CUdevice device)
    : context_(PrimaryContextEnds(PrimaryContextOf(device))) {}

void PrimaryContextReset::Finish(CUresult) const { CudaContextGone(context_); }

}  // namespace xsched::cuda
