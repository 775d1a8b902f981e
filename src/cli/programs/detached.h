// A process that outlives this one and its terminal.
#pragma once

#include <functional>

namespace xsched::cli {

// Its descriptor of what was passed as `kept`.
inline constexpr int kKeptFd = 3;

// Runs `work` in such a process, which ends with it. Its input and output are /dev/null, and so are its
// errors, unless they go to `errors`. All other descriptors are closed but `kept` (-1: none). Otherwise a
// reader of our output would wait until it ends. False: it could not be started.
bool RunDetached(const std::function<void()>& work, int kept = -1, int errors = -1);

// Takes off what this process has of its starter and needs not: it keeps no folder busy, may run on all
// processors, and has the limits (ulimit) that it may lift lifted. Relative paths mean others from now on.
void LeaveStarter();

}  // namespace xsched::cli
