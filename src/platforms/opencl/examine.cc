#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "cli/doctor/child_process.h"
#include "cli/doctor/examine_device.h"
#include "cli/doctor/examine_program.h"
#include "cli/locations.h"
#include "cli/reach.h"
#include "platforms/opencl/doctor.h"
#include "platforms/opencl/probe.h"

namespace xsched::cli::opencl {
namespace {

namespace fs = std::filesystem;

std::string ExamineShim(Report& report) {
  std::optional<std::string> shim = FindLibrary(kShim);
  if (!shim) return Problem(report, kName, fmt::format("{} is not installed with this program", kShim));
  if (!CanBeLayer(*shim)) {
    return Problem(
        report, kName,
        fmt::format("{} cannot be a layer: OPENCL_LAYERS separates by colons; install it elsewhere", *shim));
  }
  if (std::string problem = LoadProblem(*shim); !problem.empty())
    return Problem(report, kName, fmt::format("the shim does not load: {}", problem));
  report.Ok(kName, fmt::format("shim {} loads", *shim));
  return "";
}

// Reports the drivers that the loader knows.
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
  if (!drivers.empty()) report.Ok(kName, fmt::format("drivers: {}", fmt::join(drivers, ", ")));
}

// The loader in the folder. "": there is none, or the folder is the system's and not the program's own.
std::string LoaderIn(const std::string& folder) {
  std::string loader = fmt::format("{}/{}", folder, kLoader);
  const bool is_systems = folder.starts_with("/usr/lib") || folder.starts_with("/lib");
  return fs::exists(loader) && !is_systems ? loader : "";
}

}  // namespace

std::string Examine(Report& report) {
  std::string shim_problem = ExamineShim(report);
  ExamineDrivers(report);
  ProbeResult native = Probe("");
  if (!native.error.empty()) return Problem(report, kName, native.error);
  if (!native.loader)
    return Problem(report, kName, "libOpenCL.so.1 cannot be loaded (Debian: ocl-icd-libopencl1)");
  for (const Device& device : native.devices) {
    report.Ok(kName, fmt::format("{}: {}: preemption level 1 (OpenCL has no means for 2 and 3)",
                                 device.platform, device.device));
  }
  if (native.devices.empty()) {
    return Problem(report, kName,
                   "no device (for the CPU, Debian: pocl-opencl-icd; else the vendor's driver)");
  }
  if (!shim_problem.empty()) return shim_problem;
  ProbeResult layered = Probe(*FindLibrary(kShim));
  if (!layered.error.empty()) return Problem(report, kName, fmt::format("under the shim, {}", layered.error));
  if (!layered.layer_works) {
    return Problem(report, kName,
                   "the loader takes no layers (Debian's does, since ocl-icd 2.3): try xsched run --route "
                   "preload");
  }
  report.Ok(kName, "route: layer (OPENCL_LAYERS); a queue made through it is scheduled");
  return "";
}

void ExamineProgram(Report& report, const ElfFile& elf, const std::string& path) {
  std::vector<std::string> folders = elf.run_path;
  folders.push_back(fs::path(path).parent_path().string());
  for (const std::string& folder : folders) {
    const std::string loader = LoaderIn(folder);
    if (loader.empty()) continue;
    if (FileContains(loader, kLayers)) {
      report.Ok(kAboutProgram, fmt::format("brings its own OpenCL loader, {}, which takes layers", loader));
    } else {
      report.Problem(kAboutProgram,
                     fmt::format("brings its own OpenCL loader, {}, which takes no layers: use xsched "
                                 "run --route preload",
                                 loader));
    }
    return;
  }
}

}  // namespace xsched::cli::opencl
