// Can XSched reach this program, and how?
#pragma once

#include <span>
#include <string>

#include "cli/doctor/examine_platforms.h"
#include "cli/doctor/report.h"

namespace xsched::cli {

// `name` as a shell would look it up. `platforms`: what was found of them.
void ExamineProgram(Report& report, const std::string& name, std::span<const Platform> platforms);

}  // namespace xsched::cli
