// Would programs of a platform be scheduled here, with which preemption levels, and why?
#pragma once

#include <string>

#include "cli/doctor/report.h"

namespace xsched::cli {

struct Platform {
  std::string name;
  std::string problem;  // why its programs would not be scheduled; empty: they would
};

// Each reports what it finds, and returns the problem.
std::string ExamineOpenCl(Report& report);
std::string ExamineCuda(Report& report);
std::string ExamineHip(Report& report);

}  // namespace xsched::cli
