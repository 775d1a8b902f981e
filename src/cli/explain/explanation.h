// What became of a process, in sentences.
#pragma once

#include <string>

#include "cli/explain/process_waits.h"

namespace xsched::cli {

// False: others waited for it, but nothing is known of what it did itself.
bool HasRecords(const ProcessWaits::Process& process);

// REQUIRES: `process` is one of waits.processes().
std::string Explanation(const ProcessWaits& waits, const ProcessWaits::Process& process);

// The same without its first line, which names the process: of `process`, which may be the sum of several.
std::string Findings(const ProcessWaits& waits, const ProcessWaits::Process& process);

// "held for serve (pid 812), priority 10".
std::string BecauseText(const ProcessWaits& waits, const ProcessWaits::Process& process,
                        const ProcessWaits::Because& because);
// "train (pid 913)".
std::string NameOf(const ProcessWaits::Process& process);

// "8.2 ms".
std::string TimeText(Duration time);
// "1 queue", "2 queues".
std::string CountText(uint64_t count, const char* noun);

}  // namespace xsched::cli
