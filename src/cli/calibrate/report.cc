#include "cli/calibrate/report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace xsched::cli {
namespace {

bool IsTime(const FittedParameter& parameter) { return parameter.name.ends_with("_ns"); }

std::string Number(const FittedParameter& parameter, double value) {
  return IsTime(parameter) ? fmt::format("{:.1f} µs", value / 1e3) : fmt::format("{:.0f}", value);
}

}  // namespace

std::string CalibrationJson(const CalibratedDevice& device) {
  using Json = nlohmann::ordered_json;
  Json parameters = Json::object();
  Json measured = Json::object();
  Json left_out = Json::object();
  for (const FittedParameter& parameter : device.calibration.parameters) {
    if (!parameter.value) {
      left_out[parameter.name] = parameter.how;
      continue;
    }
    parameters[parameter.name] = std::llround(*parameter.value);
    measured[parameter.name] = {{"spread", std::llround(parameter.spread)}, {"how", parameter.how}};
  }
  const Json file = {{"xsched_device", 1},
                     {"name", device.name},
                     {"platform", device.platform},
                     {"level", device.calibration.level},
                     {"parameters", std::move(parameters)},
                     {"measured", std::move(measured)},
                     {"left_out", std::move(left_out)}};
  return file.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string CalibrationText(const CalibratedDevice& device) {
  std::string text = fmt::format("level {}\n{:<26} {:>12} {:>12}  {}\n", device.calibration.level,
                                 "parameter", "value", "spread", "how");
  for (const FittedParameter& parameter : device.calibration.parameters) {
    const std::string value = parameter.value ? Number(parameter, *parameter.value) : "left out";
    const std::string spread = parameter.value ? Number(parameter, parameter.spread) : "";
    text += fmt::format("{:<26} {:>12} {:>12}  {}\n", parameter.name, value, spread, parameter.how);
  }
  return text;
}

}  // namespace xsched::cli
