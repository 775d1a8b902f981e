// The scopes of calls on HIP streams.
#pragma once

#include "hal/hip/observe.h"
#include "shim/common/capture_scopes.h"
#include "shim/common/command_scopes.h"
#include "shim/hip/platform.h"

namespace xsched::hip {

using StreamWait = shim::StreamWait<Platform>;
using CaptureBegin = shim::CaptureBegin<Platform>;
using CaptureEnd = shim::CaptureEnd<Platform>;

// The scope of hipStreamCreate and similar calls.
class StreamCreation {
 public:
  explicit StreamCreation(const Call&) { HipStreamCreating(); }
  void Finish(hipError_t result, const hipStream_t* stream) {
    HipStreamCreated(result == hipSuccess && stream != nullptr ? *stream : nullptr);
  }
};

// The scope of hipStreamDestroy, which may wait for the stream's commands.
class StreamDestruction {
 public:
  StreamDestruction(const Call&, hipStream_t stream) {
    // The default streams cannot be destroyed.
    if (IsDefaultStream(stream)) return;
    HipStreamDestroying(stream);
    // The runtime ends a capture with the stream.
    shim::CaptureEnded(reinterpret_cast<uint64_t>(stream));
    shim::ForgetStream(reinterpret_cast<uint64_t>(stream));
  }
  void Finish(hipError_t) {}

 private:
  preempt::Barrier barrier_;
};

}  // namespace xsched::hip
