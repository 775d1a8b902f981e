#include "xsched/hip/hal.h"

#include "base/driver_library.h"
#include "hal/hip/last_error.h"
#include "hal/hip/queue.h"
#include "hal/hip/runtime.h"
#include "hal/hip/stream_key.h"
#include "preempt/api/launch.h"

using namespace xsched::hip;

namespace {

// The meaning of a handle for the calling thread.
struct Identity {
  Runtime* runtime = nullptr;  // null: there is none, or none knows the stream
  int device = 0;
  hipStream_t stream = nullptr;
  uint64_t key = 0;  // 0: the runtime does not say which device
};

Identity Identify(hipStream_t stream, const void* caller) {
  Identity identity;
  Runtime* callers = RuntimeOfCaller(caller);
  identity.runtime = IsNullStream(stream) || callers == nullptr ? callers : RuntimeOfStream(stream, callers);
  if (identity.runtime == nullptr) return identity;
  const Functions& next = identity.runtime->next();
  KeepLastError keep(next);
  bool known = next.hipGetDevice(&identity.device) == hipSuccess;
  if (IsNullStream(stream)) {
    identity.stream = kHipStreamNull;
    if (known) identity.key = NullStreamKey(identity.runtime->index(), identity.device);
    return identity;
  }
  identity.stream = stream;
  // In a runtime without this function, a stream can only be used while its device is current.
  if (next.hipGetStreamDeviceId != nullptr) {
    identity.device = next.hipGetStreamDeviceId(stream);
    known = identity.device >= 0;
  }
  if (known) identity.key = reinterpret_cast<uint64_t>(stream);
  return identity;
}

XResult Explain(hipStream_t stream, const void* caller) {
  // Either there is no runtime, or none knows the stream.
  return IsNullStream(stream) || RuntimeOfCaller(caller) == nullptr ? kXSchedErrorNotFound
                                                                    : kXSchedErrorInvalidValue;
}

}  // namespace

XResult HipQueueCreate(HwQueueHandle* hwq, hipStream_t stream) {
  if (hwq == nullptr || stream == kHipStreamPerThread) return kXSchedErrorInvalidValue;
  xsched::preempt::ReentrancyGuard guard;
  xsched::WarnIfNotIntercepted("hip");
  const void* caller = __builtin_return_address(0);
  const Identity identity = Identify(stream, caller);
  if (identity.runtime == nullptr) return Explain(stream, caller);
  if (identity.key == 0) return kXSchedErrorHardware;
  return HwQueueMadeOrFound(
      HipQueueRegister(identity.runtime, identity.device, identity.stream, identity.key, nullptr, hwq));
}

XResult HipQueueGet(HwQueueHandle* hwq, hipStream_t stream) {
  if (hwq == nullptr || stream == kHipStreamPerThread) return kXSchedErrorInvalidValue;
  xsched::preempt::ReentrancyGuard guard;
  const void* caller = __builtin_return_address(0);
  // The key of a real handle is the handle itself. So the runtime need not be asked.
  uint64_t key = reinterpret_cast<uint64_t>(stream);
  if (IsNullStream(stream)) {
    const Identity identity = Identify(stream, caller);
    if (identity.runtime == nullptr) return Explain(stream, caller);
    if (identity.key == 0) return kXSchedErrorHardware;
    key = identity.key;
  }
  HwQueueHandle found = HwQueueFind(kPlatformHIP, key);
  if (found == 0) return kXSchedErrorNotFound;
  *hwq = found;
  return kXSchedSuccess;
}
