#include "preempt/api/job.h"

#include "preempt/api/process.h"

namespace xsched::preempt {

void JoinJob(uint64_t number) { ThisProcess().agent.JoinJob(number); }

}  // namespace xsched::preempt
