#include <errno.h>
#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "cli/child_process.h"
#include "cli/cuda_probe.h"
#include "cli/examine_platforms.h"
#include "cli/locations.h"

namespace xsched::cli {
namespace {

constexpr const char* kAbout = "CUDA";
constexpr const char* kDriver = "libcuda.so.1";
constexpr const char* kShim = "libshimcuda.so";

std::string Problem(Report& report, const std::string& text) {
  report.Problem(kAbout, text);
  return text;
}

// Of the kernel's module; "": it is not told here.
std::string DriverRelease() {
  std::string release;
  std::ifstream("/sys/module/nvidia/version") >> release;
  return release.empty() ? "" : fmt::format(", release {}", release);
}

// What keeps the driver from its GPUs, as far as one can see from here; "": nothing does.
std::string WhyNoGpu() {
  constexpr const char* kControl = "/dev/nvidiactl";
  if (access(kControl, R_OK | W_OK) != 0) {
    if (errno != ENOENT) return fmt::format("; {}: {}", kControl, strerror(errno));
    return fmt::format(
        "; {} is not there: the kernel's module is not loaded, or this container was not given the GPU "
        "(docker run --gpus all)",
        kControl);
  }
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible == nullptr ? "" : fmt::format("; CUDA_VISIBLE_DEVICES is \"{}\"", visible);
}

std::string ExamineDevice(Report& report, const CudaDevice& device) {
  const std::string name = fmt::format("{} {}", device.address, device.name);
  if (!device.error.empty()) return Problem(report, fmt::format("{}: {}", name, device.error));
  if (!device.scheduled) return Problem(report, fmt::format("{}: its streams are not scheduled", name));
  if (!device.stops) {
    return Problem(report, fmt::format("{}: a gate did not hold a stream{}", name,
                                       device.writes_64_bits ? "" : " (no 64-bit stream memory operations)"));
  }
  if (device.interrupts) {
    report.Ok(kAbout, fmt::format("{}: preemption levels 1, 2 and 3", name));
  } else {
    report.Note(kAbout, fmt::format("{}: preemption levels 1 and 2; not 3: {}", name, device.why_not));
  }
  return "";
}

}  // namespace

std::string ExamineCuda(Report& report) {
  const std::optional<std::string> shim = FindLibrary(kShim);
  if (!LoadProblem(kDriver).empty()) {
    const std::string text = fmt::format("{} cannot be loaded", kDriver);
    report.Note(kAbout, fmt::format("not here ({}){}", text, shim ? "; shim " + *shim : ""));
    return text;
  }
  if (!shim) {
    return Problem(report, fmt::format("{} is here, but {} is not installed with this program: CUDA programs "
                                       "run unscheduled",
                                       kDriver, kShim));
  }
  if (std::string problem = LoadProblem(*shim); !problem.empty())
    return Problem(report, fmt::format("the shim does not load: {}", problem));
  report.Ok(kAbout, fmt::format("shim {} loads; route: LD_PRELOAD", *shim));

  const CudaProbe probe = ProbeCuda(*shim);
  if (!probe.version.empty())
    report.Ok(kAbout, fmt::format("driver of CUDA {}{}", probe.version, DriverRelease()));
  if (!probe.error.empty()) return Problem(report, probe.error + WhyNoGpu());
  if (probe.devices.empty()) return Problem(report, "no GPU" + WhyNoGpu());
  std::string first;
  bool any = false;
  for (const CudaDevice& device : probe.devices) {
    std::string problem = ExamineDevice(report, device);
    any |= problem.empty();
    if (first.empty()) first = problem;
  }
  return any ? "" : first;
}

}  // namespace xsched::cli
