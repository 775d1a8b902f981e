// Describes CUDA to the scopes that shims share (shim/common: barrier.h, *_scopes.h).
#pragma once

#include <cstdint>

#include "hal/cuda/stream_key.h"
#include "shim/common/streams.h"
#include "shim/cuda/call.h"

namespace xsched::cuda {

// A wrapper's handle, with 0 made explicit.
template <bool kPerThread>
CUstream ActualStream(CUstream stream) {
  return stream != nullptr ? stream : kPerThread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

struct Platform {
  using Call = cuda::Call;
  using Result = CUresult;
  using Stream = CUstream;
  using Event = CUevent;
  static constexpr CUresult kSuccess = CUDA_SUCCESS;
  static constexpr bool kHoldsThreads = false;

  // 0: the handle names no stream.
  static uint64_t KeyOf(const Call& call, CUstream stream) {
    if (!IsDefaultStream(stream)) return reinterpret_cast<uint64_t>(stream);
    const auto context = reinterpret_cast<uint64_t>(call.context());
    if (context == 0) return 0;
    return stream == CU_STREAM_PER_THREAD ? PerThreadStreamKey(context, shim::ThreadNumber())
                                          : LegacyStreamKey(context);
  }
  static CUstream StreamOf(const CUDA_LAUNCH_PARAMS& launch) { return ActualStream<false>(launch.hStream); }

  // Registers a stream: `with_queue`, with an XQueue over it. Null: no such stream, or no memory.
  static shim::Stream* Register(const Call& call, CUstream stream, uint64_t key, bool with_queue);
  // Asks the driver. When in doubt, the stream is capturing.
  static bool AskWhetherCapturing(const Call& call, CUstream stream);
  // After the result of a failed end of a capture.
  static bool CaptureGoesOn(const Call& call, CUstream stream, CUresult) {
    return AskWhetherCapturing(call, stream);
  }
  static bool HasHappened(const Call& call, CUevent event);
};

}  // namespace xsched::cuda
