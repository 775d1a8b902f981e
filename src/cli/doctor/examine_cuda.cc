#include <errno.h>
#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "cli/doctor/child_process.h"
#include "cli/doctor/device_probe.h"
#include "cli/doctor/examine_device.h"
#include "cli/doctor/examine_platforms.h"
#include "cli/locations.h"
#include "cli/shims.h"

namespace xsched::cli {
namespace {

constexpr const char* kAbout = "CUDA";
constexpr const char* kDriver = "libcuda.so.1";

// Of the kernel's module; "": it is not told here.
std::string DriverRelease() {
  std::string release;
  std::ifstream("/sys/module/nvidia/version") >> release;
  return release.empty() ? "" : fmt::format(" {}", release);
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

}  // namespace

std::string ExamineCuda(Report& report) {
  const std::optional<std::string> shim = FindLibrary(kCudaShim);
  if (!LoadProblem(kDriver).empty()) {
    std::string text = fmt::format("{} cannot be loaded", kDriver);
    report.Note(kAbout, fmt::format("not here ({}){}", text, shim ? "; shim " + *shim : ""));
    return text;
  }
  if (std::string problem = ShimProblem(report, kAbout, kDriver, kCudaShim); !problem.empty()) return problem;
  return ExamineDevices(report, kAbout, ProbeDevices("cuda"), fmt::format("driver{}, CUDA", DriverRelease()),
                        WhyNoGpu());
}

}  // namespace xsched::cli
