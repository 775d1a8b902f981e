// xsched doctor: checks whether a program would be scheduled on this machine, and why.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "cli/commands.h"
#include "cli/doctor/device_probe.h"
#include "cli/doctor/examine_program.h"
#include "cli/doctor/report.h"
#include "cli/exit_codes.h"
#include "cli/library_path.h"
#include "cli/locations.h"
#include "cli/platform.h"
#include "cli/policy_text.h"
#include "cli/server_session.h"
#include "cli/variables.h"
#include "sched/core/policy.h"
#include "server/options.h"

namespace xsched::cli {
namespace {

struct DoctorOptions {
  bool as_json = false;
  std::string probe;  // for ProbeDevices
  std::vector<std::string> program;
};

// Of the files that servers read when they start: a running one may have started before the mistake.
void ExamineConfigs(Report& report) {
  for (const bool system : {true, false}) {
    const std::string problem = server::ProblemOfConfig(server::ConfigPath(system));
    if (!problem.empty())
      report.Problem("configuration", fmt::format("no server starts with this file: {}", problem));
  }
}

void ExamineServer(Report& report) {
  try {
    ServerSession server;
    ipc::Status status = server.Status();
    report.Ok("server", fmt::format("{} at {}, policy {}, queues: {}; you may {}set the policy",
                                    status.version, server.path(), PolicyText(status), status.queues,
                                    status.is_admin != 0 ? "" : "not "));
  } catch (const CommandError& error) {
    if (!FindProgram("xserver") && !FindInPath("xserver")) {
      report.Obstacle("server", fmt::format("{}; and xserver is not installed", error.what()));
    } else if (!server::ProblemOfConfig(server::ConfigPath(/*system=*/false)).empty()) {
      report.Obstacle("server", "none is running, and xsched run cannot start one with its configuration");
    } else if (error.code == kExitNoServer) {
      report.Ok("server", "none is running; xsched run starts one");
    } else {
      report.Obstacle("server", error.what());
    }
  }
}

std::vector<ExaminedPlatform> ExaminePlatforms(Report& report) {
  std::vector<ExaminedPlatform> platforms;
  std::string problems;
  bool any = false;
  for (const Platform* platform : PlatformsWithShim()) {
    const std::string problem = platform->examine(report);
    platforms.push_back({platform->name, problem});
    any |= problem.empty();
    problems += fmt::format("{}{}: {}", problems.empty() ? "" : "; ", platform->name, problem);
  }
  if (!any) report.Obstacle("platforms", problems);
  return platforms;
}

void ExamineEnvironment(Report& report) {
  for (const std::string& problem : EnvironmentProblems(environ)) report.Problem("environment", problem);
  const LibraryPath path = ReadLibraryPath();
  for (const std::string& folder : path.others) report.Problem("environment", ProblemOfOther(folder));
  if (path.has_ours) {
    report.Note(
        "environment",
        "LD_LIBRARY_PATH has XSched's libraries. This alone schedules nothing, unlike with XSched 1.2: "
        "start programs by xsched run -- program");
  }
}

void Examine(const DoctorOptions& options) {
  if (!options.probe.empty()) {
    fmt::print("{}", AnswerProbe(options.probe));
    return;
  }
  Report report;
  const std::vector<ExaminedPlatform> platforms = ExaminePlatforms(report);
  ExamineConfigs(report);
  ExamineServer(report);
  ExamineEnvironment(report);
  if (!options.program.empty()) ExamineProgram(report, options.program.front(), platforms);
  fmt::print("{}", options.as_json ? report.Json() : report.Text());
  if (!report.scheduled()) throw CommandError(kExitFailed, report.obstacle());
}

}  // namespace

void AddDoctor(CLI::App& app) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* doctor = app.add_subcommand("doctor", "check whether a program would be scheduled here, and why");
  doctor->add_flag("--json", options->as_json, "as JSON");
  doctor->add_option("--probe", options->probe)->group("");
  doctor->add_option("program", options->program, "the program and its arguments");
  doctor->positionals_at_end();
  doctor->footer("Exit status: 0 a program would be scheduled; 1 it would not.");
  doctor->callback([options] { Examine(*options); });
}

}  // namespace xsched::cli
