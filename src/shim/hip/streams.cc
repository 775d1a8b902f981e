#include "shim/hip/streams.h"

#include "base/log.h"
#include "hal/hip/capture_mode.h"
#include "hal/hip/last_error.h"
#include "hal/hip/queue.h"
#include "xsched/xqueue.h"

namespace xsched::shim {

constinit const XPlatform kPlatform = kPlatformHIP;

}  // namespace xsched::shim

namespace xsched::hip {
namespace {

// The device that `stream` is on; -1: there is no such stream.
int DeviceOf(const Copy& copy, hipStream_t stream) {
  const Functions& next = copy.runtime().next();
  if (IsDefaultStream(stream) || next.hipGetStreamDeviceId == nullptr) return CurrentDevice(copy);
  return next.hipGetStreamDeviceId(stream);
}

shim::StreamFacts FactsOf(const Copy& copy, hipStream_t stream, int device) {
  const Functions& next = copy.runtime().next();
  unsigned flags = 0;
  if (!IsDefaultStream(stream) && next.hipStreamGetFlags != nullptr) next.hipStreamGetFlags(stream, &flags);
  return {NullStreamKey(copy.runtime().index(), device),
          !IsNullStream(stream) && (flags & kHipStreamNonBlocking) == 0, stream == kHipStreamPerThread};
}

void MakeXQueue(const Copy& copy, int device, hipStream_t stream, uint64_t key) {
  HwQueueHandle hwq = 0;
  hipStream_t actual = IsNullStream(stream) ? kHipStreamNull : stream;
  XResult result = HipQueueRegister(&copy.runtime(), device, actual, key, &hwq);
  // One that the program made by itself (HipQueueCreate), without an XQueue, is not ours.
  if (result == kXSchedErrorNotAllowed) return;
  if (result == kXSchedSuccess) {
    result = preempt::AutoXQueueCreate(hwq);
    if (result == kXSchedSuccess) return;
    HwQueueDestroy(hwq);
  }
  static std::atomic<bool> warned{false};
  if (!warned.exchange(true)) XSCHED_WARN("a HIP stream runs unscheduled (XSched error %d)", result);
}

// The stream's record, if it is new: `make_queue` also makes its XQueue.
shim::Stream* Meet(const Copy& copy, hipStream_t stream, uint64_t key, bool make_queue) {
  preempt::ReentrancyGuard guard;
  const Functions& next = copy.runtime().next();
  KeepLastError keep(next);
  RelaxedCaptureMode relaxed(next);
  const int device = DeviceOf(copy, stream);
  if (device < 0) return nullptr;
  const shim::StreamFacts facts = FactsOf(copy, stream, device);
  shim::Meeting meeting(key);
  if (meeting.known() != nullptr) return meeting.known();
  if (!meeting.Begin(facts)) return nullptr;
  if (make_queue) MakeXQueue(copy, device, stream, key);
  return meeting.Publish();
}

}  // namespace

preempt::XQueue* MeetStream(const Copy& copy, hipStream_t stream, uint64_t key) {
  // Once met without getting one, it stays without.
  if (shim::FindStream(key) != nullptr || !preempt::AutoXQueueEnabled()) return nullptr;
  return Meet(copy, stream, key, true) == nullptr ? nullptr : shim::FindQueue(key);
}

shim::Stream* RecordOf(const Copy& copy, hipStream_t stream, uint64_t key) {
  if (shim::Stream* known = shim::FindStream(key)) return known;
  return Meet(copy, stream, key, false);
}

bool AskWhetherCapturing(const Copy& copy, hipStream_t stream) {
  const Functions& next = copy.runtime().next();
  if (next.hipStreamIsCapturing == nullptr) return false;
  KeepLastError keep(next);
  hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
  // An error: the null stream, while a stream that it waits for is capturing.
  return next.hipStreamIsCapturing(stream, &status) != hipSuccess || status != hipStreamCaptureStatusNone;
}

}  // namespace xsched::hip
