// xsched/cuda/hal.h. The types of cuda.h and of that header are the same.
#include "xsched/cuda/hal.h"

#include "base/driver_library.h"
#include "hal/cuda/driver.h"
#include "hal/cuda/queue.h"
#include "hal/cuda/stream_context.h"
#include "hal/cuda/stream_key.h"
#include "preempt/api/launch.h"

using xsched::cuda::Functions;

namespace {

bool IsLegacy(CUstream stream) { return stream == nullptr || stream == CU_STREAM_LEGACY; }

CUcontext CurrentContext(const Functions& next) {
  CUcontext context = nullptr;
  return next.cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context : nullptr;
}

uint64_t KeyOf(CUcontext context, CUstream stream) {
  return IsLegacy(stream) ? xsched::cuda::LegacyStreamKey(reinterpret_cast<uint64_t>(context))
                          : reinterpret_cast<uint64_t>(stream);
}

}  // namespace

XResult CudaQueueCreate(HwQueueHandle* hwq, CUstream stream) {
  if (hwq == nullptr || stream == CU_STREAM_PER_THREAD) return kXSchedErrorInvalidValue;
  const Functions* next = xsched::cuda::FindDriver();
  if (next == nullptr) return kXSchedErrorNotFound;
  xsched::preempt::ReentrancyGuard guard;
  xsched::WarnIfNotIntercepted("cuda");
  const CUstream actual = IsLegacy(stream) ? CU_STREAM_LEGACY : stream;
  const xsched::cuda::StreamContext stream_context(*next, actual);
  const CUcontext context = IsLegacy(stream) ? CurrentContext(*next) : stream_context.get();
  if (context == nullptr) return IsLegacy(stream) ? kXSchedErrorHardware : kXSchedErrorInvalidValue;
  return HwQueueMadeOrFound(CudaQueueRegister(next, context, actual, KeyOf(context, stream), hwq));
}

XResult CudaQueueGet(HwQueueHandle* hwq, CUstream stream) {
  if (hwq == nullptr || stream == CU_STREAM_PER_THREAD) return kXSchedErrorInvalidValue;
  const Functions* next = xsched::cuda::FindDriver();
  if (next == nullptr) return kXSchedErrorNotFound;
  xsched::preempt::ReentrancyGuard guard;
  HwQueueHandle found = HwQueueFind(kPlatformCUDA, KeyOf(CurrentContext(*next), stream));
  if (found == 0) return kXSchedErrorNotFound;
  *hwq = found;
  return kXSchedSuccess;
}
