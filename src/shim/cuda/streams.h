// The scopes of calls on CUDA streams.
#pragma once

#include "shim/common/capture_scopes.h"
#include "shim/common/command_scopes.h"
#include "shim/cuda/platform.h"

namespace xsched::cuda {

using StreamWait = shim::StreamWait<Platform>;
using CaptureBegin = shim::CaptureBegin<Platform>;
using CaptureEnd = shim::CaptureEnd<Platform>;

// The scope of cuStreamDestroy.
class StreamDestruction {
 public:
  StreamDestruction(const Call&, CUstream stream) {
    // The default streams cannot be destroyed.
    if (!IsDefaultStream(stream)) shim::ForgetStream(reinterpret_cast<uint64_t>(stream));
  }
  void Finish(CUresult) {}
};

}  // namespace xsched::cuda
