// What a CUDA program's streams are to XSched: shim/common/streams.h, for the streams of any context.
#pragma once

#include <cstdint>

#include "cuda/functions.h"
#include "preempt/api/launch.h"
#include "shim/common/streams.h"
#include "shim/cuda/capture.h"
#include "shim/cuda/stream_key.h"

namespace xsched::cuda {

// The default stream of `context`, as the home of its streams.
inline uint64_t HomeOf(CUcontext context) { return LegacyStreamKey(reinterpret_cast<uint64_t>(context)); }

// The XQueue of a stream that is met here; null: it is to run unscheduled.
preempt::XQueue* MeetStream(CUstream stream, uint64_t key);
// Its record, without making an XQueue. Null: no such stream, or no memory.
shim::Stream* RecordOf(CUstream stream, uint64_t key);

// The XQueue that a command for `stream` is put on now. Null: it passes untouched.
inline preempt::XQueue* QueueForCommand(CUstream stream) {
  if (preempt::InsideXSched() || IsCapturing(stream)) return nullptr;
  const uint64_t key = KeyOf(stream);
  preempt::XQueue* queue = shim::FindQueue(key);
  return queue != nullptr || key == 0 ? queue : MeetStream(stream, key);
}

// Around cuStreamDestroy.
class StreamDestruction {
 public:
  explicit StreamDestruction(CUstream stream) {
    // The default streams cannot be destroyed.
    if (!preempt::InsideXSched() && !IsDefaultStream(stream)) shim::ForgetStream(KeyOf(stream));
  }
  void Finish(CUresult) {}
};

}  // namespace xsched::cuda
