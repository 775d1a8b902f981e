// xsched doctor: what would happen to a program here, and why.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>

#include "cli/child_process.h"
#include "cli/commands.h"
#include "cli/examine_program.h"
#include "cli/exit_codes.h"
#include "cli/locations.h"
#include "cli/opencl_probe.h"
#include "cli/report.h"
#include "cli/server_session.h"
#include "cli/variables.h"
#include "sched/core/policy.h"

namespace xsched::cli {
namespace {

namespace fs = std::filesystem;

struct DoctorOptions {
  bool as_json = false;
  std::vector<std::string> program;
};

constexpr const char* kShim = "libshimopencl.so";

// False: the shim is of no use here.
bool ExamineShim(Report& report) {
  std::optional<std::string> shim = FindLibrary(kShim);
  if (!shim) {
    report.Obstacle("OpenCL", fmt::format("{} is not installed with this program", kShim));
    return false;
  }
  if (std::string problem = LoadProblem(*shim); !problem.empty()) {
    report.Obstacle("OpenCL", fmt::format("the shim does not load: {}", problem));
    return false;
  }
  report.Ok("OpenCL", fmt::format("shim {} loads", *shim));
  return true;
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
  if (!drivers.empty()) report.Ok("OpenCL", fmt::format("drivers: {}", fmt::join(drivers, ", ")));
}

void ExamineOpenCl(Report& report) {
  bool shim_loads = ExamineShim(report);
  ExamineDrivers(report);
  OpenClProbe native = ProbeOpenCl("");
  if (!native.error.empty()) {
    report.Obstacle("OpenCL", native.error);
    return;
  }
  if (!native.loader) {
    report.Obstacle("OpenCL", "libOpenCL.so.1 cannot be loaded (Debian: ocl-icd-libopencl1)");
    return;
  }
  for (const OpenClDevice& device : native.devices) {
    report.Ok("OpenCL", fmt::format("{}: {}: preemption level 1 (OpenCL has no means for 2 and 3)",
                                    device.platform, device.device));
  }
  if (native.devices.empty()) {
    report.Obstacle("OpenCL", "no device (for the CPU, Debian: pocl-opencl-icd; else the vendor's driver)");
    return;
  }
  if (!shim_loads) return;
  OpenClProbe layered = ProbeOpenCl(*FindLibrary(kShim));
  if (layered.layer_works) {
    report.Ok("OpenCL", "route: layer (OPENCL_LAYERS); a queue made through it is scheduled");
  } else if (!layered.error.empty()) {
    report.Obstacle("OpenCL", fmt::format("under the shim, {}", layered.error));
  } else {
    report.Obstacle("OpenCL",
                    "the loader takes no layers (Debian's does, since ocl-icd 2.3): try xsched run --route "
                    "preload");
  }
}

// A runtime without a shim of ours: its programs run as they would anyhow.
void ExamineRuntime(Report& report, const char* platform, const char* library, const char* shim) {
  if (!LoadProblem(library).empty()) {
    report.Note(platform, fmt::format("not here ({} cannot be loaded)", library));
  } else if (FindLibrary(shim)) {
    report.Ok(platform, fmt::format("{}, shim {}", library, shim));
  } else {
    report.Problem(
        platform, fmt::format("{} is here, but not yet supported by this build: its programs run unscheduled",
                              library));
  }
}

void ExamineServer(Report& report) {
  try {
    ServerSession server;
    ipc::Status status = server.Status();
    report.Ok("server",
              fmt::format("{} at {}, policy {}, queues: {}; you may {}set the policy", status.version,
                          server.path(), sched::PolicyName(static_cast<XPolicyType>(status.policy)),
                          status.queues, status.is_admin != 0 ? "" : "not "));
  } catch (const CommandError& error) {
    if (!FindProgram("xserver") && !FindInPath("xserver")) {
      report.Obstacle("server", fmt::format("{}; and xserver is not installed", error.what()));
    } else if (error.code == kExitNoServer) {
      report.Ok("server", "none is running; xsched run starts one");
    } else {
      report.Obstacle("server", error.what());
    }
  }
}

void ExamineEnvironment(Report& report) {
  for (const std::string& problem : EnvironmentProblems(environ)) report.Problem("environment", problem);
}

void Examine(const DoctorOptions& options) {
  Report report;
  ExamineOpenCl(report);
  ExamineRuntime(report, "CUDA", "libcuda.so.1", "libshimcuda.so");
  ExamineRuntime(report, "HIP", "libamdhip64.so", "libshimhip.so");
  ExamineServer(report);
  ExamineEnvironment(report);
  if (!options.program.empty()) ExamineProgram(report, options.program.front());
  fmt::print("{}", options.as_json ? report.Json() : report.Text());
  if (!report.scheduled()) throw CommandError(kExitFailed, report.obstacle());
}

}  // namespace

void AddDoctor(CLI::App& app) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* doctor = app.add_subcommand("doctor", "say what would happen to a program here, and why");
  doctor->add_flag("--json", options->as_json, "as JSON");
  doctor->add_option("program", options->program, "the program, and what it is given");
  doctor->positionals_at_end();
  doctor->footer("Exit status: 0 a program would be scheduled; 1 it would not.");
  doctor->callback([options] { Examine(*options); });
}

}  // namespace xsched::cli
