#include "cli/top/devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/queue_text.h"

namespace xsched::cli {

void Devices::Take(const std::vector<QueueRates>& queues) {
  for (auto& [number, device] : devices_) device.share = 0;
  for (const auto& [queue, commands_per_s, device_share, waiting_share] : queues) {
    Device& device =
        devices_.try_emplace(queue.device, Device{queue.device_name, {}, 0, History(looks_)}).first->second;
    device.platforms.insert(PlatformText(queue.platform));
    device.share += device_share;
  }
  for (auto& [number, device] : devices_) device.history.Add(device.share);
}

std::vector<std::string> Devices::Lines(const TopStyle& style) const {
  std::map<std::string, int> with_name;
  for (const auto& [number, device] : devices_) ++with_name[device.name];
  std::vector<std::string> lines;
  for (const auto& [number, device] : devices_) {
    // It comes first, because a narrow terminal has room for the beginning only.
    const std::string which = with_name[device.name] > 1 ? DeviceNumberText(number) + " " : "";
    const std::string name = fmt::format("{}{} ({})", which, device.name, fmt::join(device.platforms, ", "));
    lines.push_back(DeviceLine(name, device.share, device.history, style));
  }
  return lines;
}

}  // namespace xsched::cli
