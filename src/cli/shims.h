// Which of our shims a program is run under here.
#pragma once

#include <string>
#include <vector>

#include "cli/launch_environment.h"

namespace xsched::cli {

inline constexpr const char* kOpenClShim = "libshimopencl.so";
inline constexpr const char* kCudaShim = "libshimcuda.so";
inline constexpr const char* kHipShim = "libshimhip.so";

struct FoundShims {
  Shims found;
  std::vector<std::string> missing;     // not installed, though their platform is here
  std::vector<std::string> unloadable;  // paths that LD_PRELOAD or OPENCL_LAYERS cannot name
};
// `route`: OpenCL's, as in LaunchOptions.
FoundShims FindShims(const std::string& route = "layer");

// The path of the HIP runtime that programs get which bring none of their own; "": there is none. It is
// loaded.
std::string FindHipRuntime();

}  // namespace xsched::cli
