// Tests OpenCL on this machine in a child process, so that a driver that crashes or hangs affects only that.
#pragma once

#include <string>
#include <vector>

namespace xsched::cli::opencl {

struct Device {
  std::string platform;
  std::string device;
};

struct ProbeResult {
  bool loader = false;  // libOpenCL.so.1 can be loaded
  std::string error;    // why the probe has no answer
  std::vector<Device> devices;
  bool layer_works = false;  // a queue made under the layer has an XQueue
};

// `shim`: path of libshimopencl.so; empty: probe without it.
ProbeResult Probe(const std::string& shim);

}  // namespace xsched::cli::opencl
