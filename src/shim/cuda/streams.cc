#include "shim/cuda/streams.h"

#include <atomic>

#include "base/log.h"
#include "hal/cuda/capture_mode.h"
#include "hal/cuda/queue.h"
#include "xsched/xqueue.h"

namespace xsched::shim {

constinit const XPlatform kPlatform = kPlatformCUDA;

}  // namespace xsched::shim

namespace xsched::cuda {
namespace {

// The context of `stream`, made current where it is not.
class ContextOfStream {
 public:
  ContextOfStream(const Functions& next, CUstream stream) : next_(next) {
    if (next.cuStreamGetCtx == nullptr || next.cuStreamGetCtx(stream, &context_) != CUDA_SUCCESS)
      context_ = nullptr;
    if (context_ != nullptr && context_ != CurrentContext()) {
      pushed_ = next.cuCtxPushCurrent_v2(context_) == CUDA_SUCCESS;
    }
  }
  ~ContextOfStream() {
    if (pushed_) next_.cuCtxPopCurrent_v2(&context_);
  }
  ContextOfStream(const ContextOfStream&) = delete;
  ContextOfStream& operator=(const ContextOfStream&) = delete;

  CUcontext get() const { return context_; }  // null: no such stream

 private:
  const Functions& next_;
  CUcontext context_ = nullptr;
  bool pushed_ = false;
};

shim::StreamFacts FactsOf(const Functions& next, CUstream stream, CUcontext context) {
  unsigned flags = 0;
  if (next.cuStreamGetFlags != nullptr) next.cuStreamGetFlags(stream, &flags);
  return {HomeOf(context), stream != CU_STREAM_LEGACY && (flags & CU_STREAM_NON_BLOCKING) == 0,
          stream == CU_STREAM_PER_THREAD};
}

void MakeXQueue(const Functions& next, CUcontext context, CUstream stream, uint64_t key) {
  HwQueueHandle hwq = 0;
  XResult result = CudaQueueRegister(&next, context, stream, key, &hwq);
  if (result == kXSchedSuccess) {
    result = preempt::AutoXQueueCreate(hwq);
    if (result == kXSchedSuccess) return;
    HwQueueDestroy(hwq);
  }
  static std::atomic<bool> warned{false};
  if (!warned.exchange(true)) XSCHED_WARN("a CUDA stream runs unscheduled (XSched error %d)", result);
}

// The stream's record, if it is new: `make_queue` also makes its XQueue.
shim::Stream* Meet(CUstream stream, uint64_t key, bool make_queue) {
  preempt::ReentrancyGuard guard;
  const Functions& next = Driver();
  RelaxedCaptureMode relaxed(next);
  ContextOfStream context(next, stream);
  if (context.get() == nullptr) return nullptr;
  shim::Meeting meeting(key);
  if (meeting.known() != nullptr) return meeting.known();
  if (!meeting.Begin(FactsOf(next, stream, context.get()))) return nullptr;
  if (make_queue) MakeXQueue(next, context.get(), stream, key);
  return meeting.Publish();
}

}  // namespace

preempt::XQueue* MeetStream(CUstream stream, uint64_t key) {
  // Once met without getting one, it stays without.
  if (shim::FindStream(key) != nullptr || !preempt::AutoXQueueEnabled()) return nullptr;
  return Meet(stream, key, true) == nullptr ? nullptr : shim::FindQueue(key);
}

shim::Stream* RecordOf(CUstream stream, uint64_t key) {
  if (shim::Stream* known = shim::FindStream(key)) return known;
  return Meet(stream, key, false);
}

bool AskWhetherCapturing(CUstream stream) {
  const Functions& next = Driver();
  if (next.cuStreamIsCapturing == nullptr) return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  // An error: the legacy stream, while a stream that it waits for is capturing.
  return next.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

}  // namespace xsched::cuda
