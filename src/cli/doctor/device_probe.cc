#include "cli/doctor/device_probe.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/doctor/child_process.h"
#include "cli/doctor/probe_child.h"
#include "cli/json_text.h"
#include "cli/platform.h"
#include "cli/shims.h"

namespace xsched::cli {

using nlohmann::json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProbedDevice, address, name, error, scheduled, stops, level, why_no_more)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DeviceProbe, version, error, devices)

DeviceProbe ProbeDevices(const std::string& platform) {
  std::error_code none;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", none).string();
  LaunchOptions options;
  options.scheduler = "APP";
  const json answer = json::parse(OutputOf({self, "doctor", "--probe", platform},
                                           LaunchEnvironment(options, FindShims().found, CurrentVariable)),
                                  nullptr, /*allow_exceptions=*/false);
  if (answer.is_discarded()) {
    DeviceProbe none_came;
    none_came.error = "the driver crashed or hung while a stream of each device was tried";
    return none_came;
  }
  return answer.get<DeviceProbe>();
}

std::string AnswerProbe(const std::string& platform) {
  DeviceProbe probe;
  try {
    const Platform* known = FindPlatformById(platform);
    if (known == nullptr || known->probe == nullptr) throw ProbeError{"there is no probe of " + platform};
    known->probe(probe);
  } catch (const ProbeError& error) {
    probe.error = error.text;
  }
  return JsonText(json(probe), -1) + "\n";
}

}  // namespace xsched::cli
