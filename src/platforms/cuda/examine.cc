#include <errno.h>
#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "cli/doctor/child_process.h"
#include "cli/doctor/examine_device.h"
#include "cli/locations.h"
#include "platforms/cuda/doctor.h"

namespace xsched::cli::cuda {
namespace {

// The release of the kernel's module. "": unknown.
std::string DriverRelease() {
  std::string release;
  std::ifstream("/sys/module/nvidia/version") >> release;
  return release.empty() ? "" : fmt::format(" {}", release);
}

// Why the driver may find no GPU, as far as a program can see. "": no reason found.
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

std::string Examine(Report& report) {
  const std::optional<std::string> shim = FindLibrary(kShim);
  if (!LoadProblem(kDriver).empty()) {
    std::string text = fmt::format("{} cannot be loaded", kDriver);
    report.Note(kName, fmt::format("not here ({}){}", text, shim ? "; shim " + *shim : ""));
    return text;
  }
  if (std::string problem = ShimProblem(report, kName, kDriver, kShim); !problem.empty()) return problem;
  return ExamineDevices(report, kName, ProbeDevices("cuda"), fmt::format("driver{}, CUDA", DriverRelease()),
                        WhyNoGpu());
}

}  // namespace xsched::cli::cuda
