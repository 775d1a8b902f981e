// Checks whether XSched can intercept a program's calls, and how.
#pragma once

#include <span>
#include <string>

#include "cli/doctor/report.h"

namespace xsched::cli {

inline constexpr const char* kAboutProgram = "program";

struct ExaminedPlatform {
  std::string name;
  std::string problem;  // why its programs would not be scheduled; empty: they would
};

// `name`: looked up as a shell does. `platforms`: the results of examining the platforms.
void ExamineProgram(Report& report, const std::string& name, std::span<const ExaminedPlatform> platforms);

}  // namespace xsched::cli
