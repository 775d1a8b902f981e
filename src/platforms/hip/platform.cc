#include "cli/platform.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include "platforms/hip/doctor.h"

namespace xsched::cli::hip {

std::string FindRuntime() {
  for (const char* name : {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"}) {
    void* library = dlopen(name, RTLD_LAZY);
    link_map* map = nullptr;
    if (library != nullptr && dlinfo(library, RTLD_DI_LINKMAP, &map) == 0) return map->l_name;
  }
  return "";
}

namespace {

std::vector<EnvironmentVariable> Variables() {
  using Kind = EnvironmentVariable::Kind;
  return {
      {.name = "XSCHED_HIP_LIB",
       .meaning = "the HIP runtime of queues that no shim saw, if the program has loaded several",
       .kind = Kind::kFile,
       .manual = kManualOfLibrary},
      {.name = "XSCHED_HIP_LEVEL",
       .meaning = "1 to 3: highest preemption level of HIP (1); 2 and 3, by the kernel's driver, are not "
                  "proven on AMD hardware",
       .kind = Kind::kNumber,
       .min = 1,
       .max = 3,
       .manual = "1 to 3: the highest preemption level of HIP; 1 unless set.\n"
                 "At 2, streams with a hardware queue of their own are suspended by AMD's kernel driver; at "
                 "3, whole processes as well.\n"
                 "Neither has been run on AMD hardware."}};
}

}  // namespace

const Platform& Get() {
  static const Platform platform = {
      .id = "hip",
      .name = kName,
      .number = kPlatformHIP,
      .shim = kShim,
      // Programs may bring their own runtime, as PyTorch does, but not the kernel's driver.
      .is_here = [] { return access(kKernelDriver, F_OK) == 0 || !FindRuntime().empty(); },
      .libraries = {{"libamdhip64.so", "HIP's runtime", "preloading reaches it, or its dispatch table"}},
      .variables = Variables(),
      .list_devices = ListDevices,
      .examine = Examine,
      .probe = Probe,
  };
  return platform;
}

}  // namespace xsched::cli::hip
