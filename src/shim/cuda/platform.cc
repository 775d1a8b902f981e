#include "shim/cuda/platform.h"

#include "hal/cuda/capture_mode.h"
#include "hal/cuda/green_contexts.h"
#include "hal/cuda/queue.h"
#include "hal/cuda/stream_context.h"
#include "shim/common/auto_queue.h"
#include "shim/cuda/contexts.h"

namespace xsched::shim {

constinit const XPlatform kPlatform = kPlatformCUDA;

}  // namespace xsched::shim

namespace xsched::cuda {
namespace {

shim::StreamFacts FactsOf(const Functions& next, CUstream stream, CUcontext context) {
  unsigned flags = 0;
  if (next.cuStreamGetFlags != nullptr) next.cuStreamGetFlags(stream, &flags);
  return {HomeOf(context), HomeOf(CudaOwnerOf(context)),
          stream != CU_STREAM_LEGACY && (flags & CU_STREAM_NON_BLOCKING) == 0,
          stream == CU_STREAM_PER_THREAD};
}

}  // namespace

shim::Stream* Platform::Register(const Call& call, CUstream stream, uint64_t key, bool with_queue) {
  preempt::ReentrancyGuard guard;
  const Functions& next = call.next();
  RelaxedCaptureMode relaxed(next);
  const StreamContext context(next, stream);
  if (context.get() == nullptr) return nullptr;
  return shim::RegisterStream(key, FactsOf(next, stream, context.get()), with_queue, [&] {
    HwQueueHandle hwq = 0;
    const XResult made = CudaQueueRegister(&next, context.get(), stream, key, &hwq);
    shim::CreateXQueue(made, hwq, "a CUDA stream");
  });
}

bool Platform::AskWhetherCapturing(const Call& call, CUstream stream) {
  const Functions& next = call.next();
  if (next.cuStreamIsCapturing == nullptr) return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  // An error: the legacy stream, while a stream that it waits for is capturing.
  return next.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

bool Platform::HasHappened(const Call& call, CUevent event) {
  preempt::ReentrancyGuard guard;
  const Functions& next = call.next();
  RelaxedCaptureMode relaxed(next);
  return next.cuEventQuery != nullptr && next.cuEventQuery(event) == CUDA_SUCCESS;
}

}  // namespace xsched::cuda
