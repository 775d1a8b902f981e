#include <errno.h>
#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

#include "cli/doctor/child_process.h"
#include "cli/doctor/elf_file.h"
#include "cli/doctor/examine_device.h"
#include "cli/locations.h"
#include "platforms/hip/doctor.h"
#include "xsched/types.h"

namespace xsched::cli::hip {
namespace {

// Why the runtime may find no GPU, as far as a program can see. "": no reason found.
std::string WhyNoGpu() {
  if (access(kKernelDriver, R_OK | W_OK) == 0) return "";
  if (errno != ENOENT) return fmt::format("; {}: {} (groups render, video)", kKernelDriver, strerror(errno));
  return fmt::format(
      "; {} is not there: the kernel's driver (amdgpu) is not loaded, or this container was not given the "
      "GPU "
      "(--device /dev/kfd --device /dev/dri)",
      kKernelDriver);
}

// True if the runtime offers its dispatch table to tools (since ROCm 6.2, and only if built so).
bool HasDispatchTable(const std::string& runtime) {
  const std::optional<ElfFile> elf = ReadElf(runtime);
  return elf && std::any_of(elf->needed.begin(), elf->needed.end(), [](const std::string& library) {
           return library.starts_with("librocprofiler-register.so");
         });
}

}  // namespace

std::string Examine(Report& report) {
  const std::optional<std::string> shim = FindLibrary(kShim);
  const std::string runtime = InChild(FindRuntime).value_or("");
  if (runtime.empty()) {
    std::string text = "libamdhip64.so cannot be loaded";
    report.Note(kName, fmt::format("not here ({}; programs may bring their own){}", text,
                                   shim ? "; shim " + *shim : ""));
    return text;
  }
  if (std::string problem = ShimProblem(report, kName, runtime, kShim); !problem.empty()) return problem;
  report.Ok(kName, fmt::format("runtime {}: calls are caught {}", runtime,
                               HasDispatchTable(runtime) ? "in its dispatch table"
                                                         : "by their names (it offers no dispatch table)"));
  const DeviceProbe probe = ProbeDevices("hip");
  std::string problem = ExamineDevices(report, kName, probe, "HIP", WhyNoGpu());
  if (std::any_of(probe.devices.begin(), probe.devices.end(),
                  [](const ProbedDevice& device) { return device.level > kPreemptLevelBlock; })) {
    report.Note(kName,
                "levels 2 and 3 are on (XSCHED_HIP_LEVEL), and have not been run on AMD hardware: try them "
                "with work that may be lost");
  }
  return problem;
}

}  // namespace xsched::cli::hip
