#include "cli/top/devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/queue_text.h"
#include "ipc/usage.h"

namespace xsched::cli {

void Devices::Take(const std::vector<QueueRates>& queues, const std::vector<AccountRates>& accounts) {
  for (auto& [number, device] : devices_) device.share = 0;
  for (const QueueRates& entry : queues)
    At(entry.queue.device, entry.queue.device_name).platforms.insert(PlatformText(entry.queue.platform));
  for (const auto& [account, share] : accounts) {
    // Those of users also have what processes had that are gone.
    const bool is_of_user = account.client_id == 0;
    if (is_of_user && !ipc::IsOfFurtherDevices(account) && share > 0)
      At(account.device, account.device_name).share += share;
  }
  for (auto& [number, device] : devices_) device.history.Add(device.share);
}

Devices::Device& Devices::At(uint64_t number, const char* name) {
  return devices_.try_emplace(number, Device{name, {}, 0, History(looks_)}).first->second;
}

std::vector<std::string> Devices::Lines(const TopStyle& style) const {
  std::map<std::string, int> with_name;
  for (const auto& [number, device] : devices_) ++with_name[device.name];
  std::vector<std::string> lines;
  for (const auto& [number, device] : devices_) {
    // It comes first, because a narrow terminal has room for the beginning only.
    const std::string which = with_name[device.name] > 1 ? DeviceNumberText(number) + " " : "";
    const std::string on =
        device.platforms.empty() ? "" : fmt::format(" ({})", fmt::join(device.platforms, ", "));
    const std::string name = which + device.name + on;
    lines.push_back(DeviceLine(name, device.share, device.history, style));
  }
  return lines;
}

}  // namespace xsched::cli
