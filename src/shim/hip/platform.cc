#include "shim/hip/platform.h"

#include "hal/hip/capturing.h"
#include "hal/hip/last_error.h"
#include "hal/hip/own_calls.h"
#include "hal/hip/queue.h"
#include "preempt/api/query_lock.h"
#include "shim/common/auto_queue.h"
#include "shim/common/captures.h"

namespace xsched::shim {

constinit const XPlatform kPlatform = kPlatformHIP;

}  // namespace xsched::shim

namespace xsched::hip {
namespace {

shim::StreamFacts FactsOf(const Instance& instance, hipStream_t stream, int device) {
  const Functions& next = instance.runtime().next();
  unsigned flags = 0;
  if (!IsDefaultStream(stream) && next.hipStreamGetFlags != nullptr) next.hipStreamGetFlags(stream, &flags);
  return {NullStreamKey(instance.runtime().index(), device), 0,
          !IsNullStream(stream) && (flags & kHipStreamNonBlocking) == 0, stream == kHipStreamPerThread};
}

}  // namespace

int DeviceOfStream(const Instance& instance, hipStream_t stream) {
  const Functions& next = instance.runtime().next();
  if (IsDefaultStream(stream) || next.hipGetStreamDeviceId == nullptr) return CurrentDevice(instance);
  return next.hipGetStreamDeviceId(stream);
}

shim::Stream* Platform::Register(const Call& call, hipStream_t stream, uint64_t key, bool with_queue) {
  const Instance& instance = call.instance();
  const OwnCalls ours(instance.runtime().next());
  const int device = DeviceOfStream(instance, stream);
  if (device < 0) return nullptr;
  return shim::RegisterStream(key, FactsOf(instance, stream, device), with_queue, [&] {
    HwQueueHandle hwq = 0;
    hipStream_t actual = IsNullStream(stream) ? kHipStreamNull : stream;
    const XResult made =
        HipQueueRegister(&instance.runtime(), device, actual, key, &shim::blocking_streams, &hwq);
    shim::CreateXQueue(made, hwq, "a HIP stream");
  });
}

bool Platform::AskWhetherCapturing(const Call& call, hipStream_t stream) {
  const Functions& next = call.instance().runtime().next();
  KeepLastError keep(next);
  return hip::AskWhetherCapturing(next, stream);
}

// A query of an event may invalidate a capture of the stream on which it was recorded (hal/hip/queue.cc). So
// during captures it counts as not having happened.
bool Platform::HasHappened(const Call& call, hipEvent_t event) {
  preempt::QueryLock no_capture_begins;
  if (!no_capture_begins || shim::AnyCapture()) return false;
  const Functions& next = call.instance().runtime().next();
  const OwnCalls ours(next);
  return next.hipEventQuery(event) == hipSuccess;
}

}  // namespace xsched::hip
