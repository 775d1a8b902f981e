// Runs a program, and says at its end what became of it.
#pragma once

#include <string>
#include <vector>

namespace xsched::cli {

struct ReportRequest {
  std::string file;  // the file that gets it as JSON; "": text on stderr
  std::string job;   // XSCHED_JOB of the program
  bool job_is_older = false;
};

// This process stays, and then ends as the program does. Throws CommandError if the program cannot be run.
[[noreturn]] void RunReported(const std::vector<std::string>& program, const ReportRequest& request);

}  // namespace xsched::cli
