// Can XSched reach this program, and how?
#pragma once

#include <string>

#include "cli/report.h"

namespace xsched::cli {

// `name` as a shell would look it up.
void ExamineProgram(Report& report, const std::string& name);

}  // namespace xsched::cli
