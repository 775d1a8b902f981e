#include "kubernetes/node_options.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

#include "cli/cdi/installed.h"
#include "cli/platform.h"
#include "kubernetes/say.h"

namespace xsched::kubernetes {
namespace {

// The agent has no drivers, whatever programs of other containers have: so what the kernel lists counts. A
// loader that takes layers may find devices that the kernel does not list.
bool MayHavePrograms(const cli::Platform& platform, const std::string& root) {
  return platform.layers != nullptr || cli::IsHere(platform) ||
         (platform.list_devices != nullptr && !platform.list_devices(root).empty());
}

}  // namespace

GpuList GpusOf(const NodeOptions& options) {
  std::vector<cli::KernelDevice> named;
  std::ranges::transform(options.named, std::back_inserter(named), ReadNamedDevice);
  return {std::move(named), options.root, options.dev};
}

cli::CdiSpecification SpecificationFor(const std::string& kind, const NodeOptions& options) {
  const auto is_wanted = [&](const cli::Platform& platform) {
    return MayHavePrograms(platform, options.root);
  };
  return cli::InstalledSpecification(kind, options.route, is_wanted);
}

void SayWhatThereIs(const std::vector<Gpu>& gpus) {
  if (gpus.empty()) Say("no GPU on this node (/proc/driver, /sys/class and --device name none)");
  for (const Gpu& gpu : gpus)
    Say(fmt::format("GPU {} {}", gpu.device.id, gpu.works ? "works" : "does not work"));
}

void WaitUntil(TimePoint time, int fd, const EndSignals& signals) {
  pollfd ready[] = {{fd, POLLIN, 0}, {signals.fd(), POLLIN, 0}};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - MonotonicClock::now());
  poll(ready, std::size(ready), static_cast<int>(std::max<int64_t>(left.count(), 0)));
}

}  // namespace xsched::kubernetes
