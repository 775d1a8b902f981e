// What both ways of offering this node's GPUs have in common: shares by the device plugin (serve_devices.h),
// and claims by DRA (serve_claims.h).
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/cdi/specification.h"
#include "kubernetes/end_signals.h"
#include "kubernetes/gpus.h"

namespace xsched::kubernetes {

struct NodeOptions {
  std::string cdi_folder = "/var/run/cdi";
  std::vector<std::string> named;  // ReadNamedDevice
  std::string route = "layer";
  std::string root;          // of /proc and /sys
  std::string dev = "/dev";  // the machine's, as it is seen from here
  std::chrono::milliseconds look_period = std::chrono::seconds(5);
};

// The GPUs that the kernel lists, and those that are named. Throws CommandError.
GpuList GpusOf(const NodeOptions& options);
// A specification without devices, with the libraries for the GPUs that there are now. Throws CommandError.
cli::CdiSpecification SpecificationFor(const std::string& kind, const NodeOptions& options);
void SayWhatThereIs(const std::vector<Gpu>& gpus);
// Until then, or `fd` (-1: none) is readable, or a signal has come.
void WaitUntil(TimePoint time, int fd, const EndSignals& signals);

}  // namespace xsched::kubernetes
