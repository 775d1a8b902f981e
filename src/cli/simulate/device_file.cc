#include "cli/simulate/device_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include "cli/locations.h"

namespace xsched::cli {
namespace {

using sched::sim::DeviceParameters;

struct TimeParameter {
  const char* name;
  Duration DeviceParameters::*member;
};
constexpr TimeParameter kTimes[] = {
    {"hold_latency_ns", &DeviceParameters::hold_latency},
    {"resume_latency_ns", &DeviceParameters::resume_latency},
    {"gate_ns", &DeviceParameters::gate},
    {"preempt_latency_ns", &DeviceParameters::preempt_latency},
    {"sliced_preempt_latency_ns", &DeviceParameters::sliced_preempt_latency},
    {"slice_ns", &DeviceParameters::slice},
    {"switch_ns", &DeviceParameters::switch_running},
    {"switch_idle_ns", &DeviceParameters::switch_idle},
    {"slice_change_ns", &DeviceParameters::slice_change},
    {"off_ns", &DeviceParameters::off},
    {"on_ns", &DeviceParameters::on},
    {"launch_ns", &DeviceParameters::launch},
    {"command_latency_ns", &DeviceParameters::command_latency},
};

nlohmann::json Parse(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw CommandError(kExitFailed, fmt::format("{}: cannot be read", path));
  nlohmann::json json = nlohmann::json::parse(file, nullptr, false);
  if (json.is_discarded()) throw CommandError(kExitFailed, fmt::format("{}: not JSON", path));
  return json;
}

void ReadAll(const JsonLine& device, DeviceParameters& parameters) {
  parameters.name = device.Text("name", parameters.name);
  parameters.platform = device.Text("platform", parameters.platform);
  parameters.level = static_cast<int>(device.Number("level", 1, 3, parameters.level));
  if (device.Has("parameters")) ReadParameters(device.Part("parameters"), parameters);
}

}  // namespace

void ReadParameters(const JsonLine& object, DeviceParameters& parameters) {
  std::vector<std::string_view> known = {"in_flight"};
  for (const TimeParameter& time : kTimes) known.push_back(time.name);
  object.AllowOnly(known);
  for (const TimeParameter& time : kTimes)
    parameters.*time.member = object.Time(time.name, parameters.*time.member);
  parameters.in_flight = static_cast<int>(object.Number("in_flight", 1, 1'000'000, parameters.in_flight));
}

DeviceParameters KnownDevice(const std::string& platform) {
  DeviceParameters parameters;
  parameters.platform = platform;
  const std::optional<std::string> folder = FindShared("devices");
  if (!folder) return parameters;
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(*folder))
    files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    const nlohmann::json json = Parse(file);
    const JsonLine device(json, file);
    if (device.Text("platform", "") != platform) continue;
    ReadAll(device, parameters);
    break;
  }
  return parameters;
}

DeviceParameters ReadDevice(const std::string& path) {
  const nlohmann::json json = Parse(path);
  const JsonLine device(json, path);
  device.Number("xsched_device", 1, 1);
  DeviceParameters parameters = KnownDevice(device.Text("platform", ""));
  ReadAll(device, parameters);
  return parameters;
}

}  // namespace xsched::cli
