#include "kubernetes/serve_devices.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <optional>

#include "cli/cdi/installed.h"
#include "cli/platform.h"
#include "kubernetes/end_signals.h"
#include "kubernetes/gpus.h"
#include "kubernetes/say.h"

namespace xsched::kubernetes {
namespace {

// The agent has no drivers, whatever programs of other containers have: so what the kernel lists counts. A
// loader that takes layers may find devices that the kernel does not list.
bool MayHavePrograms(const cli::Platform& platform, const std::string& root) {
  return platform.layers != nullptr || cli::IsHere(platform) ||
         (platform.list_devices != nullptr && !platform.list_devices(root).empty());
}

// With the libraries for the GPUs that there are now.
cli::CdiSpecification WriteShares(const DeviceOptions& options) {
  const auto is_wanted = [&](const cli::Platform& platform) {
    return MayHavePrograms(platform, options.root);
  };
  cli::CdiSpecification shares = cli::InstalledSpecification("share", options.route, is_wanted);
  shares.devices = cli::Shares();
  if (options.with_cdi) cli::WriteSpecification(shares, options.cdi_folder + "/xsched-share.json");
  return shares;
}

void SayWhatThereIs(const std::vector<Gpu>& gpus) {
  if (gpus.empty()) Say("no GPU on this node (/proc/driver, /sys/class and --device name none)");
  for (const Gpu& gpu : gpus)
    Say(fmt::format("GPU {} {}", gpu.device.id, gpu.works ? "works" : "does not work"));
}

std::vector<cli::KernelDevice> NamedDevices(const std::vector<std::string>& texts) {
  std::vector<cli::KernelDevice> devices;
  std::ranges::transform(texts, std::back_inserter(devices), ReadNamedDevice);
  return devices;
}

void WaitUntil(TimePoint time, int fd, const EndSignals& signals) {
  pollfd ready[] = {{fd, POLLIN, 0}, {signals.fd(), POLLIN, 0}};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - MonotonicClock::now());
  poll(ready, std::size(ready), static_cast<int>(std::max<int64_t>(left.count(), 0)));
}

}  // namespace

void ServeDevices(const DeviceOptions& options) {
  const EndSignals signals;
  GpuList gpus(NamedDevices(options.named), options.root);
  NodeState node;
  DevicePlugin plugin(node, options.with_cdi);
  std::optional<Kubelet> kubelet;
  TimePoint next_look{};
  while (!signals.HaveCome()) {
    if (MonotonicClock::now() >= next_look) {
      if (gpus.Update() || !kubelet) {
        SayWhatThereIs(gpus.all());
        node.Set({gpus.all(), WriteShares(options)});
      }
      next_look = MonotonicClock::now() + options.look_period;
    }
    if (!kubelet) kubelet.emplace(options.kubelet_folder, plugin, 2 * options.look_period);
    const TimePoint next = kubelet->Attend(MonotonicClock::now());
    WaitUntil(std::min(next, next_look), kubelet->fd(), signals);
  }
}

}  // namespace xsched::kubernetes
