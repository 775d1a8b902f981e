#include "measuring.h"

#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "base/fd.h"

namespace xsched::bench {

using nlohmann::json;

void Pin(pid_t pid, int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  sched_setaffinity(pid, sizeof cores, &cores);
}

json Quantiles(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  auto at = [&values](double q) {
    return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
  };
  return {{"p50", at(0.5)}, {"p90", at(0.9)}, {"p99", at(0.99)}, {"p999", at(0.999)}, {"max", at(1)}};
}

json BareWakeup(int times) {
  auto* word = static_cast<std::atomic<int>*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  UniqueFd bell(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Pin(0, kServerCore);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    epoll_event event{EPOLLIN | EPOLLET, {}};
    epoll_ctl(epoll, EPOLL_CTL_ADD, bell.get(), &event);
    for (;;) {
      if (epoll_wait(epoll, &event, 1, -1) == 1) word->fetch_add(1);
    }
  }
  usleep(10'000);
  std::vector<double> wakeup_us;
  for (int i = 0; i < times; ++i) {
    int before = word->load();
    const uint64_t one = 1;
    TimePoint start = MonotonicClock::now();
    if (write(bell.get(), &one, sizeof one) != sizeof one) break;
    while (word->load() == before) {
    }
    wakeup_us.push_back(InSeconds(MonotonicClock::now() - start) * 1e6);
    usleep(250);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  munmap(word, 4096);
  return Quantiles(wakeup_us);
}

}  // namespace xsched::bench
