// What a CUDA program's streams are to XSched: shim/common/streams.h, for the streams of any context.
#pragma once

#include <cstdint>

#include "hal/cuda/stream_key.h"
#include "preempt/api/launch.h"
#include "shim/common/captures.h"
#include "shim/common/streams.h"
#include "shim/cuda/call.h"

namespace xsched::cuda {

// A wrapper's handle, with 0 made explicit.
template <bool kPerThread>
CUstream ActualStream(CUstream stream) {
  return stream != nullptr ? stream : kPerThread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

// 0: it means no stream.
inline uint64_t KeyOf(CUstream stream) {
  if (!IsDefaultStream(stream)) return reinterpret_cast<uint64_t>(stream);
  const auto context = reinterpret_cast<uint64_t>(CurrentContext());
  if (context == 0) return 0;
  return stream == CU_STREAM_PER_THREAD ? PerThreadStreamKey(context, shim::ThreadNumber())
                                        : LegacyStreamKey(context);
}

// The default stream of `context`, as the home of its streams.
inline uint64_t HomeOf(CUcontext context) { return LegacyStreamKey(reinterpret_cast<uint64_t>(context)); }

// The XQueue of a stream that is met here; null: it is to run unscheduled.
preempt::XQueue* MeetStream(CUstream stream, uint64_t key);
// Its record, without making an XQueue. Null: no such stream, or no memory.
shim::Stream* RecordOf(CUstream stream, uint64_t key);

// As the driver says. When in doubt, it is.
bool AskWhetherCapturing(CUstream stream);
inline bool IsCapturing(CUstream stream) { return shim::AnyCapture() && AskWhetherCapturing(stream); }

// The XQueue that a command for `stream` is put on now. Null: it passes untouched.
inline preempt::XQueue* QueueForCommand(CUstream stream) {
  if (IsCapturing(stream)) return nullptr;
  const uint64_t key = KeyOf(stream);
  preempt::XQueue* queue = shim::FindQueue(key);
  return queue != nullptr || key == 0 ? queue : MeetStream(stream, key);
}

// Around cuStreamDestroy.
class StreamDestruction {
 public:
  StreamDestruction(const Call&, CUstream stream) {
    // The default streams cannot be destroyed.
    if (!IsDefaultStream(stream)) shim::ForgetStream(KeyOf(stream));
  }
  void Finish(CUresult) {}
};

}  // namespace xsched::cuda
