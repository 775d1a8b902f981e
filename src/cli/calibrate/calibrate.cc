// xsched calibrate: measures the parameters of a device for the simulator, and writes its file.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/calibrate/calibration.h"
#include "cli/calibrate/program_machine.h"
#include "cli/calibrate/report.h"
#include "cli/calibrate/work.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/launch_environment.h"
#include "cli/output_file.h"
#include "cli/platform.h"
#include "cli/validators.h"

namespace xsched::cli {
namespace {

struct CalibrateOptions {
  std::string platform;
  std::string output = "device.json";
  bool names_output = false;
  double seconds = 2;
  bool as_json = false;
  std::string work;
};

const Platform& ChoosePlatform(const std::string& name) {
  for (const Platform* platform : Platforms()) {
    if (platform->open_work_device == nullptr) continue;
    if (name.empty() ? platform->is_here() : name == platform->id) return *platform;
  }
  throw CommandError(kExitFailed, "there is no platform here that can be calibrated");
}

void Calibrate(const CalibrateOptions& options) {
  if (!options.work.empty()) {
    DoWork(options.work);
    return;
  }
  if (!CurrentVariable("XSCHED_AUTO_XQUEUE").empty())
    throw CommandError(kExitUsage,
                       "calibrate also measures programs without XSched: start it without xsched run");
  OutputFile file;
  file.Reserve(options.output, options.names_output, kEverybody);
  const Platform& platform = ChoosePlatform(options.platform);
  CalibratedDevice device{.name = {}, .platform = platform.name, .calibration = {}};
  {
    ProgramMachine machine(platform);
    device.name = machine.device_name();
    if (!options.as_json) fmt::print("{}, {}: measuring …\n", platform.name, device.name);
    std::fflush(stdout);
    const std::chrono::duration<double> length(options.seconds);
    device.calibration = Calibrate(machine, std::chrono::duration_cast<Duration>(length));
  }
  const std::string text = CalibrationJson(device);
  file.Begin();
  file << text;
  file.Close();
  fmt::print("{}", options.as_json ? text : CalibrationText(device));
  if (!options.as_json)
    fmt::print("\nwritten to {}: xsched simulate --device {} LOAD\n", options.output, options.output);
}

}  // namespace

void AddCalibrate(CLI::App& app) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* calibrate =
      app.add_subcommand("calibrate", "measure this machine's device for xsched simulate --device");
  calibrate
      ->add_option("--platform", options->platform, "the device's platform; by default the first one here")
      ->transform(CLI::IsMember(CalibratedPlatforms(), CLI::ignore_case));
  CLI::Option* output =
      calibrate->add_option("--output,-o", options->output, "the device's file (default device.json)")
          ->type_name("FILE");
  calibrate
      ->add_option("--seconds", options->seconds, "length of each of about twelve measurements (default 2)")
      ->check(Between(0.2, 60.0));
  calibrate->add_flag("--json", options->as_json, "print the file in place of a table");
  calibrate->add_option("--work", options->work)->group("");  // of the programs that are measured
  calibrate->callback([options, output] {
    options->names_output = output->count() != 0;
    Calibrate(*options);
  });
}

}  // namespace xsched::cli
