#include <errno.h>
#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

#include "cli/doctor/child_process.h"
#include "cli/doctor/device_probe.h"
#include "cli/doctor/elf_file.h"
#include "cli/doctor/examine_device.h"
#include "cli/doctor/examine_platforms.h"
#include "cli/locations.h"
#include "cli/shims.h"
#include "xsched/types.h"

namespace xsched::cli {
namespace {

constexpr const char* kAbout = "HIP";

// What keeps the runtime from its GPUs, as far as one can see from here; "": nothing does.
std::string WhyNoGpu() {
  constexpr const char* kDriver = "/dev/kfd";
  if (access(kDriver, R_OK | W_OK) == 0) return "";
  if (errno != ENOENT) return fmt::format("; {}: {} (groups render, video)", kDriver, strerror(errno));
  return fmt::format(
      "; {} is not there: the kernel's driver (amdgpu) is not loaded, or this container was not given the "
      "GPU "
      "(--device /dev/kfd --device /dev/dri)",
      kDriver);
}

// Built with it, a runtime offers its dispatch table to tools (since ROCm 6.2).
bool HasDispatchTable(const std::string& runtime) {
  const std::optional<ElfFile> elf = ReadElf(runtime);
  return elf && std::any_of(elf->needed.begin(), elf->needed.end(), [](const std::string& library) {
           return library.starts_with("librocprofiler-register.so");
         });
}

}  // namespace

std::string ExamineHip(Report& report) {
  const std::optional<std::string> shim = FindLibrary(kHipShim);
  const std::string runtime = InChild(FindHipRuntime).value_or("");
  if (runtime.empty()) {
    std::string text = "libamdhip64.so cannot be loaded";
    report.Note(kAbout, fmt::format("not here ({}; programs may bring their own){}", text,
                                    shim ? "; shim " + *shim : ""));
    return text;
  }
  if (std::string problem = ShimProblem(report, kAbout, runtime, kHipShim); !problem.empty()) return problem;
  report.Ok(kAbout, fmt::format("runtime {}: calls are caught {}", runtime,
                                HasDispatchTable(runtime) ? "in its dispatch table"
                                                          : "by their names (it offers no dispatch table)"));
  const DeviceProbe probe = ProbeDevices("hip");
  std::string problem = ExamineDevices(report, kAbout, probe, "HIP", WhyNoGpu());
  if (std::any_of(probe.devices.begin(), probe.devices.end(),
                  [](const ProbedDevice& device) { return device.level > kPreemptLevelBlock; })) {
    report.Note(kAbout,
                "levels 2 and 3 are on (XSCHED_HIP_LEVEL), and have not been run on AMD hardware: try them "
                "with work that may be lost");
  }
  return problem;
}

}  // namespace xsched::cli
