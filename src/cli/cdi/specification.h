// A specification of the Container Device Interface (CDI): what an engine adds to a container that asks for a
// device of ours. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/launch_environment.h"

namespace xsched::cli {

// Where containers find what they are given.
inline constexpr char kContainerLibraries[] = "/opt/xsched/lib";
inline constexpr char kContainerSocketFolder[] = "/run/xsched";

struct CdiDevice {
  std::string name;
  LaunchOptions launch;  // its hints
  std::vector<std::string> files =
      {};  // device files of the machine that the container gets, with the same names
};

struct CdiSpecification {
  std::string kind;  // "xsched.org/class"
  std::vector<CdiDevice> devices;
  std::string route;                   // LaunchOptions::route
  std::vector<Shim> shims;             // with their paths on this machine
  std::vector<std::string> libraries;  // the paths of the shims and of all that they need of ours
  std::string socket;  // on this machine. Its folder is mounted: a restarted server makes a new socket
};

nlohmann::ordered_json CdiJson(const CdiSpecification& specification);

// Why `name` can name no device; "": it can.
std::string ProblemOfDeviceName(const std::string& name);

// A device without any is none: engines refuse it.
bool HasHints(const CdiDevice& device);

// urgent, normal (0) and batch.
std::vector<CdiDevice> DefaultClasses();
inline constexpr int kUrgentPriority = 10;
inline constexpr int kBatchPriority = -10;
// 1 to 100 percent of a device.
std::vector<CdiDevice> Shares();

}  // namespace xsched::cli
