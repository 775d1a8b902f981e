// What CUDA offers here, and what XSched's shim makes of it, found out in a child process that runs under the
// shim: it puts work on a stream of each GPU, suspends it and lets it go on.
#pragma once

#include <string>
#include <vector>

namespace xsched::cli {

struct CudaDevice {
  std::string address;  // on the PCI bus; so a device is named in every process
  std::string name;
  std::string error;        // of the driver, which ended the test
  bool scheduled = false;   // a stream has got an XQueue
  bool stops = false;       // levels 1 and 2: a gate has held the stream, and let it go on
  bool interrupts = false;  // level 3
  std::string why_not;      // no level 3
  bool writes_64_bits = false;
};

struct CudaProbe {
  std::string version;  // of CUDA, as the driver has it: "13.0"
  std::string error;    // why there is no answer, or no device
  std::vector<CudaDevice> devices;
};

CudaProbe ProbeCuda(const std::string& shim);

// The child's part: the answer, as a line of JSON.
std::string AnswerCudaProbe();

}  // namespace xsched::cli
