// What the doctor does for OpenCL (cli/platform.h).
#pragma once

#include <string>

#include "cli/doctor/elf_file.h"
#include "cli/doctor/report.h"

namespace xsched::cli::opencl {

inline constexpr const char* kName = "OpenCL";
inline constexpr const char* kShim = "libshimopencl.so";
inline constexpr const char* kLayers = "OPENCL_LAYERS";
inline constexpr const char* kLoader = "libOpenCL.so.1";

std::string Examine(Report& report);
// A program's own OpenCL loader takes precedence over the system's. It may not support layers.
void ExamineProgram(Report& report, const ElfFile& elf, const std::string& path);

}  // namespace xsched::cli::opencl
