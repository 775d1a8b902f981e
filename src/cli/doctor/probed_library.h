// A driver or a runtime, for the child's part of a probe. Its functions are called by their names, return 0
// for success, and number the devices from 0.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/doctor/device_probe.h"
#include "cli/doctor/probe_child.h"

namespace xsched::cli {

class ProbedLibrary {
 public:
  // What the library calls an error.
  using ErrorName = std::string (*)(void* library, int error);

  ProbedLibrary(const std::string& path, ErrorName error_name)
      : library_(dlopen(path.c_str(), RTLD_NOW)), error_name_(error_name) {
    if (library_ == nullptr) throw ProbeError{dlerror()};
  }

  // The function's result.
  template <typename... Arguments>
  int Try(const char* name, Arguments... arguments) const {
    return LookUp<int(Arguments...)>(library_, name)(arguments...);
  }
  // For calls in great numbers, whose results Check takes.
  template <typename Function>
  Function* Find(const char* name) const {
    return LookUp<Function>(library_, name);
  }
  // Throws ProbeError if the function failed.
  void Check(const char* name, int error) const {
    if (error != 0) throw ProbeError{fmt::format("{}: {}", name, error_name_(library_, error))};
  }
  template <typename... Arguments>
  void Call(const char* name, Arguments... arguments) const {
    Check(name, Try(name, arguments...));
  }
  // What a function (char* text, int size, int device) writes.
  std::string Text(const char* name, int device) const {
    char text[256] = "";
    Call(name, static_cast<char*>(text), int{sizeof text}, device);
    return text;
  }

 private:
  void* library_;
  ErrorName error_name_;
};

// Calls probe(number, device) for `count` devices. An error ends the test of that device alone.
template <typename Probe>
std::vector<ProbedDevice> ProbeEach(int count, Probe&& probe) {
  std::vector<ProbedDevice> devices;
  for (int number = 0; number < count; ++number) {
    ProbedDevice device;
    try {
      probe(number, device);
    } catch (const ProbeError& error) {
      device.error = error.text;
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace xsched::cli
