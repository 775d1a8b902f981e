#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "cli/doctor/child_process.h"
#include "cli/doctor/examine_device.h"
#include "cli/doctor/examine_platforms.h"
#include "cli/doctor/opencl_probe.h"
#include "cli/locations.h"
#include "cli/reach.h"
#include "cli/shims.h"

namespace xsched::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAbout = "OpenCL";

std::string ExamineShim(Report& report) {
  std::optional<std::string> shim = FindLibrary(kOpenClShim);
  if (!shim)
    return Problem(report, kAbout, fmt::format("{} is not installed with this program", kOpenClShim));
  if (!CanBeLayer(*shim)) {
    return Problem(
        report, kAbout,
        fmt::format("{} cannot be a layer: OPENCL_LAYERS separates by colons; install it elsewhere", *shim));
  }
  if (std::string problem = LoadProblem(*shim); !problem.empty())
    return Problem(report, kAbout, fmt::format("the shim does not load: {}", problem));
  report.Ok(kAbout, fmt::format("shim {} loads", *shim));
  return "";
}

// The drivers that the loader knows of.
void ExamineDrivers(Report& report) {
  std::vector<std::string> drivers;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/etc/OpenCL/vendors", none)) {
    if (entry.path().extension() != ".icd") continue;
    std::string library;
    std::ifstream(entry.path()) >> library;
    drivers.push_back(fmt::format("{} ({})", entry.path().filename().string(), library));
  }
  std::sort(drivers.begin(), drivers.end());
  if (!drivers.empty()) report.Ok(kAbout, fmt::format("drivers: {}", fmt::join(drivers, ", ")));
}

}  // namespace

std::string ExamineOpenCl(Report& report) {
  std::string shim_problem = ExamineShim(report);
  ExamineDrivers(report);
  OpenClProbe native = ProbeOpenCl("");
  if (!native.error.empty()) return Problem(report, kAbout, native.error);
  if (!native.loader)
    return Problem(report, kAbout, "libOpenCL.so.1 cannot be loaded (Debian: ocl-icd-libopencl1)");
  for (const OpenClDevice& device : native.devices) {
    report.Ok(kAbout, fmt::format("{}: {}: preemption level 1 (OpenCL has no means for 2 and 3)",
                                  device.platform, device.device));
  }
  if (native.devices.empty()) {
    return Problem(report, kAbout,
                   "no device (for the CPU, Debian: pocl-opencl-icd; else the vendor's driver)");
  }
  if (!shim_problem.empty()) return shim_problem;
  OpenClProbe layered = ProbeOpenCl(*FindLibrary(kOpenClShim));
  if (!layered.error.empty())
    return Problem(report, kAbout, fmt::format("under the shim, {}", layered.error));
  if (!layered.layer_works) {
    return Problem(report, kAbout,
                   "the loader takes no layers (Debian's does, since ocl-icd 2.3): try xsched run --route "
                   "preload");
  }
  report.Ok(kAbout, "route: layer (OPENCL_LAYERS); a queue made through it is scheduled");
  return "";
}

}  // namespace xsched::cli
