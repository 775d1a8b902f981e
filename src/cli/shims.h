// Finds the shims for a program on this machine.
#pragma once

#include <string>
#include <vector>

#include "cli/launch_environment.h"

namespace xsched::cli {

struct FoundShims {
  std::vector<Shim> found;
  std::vector<std::string> missing;     // not installed, although their platform is
  std::vector<std::string> unloadable;  // paths that no list of libraries can name
};
// `route`: of shims that can be layers, as in LaunchOptions.
FoundShims FindShims(const std::string& route = "layer");
// Prints which platforms' programs run unscheduled.
void WarnOfOthers(const FoundShims& shims);

}  // namespace xsched::cli
