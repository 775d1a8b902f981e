#include "cli/platform.h"

#include "platforms/opencl/doctor.h"
#include "platforms/opencl/work_device.h"

namespace xsched::cli::opencl {

const Platform& Get() {
  static const Platform platform = {
      .id = "opencl",
      .name = kName,
      .number = kPlatformOpenCL,
      .shim = kShim,
      .layers = kLayers,
      // A layer costs programs nothing that do not use OpenCL.
      .is_here = [] { return true; },
      .libraries = {{"libOpenCL.so", "the OpenCL loader", "both routes reach it"}},
      .variables = {{.name = "XSCHED_OPENCL_LIB",
                     .meaning = "the OpenCL library of queues that no shim saw",
                     .kind = EnvironmentVariable::Kind::kFile,
                     .manual = kManualOfLibrary}},
      .examine = Examine,
      .examine_program = ExamineProgram,
      .open_work_device = OpenWorkDevice,
  };
  return platform;
}

}  // namespace xsched::cli::opencl
