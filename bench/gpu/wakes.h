// How late the machine itself wakes threads. XSched's server is woken for each request, so that on a machine
// where this takes long, requests are late, whatever the GPU does.
#pragma once

#include <vector>

namespace xsched::bench {

struct Wakes {
  std::vector<double> timer_us;   // from the time that a sleeping thread had asked for until it ran
  std::vector<double> thread_us;  // from a thread's message to another one until that ran
};

// At this rate, with two threads that do nothing else. Throws std::system_error if there is no second thread.
Wakes MeasureWakes(double rate_hz, double seconds);

}  // namespace xsched::bench
