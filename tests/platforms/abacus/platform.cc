// The abacus: not a platform of XSched. A test adds it to the others by nothing but this folder.
#include "cli/platform.h"

#include "cli/doctor/device_probe.h"
#include "cli/doctor/examine_device.h"
#include "cli/doctor/report.h"

namespace xsched::cli::abacus {
namespace {

constexpr const char* kName = "Abacus";

std::string Examine(Report& report) {
  return ExamineDevices(report, kName, ProbeDevices("abacus"), "beads", "");
}

void Probe(DeviceProbe& probe) {
  probe.version = "3.1";
  probe.devices.push_back(
      {.address = "0000:01:00.0", .name = "Roman", .scheduled = true, .stops = true, .level = 1});
}

}  // namespace

const Platform& Get() {
  static const Platform platform = {
      .id = "abacus",
      .name = kName,
      .number = static_cast<XPlatform>(77),
      .shim = "libshimabacus.so",
      .layers = "ABACUS_LAYERS",
      .is_here = [] { return true; },
      .libraries = {{"libabacus.so", "the abacus' frame", "its layers reach it"}},
      .variables = {{.name = "XSCHED_ABACUS_BEADS",
                     .meaning = "1 to 10: beads on a wire",
                     .kind = EnvironmentVariable::Kind::kNumber,
                     .min = 1,
                     .max = 10,
                     .manual = "How many beads are on a wire."}},
      .examine = Examine,
      .probe = Probe,
  };
  return platform;
}

}  // namespace xsched::cli::abacus
