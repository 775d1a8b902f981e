// What the tools know of a platform: its name, its libraries, its environment variables, and how it is found
// and examined here. Each platform describes itself in src/platforms/<id>/platform.cc; nothing else of the
// tools names one. Which folders there are is all that a build has to know (src/platforms/platforms.cmake).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/kernel_device.h"
#include "cli/variables.h"
#include "xsched/types.h"

namespace xsched::cli {

class Report;
struct DeviceProbe;
struct ElfFile;
struct Variable;
class WorkDevice;

// A library by which programs use the platform.
struct PlatformLibrary {
  const char* name;   // or its beginning: "libvendor.so"
  const char* about;  // "the vendor's driver"
  const char* how;    // "preloading reaches it"
};

// The manual's text of the variable that names a driver's library.
inline constexpr const char* kManualOfLibrary =
    "The driver's library, for programs that use XSched's API, if it is not the one that they have loaded.";

struct Platform {
  const char* id;    // the name of its folder, and what `doctor --probe` calls it
  const char* name;  // for people
  XPlatform number;
  // The library that makes its programs scheduled; null: none does, they use XSched's API.
  const char* shim = nullptr;
  // The variable in which its loader takes the shim as a layer; null: the shim is preloaded.
  const char* layers = nullptr;
  // Is there anything here that its programs could use? Libraries that it loads to know stay loaded.
  bool (*is_here)() = nullptr;
  std::vector<PlatformLibrary> libraries = {};
  std::vector<EnvironmentVariable> variables = {};

  // Lists its devices without a driver. `root`: the folder of /proc and /sys, "" but in tests. Null: the
  // kernel has no list of them.
  std::vector<KernelDevice> (*list_devices)(const std::string& root) = nullptr;
  // Reports what is found here, and returns why programs would not be scheduled; "": they would.
  std::string (*examine)(Report& report) = nullptr;
  // Tries a stream of each device, in a child process under the shim. Throws ProbeError (probe_child.h).
  void (*probe)(DeviceProbe& probe) = nullptr;
  // Reports what else about a program's file matters to this platform.
  void (*examine_program)(Report& report, const ElfFile& elf, const std::string& path) = nullptr;

  // Its first device, for `xsched calibrate` (calibrate/work_device.h); null: that cannot measure it. Throws
  // std::exception and ProbeError.
  std::unique_ptr<WorkDevice> (*open_work_device)() = nullptr;

  // For `xsched run --shared-context`: lets programs share one context on a device, for as long as this
  // process, or the program that it becomes, lives. What it needs is in `folder`, which may be missing.
  // Returns the variables that the program needs. Throws CommandError. Null: each program has a context of
  // its own.
  std::vector<Variable> (*share_context)(const std::string& folder) = nullptr;
};

// All of them, in the order of their ids.
const std::vector<const Platform*>& Platforms();

// Those with a shim. A loader that takes layers comes first: nothing has to be preloaded for it.
std::vector<const Platform*> PlatformsWithShim();

// The names of those whose loaders take layers, or of those whose shims are always preloaded.
std::vector<std::string> NamesOfPlatforms(bool with_layers);

// The ids of those whose devices `xsched calibrate` can measure.
std::vector<std::string> CalibratedPlatforms();

// Null: this build does not know it.
const Platform* FindPlatform(uint32_t number);
const Platform* FindPlatformById(const std::string& id);

}  // namespace xsched::cli
