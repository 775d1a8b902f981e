// The table that list prints. Pure.
#pragma once

#include <string>
#include <vector>

#include "ipc/messages.h"

namespace xsched::cli {

// A heading, and a line for each queue. Two columns are only there if a queue needs them: COUNTS, what a
// priority counts that its tenant may not claim, and IN, the job, pod or container of its process.
std::vector<std::string> QueueTable(const std::vector<ipc::QueueInfo>& queues);

}  // namespace xsched::cli
