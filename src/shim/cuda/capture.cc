#include "shim/cuda/capture.h"

#include "shim/cuda/driver.h"

namespace xsched::cuda {

bool AskWhetherCapturing(CUstream stream) {
  const Functions& next = Driver();
  if (next.cuStreamIsCapturing == nullptr) return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  // An error: the legacy stream, while a stream that it waits for is capturing.
  return next.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

}  // namespace xsched::cuda
