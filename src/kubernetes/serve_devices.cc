#include "kubernetes/serve_devices.h"

#include <algorithm>

#include "cli/cdi/installed.h"
#include "cli/new_file.h"
#include "kubernetes/end_signals.h"

namespace xsched::kubernetes {
namespace {

cli::CdiSpecification WriteShares(const DeviceOptions& options) {
  cli::CdiSpecification shares = SpecificationFor("share", options);
  shares.devices = cli::Shares();
  if (!options.with_cdi) return shares;
  const std::string path = options.cdi_folder + "/xsched-share.json";
  cli::RemoveUnfinished(path);
  cli::WriteSpecification(shares, path);
  return shares;
}

}  // namespace

void ServeDevices(const DeviceOptions& options) {
  const EndSignals signals;
  GpuList gpus = GpusOf(options);
  NodeState node;
  DevicePlugin plugin(node, options.with_cdi);
  // First: without the kubelet's folder, nothing is written.
  Kubelet kubelet(options.kubelet_folder, plugin, 2 * options.look_period);
  TimePoint next_look{};
  for (bool is_first = true; !signals.HaveCome(); is_first = false) {
    if (MonotonicClock::now() >= next_look) {
      if (gpus.Update() || is_first) {
        SayWhatThereIs(gpus.all());
        node.Set({gpus.all(), WriteShares(options)});
      }
      next_look = MonotonicClock::now() + options.look_period;
    }
    const TimePoint next = kubelet.Attend(MonotonicClock::now());
    WaitUntil(std::min(next, next_look), kubelet.fd(), signals);
  }
}

}  // namespace xsched::kubernetes
