// Tests what a platform's driver offers on this machine, and what XSched can do with it. A child process
// under the shim puts work on a stream of each device, suspends the stream and resumes it.
#pragma once

#include <string>
#include <vector>

namespace xsched::cli {

struct ProbedDevice {
  std::string address;  // on the PCI bus: the same in every process
  std::string name;
  std::string error;       // the driver's error that ended the test
  bool scheduled = false;  // its stream has an XQueue
  bool stops = false;      // the stream did no work while suspended, and did it after that
  int level = 0;           // the highest preemption level that works
  std::string why_no_more;
};

struct DeviceProbe {
  std::string version;  // of the platform, as the driver reports it: "13.0"
  std::string error;    // why there is no answer, or no device
  std::vector<ProbedDevice> devices;
};

// `platform`: its id. It must have a probe.
DeviceProbe ProbeDevices(const std::string& platform);

// The child's part: the answer, as a line of JSON.
std::string AnswerProbe(const std::string& platform);

}  // namespace xsched::cli
