#include "shim/cuda/commands.h"

#include "cuda/wrappers.h"

namespace xsched::shim {

// As programs write it: without its version, and whichever the default stream is.
const char* FunctionName(int function) {
  for (const cuda::Version& version : cuda::kVersions) {
    if (version.function == function) return version.symbol;
  }
  return cuda::kFunctionNames[function];
}

}  // namespace xsched::shim

namespace xsched::cuda {

MultiLaunch::MultiLaunch(const Call& call, const CUDA_LAUNCH_PARAMS* launches, unsigned count) {
  for (unsigned i = 0; launches != nullptr && i < count && i < kMaxStreams; ++i) {
    launches_[i].emplace(call, ActualStream<false>(launches[i].hStream));
  }
}

void MultiLaunch::Finish(CUresult result) {
  for (std::optional<Launch>& launch : launches_) {
    if (launch.has_value()) launch->Finish(result, false);
  }
}

}  // namespace xsched::cuda
