#include "wakes.h"

#include <semaphore>
#include <thread>

#include "clock.h"

namespace xsched::bench {

Wakes MeasureWakes(double rate_hz, double seconds) {
  const double period = 1 / rate_hz;
  const double begin = Seconds();
  Wakes wakes;
  std::binary_semaphore asked(0);
  std::binary_semaphore answered(0);
  double sent = 0;
  bool more = true;
  std::jthread other([&] {
    while (true) {
      asked.acquire();
      if (!more) return;
      wakes.thread_us.push_back((Seconds() - sent) * 1e6);
      answered.release();
    }
  });
  for (double at = begin + period; at < begin + seconds; at += period) {
    if (at <= Seconds()) continue;
    SleepUntil(at);
    sent = Seconds();
    wakes.timer_us.push_back((sent - at) * 1e6);
    asked.release();
    answered.acquire();
  }
  more = false;
  asked.release();
  return wakes;
}

}  // namespace xsched::bench
