// The scopes of calls that put commands on CUDA streams.
#pragma once

#include "shim/common/command_scopes.h"
#include "shim/cuda/code.h"
#include "shim/cuda/platform.h"

namespace xsched::cuda {

using Launch = shim::Launch<Platform>;
using MultiLaunch = shim::MultiLaunch<Platform>;

// The launch of a kernel, which may have to load its code.
class KernelLaunch {
 public:
  [[gnu::always_inline]] KernelLaunch(const Call& call, CUstream stream, CUfunction function)
      : use_(call, function), launch_(call, stream) {}
  [[gnu::always_inline]] void Finish(CUresult result) { launch_.Finish(result, false); }

 private:
  CodeUse use_;
  Launch launch_;
};

// The same with attributes, by which it may record events.
class AttributedLaunch {
 public:
  [[gnu::always_inline]] AttributedLaunch(const Call& call, CUstream stream, CUfunction function,
                                          const CUlaunchConfig* config)
      : launch_(call, stream, function) {
    if (config != nullptr && config->numAttrs != 0) FindEventsIn(call, *config);
  }
  [[gnu::always_inline]] void Finish(CUresult result) { launch_.Finish(result); }

 private:
  static void FindEventsIn(const Call& call, const CUlaunchConfig& config);

  KernelLaunch launch_;
};

}  // namespace xsched::cuda
