#include "preempt/api/job.h"

#include "preempt/api/process.h"

namespace xsched::preempt {

void JoinJob(std::span<const char> id) { ThisProcess().agent.JoinJob(id); }

}  // namespace xsched::preempt
