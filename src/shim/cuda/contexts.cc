#include "shim/cuda/contexts.h"

#include <atomic>

#include "hal/cuda/queue.h"
#include "shim/cuda/code.h"
#include "shim/cuda/streams.h"

namespace xsched::cuda {
namespace {

struct PrimaryContext {
  std::atomic<CUcontext> context{nullptr};
  std::atomic<int64_t> references{0};  // that were seen
};
constexpr CUdevice kMaxDevices = 128;
constinit PrimaryContext primary_contexts[kMaxDevices];

PrimaryContext* PrimaryContextOf(CUdevice device) {
  return device >= 0 && device < kMaxDevices ? &primary_contexts[device] : nullptr;
}

void ContextEnds(CUcontext context) {
  if (context == nullptr || preempt::InsideXSched()) return;
  ForgetUsedCode();
  shim::ForgetStreamsOf(HomeOf(context));
  CudaContextGone(context);
}

// One that was never seen being retained could be any.
void PrimaryContextEnds(PrimaryContext* primary) {
  CUcontext context = primary == nullptr ? nullptr : primary->context.exchange(nullptr);
  if (primary != nullptr) primary->references.store(0, std::memory_order_relaxed);
  if (context != nullptr) {
    ContextEnds(context);
  } else if (!preempt::InsideXSched()) {
    ForgetUsedCode();
    shim::ForgetAllStreams();
  }
}

}  // namespace

CUcontext ContextOf(CUgreenCtx green) {
  CUcontext context = nullptr;
  const Functions& next = Driver();
  if (green == nullptr || next.cuCtxFromGreenCtx == nullptr) return nullptr;
  return next.cuCtxFromGreenCtx(&context, green) == CUDA_SUCCESS ? context : nullptr;
}

ContextWait::ContextWait(CUcontext context)
    : streams_(preempt::InsideXSched() ? 0 : HomeOf(context == nullptr ? CurrentContext() : context)) {}

ContextDestruction::ContextDestruction(CUcontext context) { ContextEnds(context); }

void PrimaryContextRetention::Finish(CUresult result, CUdevice device, const CUcontext* context) {
  PrimaryContext* primary = PrimaryContextOf(device);
  if (result != CUDA_SUCCESS || primary == nullptr || context == nullptr) return;
  primary->context.store(*context, std::memory_order_release);
  primary->references.fetch_add(1, std::memory_order_relaxed);
}

PrimaryContextRelease::PrimaryContextRelease(CUdevice device) {
  PrimaryContext* primary = PrimaryContextOf(device);
  if (primary == nullptr) return;
  if (primary->references.fetch_sub(1, std::memory_order_acq_rel) <= 1) PrimaryContextEnds(primary);
}

PrimaryContextReset::PrimaryContextReset(CUdevice device) { PrimaryContextEnds(PrimaryContextOf(device)); }

}  // namespace xsched::cuda
