// Runs xsched itself, for tests, and returns its output and its exit status.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace xsched::cli::testing {

struct Outcome {
  int status = 0;  // the exit status, or minus the signal that ended it
  std::string out;
  std::string errors;
};

using Environment = std::map<std::string, std::string>;

// With none of the variables that XSched reads but those in `environment`. `user`: whose rights it has
// (0: ours). Ended after a minute.
Outcome RunXsched(const std::vector<std::string>& arguments, const Environment& environment, uid_t user = 0);
// Likewise a shell's command, in which "$0" is xsched.
Outcome RunShell(const std::string& command, const Environment& environment);

}  // namespace xsched::cli::testing
