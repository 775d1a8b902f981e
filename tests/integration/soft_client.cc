// A client over the software device, for the tests in robustness.py.
//
//   soft_client PRIORITY continuous|task|stuck|idle|requests SECONDS [fork|exec|queues|threads|exit-thread]
//
// Writes a line "<milliseconds> <commands finished>" every 10 ms; with `requests`, a line "requests <number>"
// at the end.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "process_usage.h"
#include "xsched/soft/hal.h"
#include "xsched/xsched.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Queue {
  HwQueueHandle hwq = 0;
  XQueueHandle xqueue = 0;

  explicit Queue(int priority) {
    SoftQueueCreate(&hwq, 1, kPreemptLevelBlock);
    if (XResult result = XQueueCreate(&xqueue, hwq, kPreemptLevelBlock, kQueueCreateFlagNone)) {
      printf("XQueueCreate %d\n", result);
    }
    XHintPriority(xqueue, priority);
  }
  ~Queue() {
    XQueueDestroy(xqueue);
    HwQueueDestroy(hwq);
  }
};

void ManyQueues(int priority) {
  { Queue warm(priority); }
  ProcessUsage before = ProcessUsage::Now();
  for (int i = 0; i < 500; ++i) {
    Queue queue(priority);
    SoftLaunch(queue.hwq, 1, nullptr, nullptr);
    SoftSynchronize(queue.hwq);
  }
  before.PrintGrowth("queues");
}

// Threads that launch on a common queue and on a queue of their own, and end with unfinished commands.
void ManyThreads(int priority) {
  Queue common(priority);
  auto round = [&] {
    std::vector<std::unique_ptr<Queue>> own(16);
    std::vector<std::thread> threads;
    for (auto& queue : own) {
      threads.emplace_back([&] {
        queue = std::make_unique<Queue>(priority);
        for (int i = 0; i < 5; ++i) {
          SoftLaunch(common.hwq, 1, nullptr, nullptr);
          SoftLaunch(queue->hwq, 1, nullptr, nullptr);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  };
  for (int i = 0; i < 20; ++i) round();
  ProcessUsage before = ProcessUsage::Now();
  for (int i = 0; i < 80; ++i) round();
  SoftSynchronize(common.hwq);
  before.PrintGrowth("threads");
}

// Of one command each, and each begins as soon as the one before has ended.
void Requests(int priority, double seconds) {
  Queue queue(priority);
  unsigned long long count = 0;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (; Clock::now() < end; ++count) {
    SoftLaunch(queue.hwq, 500, nullptr, nullptr);
    SoftSynchronize(queue.hwq);
  }
  printf("requests %llu\n", count);
}

}  // namespace

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  int priority = atoi(argv[1]);
  std::string mode = argv[2];
  double seconds = atof(argv[3]);
  std::string extra = argc > 4 ? argv[4] : "";
  if (extra == "queues") {
    ManyQueues(priority);
    return 0;
  }
  if (extra == "threads") {
    ManyThreads(priority);
    return 0;
  }
  if (mode == "requests") {
    Requests(priority, seconds);
    return 0;
  }
  Queue queue(priority);
  if (extra == "exec") {
    SoftLaunch(queue.hwq, 1000, nullptr, nullptr);
    execl(argv[0], argv[0], argv[1], argv[2], argv[3], static_cast<char*>(nullptr));
  }
  if (extra == "fork" && fork() == 0) {
    // It uses a separate device, and holds none of its parent's queues.
    Queue own(priority);
    SoftLaunch(own.hwq, 1000, nullptr, nullptr);
    sleep(static_cast<unsigned>(seconds));
    _exit(0);
  }
  auto begin = Clock::now();
  auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  uint64_t launched = 0;
  double next_line = 0;
  double next_task = 0;
  while (elapsed() < seconds) {
    uint64_t finished = 0;
    SoftQueueReport(queue.hwq, &finished, nullptr);
    if (mode == "continuous") {
      for (; launched - finished < 64; ++launched) SoftLaunch(queue.hwq, 1000, nullptr, nullptr);
    } else if (mode == "task" && elapsed() >= next_task) {
      next_task = elapsed() + 0.1;
      for (int i = 0; i < 30; ++i, ++launched) SoftLaunch(queue.hwq, 1000, nullptr, nullptr);
    } else if (mode == "stuck" && launched == 0) {
      SoftLaunch(queue.hwq, 3600'000'000, nullptr, nullptr);
      ++launched;
    }
    if (elapsed() >= next_line) {
      timespec now;
      clock_gettime(CLOCK_MONOTONIC, &now);
      printf("%.3f %llu\n", static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6,
             static_cast<unsigned long long>(finished));
      next_line = elapsed() + 0.01;
    }
    if (extra == "exit-thread" && elapsed() > 0.5) std::thread([] { exit(7); }).join();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  _exit(0);  // does not wait for a stuck queue
}
