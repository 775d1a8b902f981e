// What a HIP program's streams are to XSched: shim/common/streams.h, for the streams of any copy of the
// runtime.
#pragma once

#include <cstdint>

#include "hal/hip/observe.h"
#include "hal/hip/stream_key.h"
#include "preempt/api/launch.h"
#include "shim/common/captures.h"
#include "shim/common/streams.h"
#include "shim/hip/copies.h"

namespace xsched::hip {

// A wrapper's handle, with what the null stream means made explicit.
template <bool kPerThread>
hipStream_t ActualStream(hipStream_t stream) {
  return kPerThread && stream == nullptr ? kHipStreamPerThread : stream;
}

// Of the calling thread, as the copy numbers them; -1: it does not say.
inline int CurrentDevice(const Copy& copy) {
  int device = -1;
  return copy.runtime().next().hipGetDevice(&device) == hipSuccess ? device : -1;
}

// 0: it means no stream.
inline uint64_t KeyOf(const Copy& copy, hipStream_t stream) {
  if (!IsDefaultStream(stream)) return reinterpret_cast<uint64_t>(stream);
  const int device = CurrentDevice(copy);
  if (device < 0) return 0;
  return IsNullStream(stream) ? NullStreamKey(copy.runtime().index(), device)
                              : PerThreadStreamKey(copy.runtime().index(), device, shim::ThreadNumber());
}

// The XQueue of a stream that is met here; null: it is to run unscheduled.
preempt::XQueue* MeetStream(const Copy& copy, hipStream_t stream, uint64_t key);
// Its record, without making an XQueue. Null: no such stream, or no memory.
shim::Stream* RecordOf(const Copy& copy, hipStream_t stream, uint64_t key);

// As the runtime says. When in doubt, it is.
bool AskWhetherCapturing(const Copy& copy, hipStream_t stream);
inline bool IsCapturing(const Copy& copy, hipStream_t stream) {
  return shim::AnyCapture() && AskWhetherCapturing(copy, stream);
}

// The XQueue that a command for `stream` is put on now. Null: it passes untouched.
inline preempt::XQueue* QueueForCommand(const Copy& copy, hipStream_t stream) {
  if (IsCapturing(copy, stream)) return nullptr;
  const uint64_t key = KeyOf(copy, stream);
  preempt::XQueue* queue = shim::FindQueue(key);
  return queue != nullptr || key == 0 ? queue : MeetStream(copy, stream, key);
}

// Around hipStreamCreate and the like.
class StreamCreation {
 public:
  explicit StreamCreation(const Call&) { HipStreamCreating(); }
  void Finish(hipError_t result, const hipStream_t* stream) {
    HipStreamCreated(result == hipSuccess && stream != nullptr ? *stream : nullptr);
  }
};

// Around hipStreamDestroy, which may wait for what is on the stream.
class StreamDestruction {
 public:
  StreamDestruction(const Call&, hipStream_t stream) {
    // The default streams cannot be destroyed.
    if (IsDefaultStream(stream)) return;
    HipStreamDestroying(stream);
    shim::ForgetStream(reinterpret_cast<uint64_t>(stream));
  }
  void Finish(hipError_t) {}

 private:
  preempt::Barrier barrier_;
};

}  // namespace xsched::hip
