// What OpenCL offers here, found out in a child process: a driver that crashes or hangs hurts only that.
#pragma once

#include <string>
#include <vector>

namespace xsched::cli {

struct OpenClDevice {
  std::string platform;
  std::string device;
};

struct OpenClProbe {
  bool loader = false;  // libOpenCL.so.1 can be loaded
  std::string error;    // why the probe has no answer
  std::vector<OpenClDevice> devices;
  bool layer_works = false;  // a queue made under the layer has an XQueue
};

// `shim`: path of libshimopencl.so; empty: probe without it.
OpenClProbe ProbeOpenCl(const std::string& shim);

}  // namespace xsched::cli
