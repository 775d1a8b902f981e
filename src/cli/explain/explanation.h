// What became of a process, in sentences.
#pragma once

#include <string>

#include "cli/explain/process_waits.h"

namespace xsched::cli {

// REQUIRES: `process` is one of waits.processes().
std::string Explanation(const ProcessWaits& waits, const ProcessWaits::Process& process);

}  // namespace xsched::cli
