// What benchmarks of the server have in common: processors, and what their figures are compared with.
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "base/clock.h"

namespace xsched::bench {

// The server has a core of its own, and all clients have another one.
inline constexpr int kServerCore = 0;
inline constexpr int kClientCore = 1;
void Pin(pid_t pid, int core);

// REQUIRES: there are values.
nlohmann::json Quantiles(std::vector<double> values);

// The system's own delay in microseconds, from a write to an eventfd until a process on the server's core,
// which sleeps in epoll_wait, has stored a word. No server can be faster.
nlohmann::json BareWakeup(int times);

}  // namespace xsched::bench
