// What a platform's driver offers here, and what XSched's shim makes of it, found out in a child process that
// runs under the shim: it puts work on a stream of each device, suspends it and lets it go on.
#pragma once

#include <string>
#include <vector>

namespace xsched::cli {

struct ProbedDevice {
  std::string address;  // on the PCI bus; so a device is named in every process
  std::string name;
  std::string error;       // of the driver, which ended the test
  bool scheduled = false;  // a stream has got an XQueue
  bool stops = false;      // suspended, it has not done what was put on it, and resumed it has
  int level = 0;           // the highest preemption level that it took
  std::string why_no_more;
};

struct DeviceProbe {
  std::string version;  // of the platform, as the driver has it: "13.0"
  std::string error;    // why there is no answer, or no device
  std::vector<ProbedDevice> devices;
};

// `platform`: "cuda" or "hip".
DeviceProbe ProbeDevices(const std::string& platform);

// The child's part: the answer, as a line of JSON.
std::string AnswerProbe(const std::string& platform);

// The parts of it that differ. They throw ProbeError (probe_child.h).
void ProbeCuda(DeviceProbe& probe);
void ProbeHip(DeviceProbe& probe);

}  // namespace xsched::cli
