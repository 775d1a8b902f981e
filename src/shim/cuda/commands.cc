#include "shim/cuda/commands.h"

namespace xsched::cuda {

MultiLaunch::MultiLaunch(const CUDA_LAUNCH_PARAMS* launches, unsigned count, const void* caller) {
  for (unsigned i = 0; launches != nullptr && i < count && i < kMaxStreams; ++i) {
    launches_[i].emplace(ActualStream<false>(launches[i].hStream), caller);
  }
}

void MultiLaunch::Finish(CUresult result) {
  for (std::optional<Launch>& launch : launches_) {
    if (launch.has_value()) launch->Finish(result, false);
  }
}

}  // namespace xsched::cuda
