#include "cli/doctor/examine_device.h"

#include <fmt/format.h>

#include "cli/doctor/child_process.h"
#include "cli/locations.h"
#include "cli/reach.h"

namespace xsched::cli {
namespace {

constexpr const char* kLevels[] = {"no preemption level", "preemption level 1", "preemption levels 1 and 2",
                                   "preemption levels 1, 2 and 3"};

std::string ExamineDevice(Report& report, const char* about, const ProbedDevice& device) {
  const std::string name = fmt::format("{} {}", device.address, device.name);
  if (!device.error.empty()) return Problem(report, about, fmt::format("{}: {}", name, device.error));
  if (!device.scheduled)
    return Problem(report, about, fmt::format("{}: its streams are not scheduled", name));
  const std::string why =
      device.why_no_more.empty() ? "" : fmt::format("; not {}: {}", device.level + 1, device.why_no_more);
  if (!device.stops) {
    return Problem(report, about, fmt::format("{}: a suspended stream was not held{}", name, why));
  }
  const std::string text = fmt::format("{}: {}{}", name, kLevels[device.level], why);
  why.empty() ? report.Ok(about, text) : report.Note(about, text);
  return "";
}

}  // namespace

std::string Problem(Report& report, const char* about, const std::string& text) {
  report.Problem(about, text);
  return text;
}

std::string ShimProblem(Report& report, const char* about, const std::string& runtime, const char* name) {
  const std::optional<std::string> shim = FindLibrary(name);
  if (!shim) {
    return Problem(report, about,
                   fmt::format("{} is here, but {} is not installed with this program: {} programs run "
                               "unscheduled",
                               runtime, name, about));
  }
  if (!CanBePreloaded(*shim)) {
    return Problem(
        report, about,
        fmt::format("{} cannot be preloaded: LD_PRELOAD separates by spaces and colons; install it elsewhere",
                    *shim));
  }
  if (std::string problem = LoadProblem(*shim); !problem.empty())
    return Problem(report, about, fmt::format("the shim does not load: {}", problem));
  report.Ok(about, fmt::format("shim {} loads; route: LD_PRELOAD", *shim));
  return "";
}

std::string ExamineDevices(Report& report, const char* about, const DeviceProbe& probe,
                           const std::string& version, const std::string& why_no_device) {
  if (!probe.version.empty()) report.Ok(about, fmt::format("{} {}", version, probe.version));
  if (!probe.error.empty()) return Problem(report, about, probe.error + why_no_device);
  if (probe.devices.empty()) return Problem(report, about, "no GPU" + why_no_device);
  std::string first;
  bool any = false;
  for (const ProbedDevice& device : probe.devices) {
    std::string problem = ExamineDevice(report, about, device);
    any |= problem.empty();
    if (first.empty()) first = problem;
  }
  return any ? "" : first;
}

}  // namespace xsched::cli
