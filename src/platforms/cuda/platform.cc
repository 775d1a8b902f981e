#include "cli/platform.h"

#include <dlfcn.h>

#include "platforms/cuda/doctor.h"
#include "platforms/cuda/shared_context.h"
#include "platforms/cuda/work_device.h"

namespace xsched::cli::cuda {

const Platform& Get() {
  static const Platform platform = {
      .id = "cuda",
      .name = kName,
      .number = kPlatformCUDA,
      .shim = kShim,
      .is_here = [] { return dlopen(kDriver, RTLD_LAZY) != nullptr; },
      .libraries = {{"libcuda.so", "CUDA's driver", "preloading reaches it"},
                    {"libcudart.so", "CUDA's runtime", "preloading reaches it"}},
      .variables = {{.name = "XSCHED_CUDA_LIB",
                     .meaning = "CUDA's driver library, if it is not the one loaded as libcuda.so.1",
                     .kind = EnvironmentVariable::Kind::kFile,
                     .manual = kManualOfLibrary}},
      .list_devices = ListDevices,
      .examine = Examine,
      .probe = Probe,
      .open_work_device = OpenWorkDevice,
      .share_context = ShareContext,
  };
  return platform;
}

}  // namespace xsched::cli::cuda
