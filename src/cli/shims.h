// Finds the shims for a program on this machine.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/launch_environment.h"
#include "cli/platform.h"

namespace xsched::cli {

struct FoundShims {
  std::vector<Shim> found;
  std::vector<std::string> missing;     // not installed, although their platform is
  std::vector<std::string> unloadable;  // paths that no list of libraries can name
};
using PlatformFilter = std::function<bool(const Platform&)>;
// There is something here that the platform's programs could use.
bool IsHere(const Platform& platform);
// `route`: of shims that can be layers, as in LaunchOptions. `is_wanted`: says for which platforms.
FoundShims FindShims(const std::string& route = "layer", const PlatformFilter& is_wanted = IsHere);
// Prints which platforms' programs run unscheduled.
void WarnOfOthers(const FoundShims& shims);

}  // namespace xsched::cli
