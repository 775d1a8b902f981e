// Describes HIP to the scopes that shims share (shim/common: barrier.h, *_scopes.h).
#pragma once

#include <cstdint>

#include "hal/hip/stream_key.h"
#include "shim/common/streams.h"
#include "shim/hip/call.h"

namespace xsched::hip {

// A wrapper's handle, with the meaning of the null stream made explicit.
template <bool kPerThread>
hipStream_t ActualStream(hipStream_t stream) {
  return kPerThread && stream == nullptr ? kHipStreamPerThread : stream;
}

// The calling thread's current device, by the instance's number; -1: unknown.
inline int CurrentDevice(const Instance& instance) {
  int device = -1;
  return instance.runtime().next().hipGetDevice(&device) == hipSuccess ? device : -1;
}

// The device of `stream`, by the instance's number; -1: there is no such stream.
int DeviceOfStream(const Instance& instance, hipStream_t stream);

struct Platform {
  using Call = hip::Call;
  using Result = hipError_t;
  using Stream = hipStream_t;
  using Event = hipEvent_t;
  static constexpr hipError_t kSuccess = hipSuccess;
  static constexpr bool kHoldsThreads = true;  // a held stream holds the thread that launches on it

  // 0: the handle names no stream.
  static uint64_t KeyOf(const Call& call, hipStream_t stream) {
    if (!IsDefaultStream(stream)) return reinterpret_cast<uint64_t>(stream);
    const Instance& instance = call.instance();
    const int device = CurrentDevice(instance);
    if (device < 0) return 0;
    return IsNullStream(stream)
               ? NullStreamKey(instance.runtime().index(), device)
               : PerThreadStreamKey(instance.runtime().index(), device, shim::ThreadNumber());
  }
  static hipStream_t StreamOf(const hipLaunchParams& launch) { return launch.stream; }
  static hipStream_t StreamOf(const hipFunctionLaunchParams& launch) { return launch.hStream; }

  // Registers a stream: `with_queue`, with an XQueue over it. Null: no such stream, or no memory.
  static shim::Stream* Register(const Call& call, hipStream_t stream, uint64_t key, bool with_queue);
  // Asks the runtime. When in doubt, the stream is capturing.
  static bool AskWhetherCapturing(const Call& call, hipStream_t stream);
  // After the result of a failed end of a capture. The runtime is not asked: before ROCm 7, that would clear
  // the program's last error.
  static bool CaptureGoesOn(const Call&, hipStream_t, hipError_t result) {
    return result == hipErrorInvalidValue || result == hipErrorStreamCaptureUnjoined ||
           result == hipErrorStreamCaptureWrongThread;
  }
  static bool HasHappened(const Call& call, hipEvent_t event);
};

}  // namespace xsched::hip
