#include "preempt/queue/reentrancy_guard.h"

namespace xsched::preempt {

constinit thread_local int reentrancy_depth __attribute__((tls_model("initial-exec"))) = 0;

}  // namespace xsched::preempt
