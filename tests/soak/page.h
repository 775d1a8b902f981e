// What a client of the soak test tells its driver, and the driver it: one page of a file that both map. Its
// layout stands in clients.py as well.
#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>

namespace soak {

enum class Command : uint64_t {
  kRun = 0,     // as the seed says
  kSteady = 1,  // one command after the other, for a measurement
  kIdle = 2,
  kExit = 3
};

struct alignas(256) Page {
  std::atomic<uint64_t> pid;       // 0: nobody is here
  std::atomic<uint64_t> done;      // commands that the device has finished
  std::atomic<uint64_t> steps;     // calls that have returned, beside launches
  std::atomic<uint64_t> wants;     // 0: the client sleeps on purpose, and the device has nothing of it
  std::atomic<uint64_t> late_ns;   // by how much a thread that only sleeps woke too late, in all
  std::atomic<uint64_t> slice_us;  // CUDA: the slice of the channel group; 0: not known
  std::atomic<uint64_t> on;        // CUDA: the group may run
  std::atomic<uint64_t> errors;    // wrong results
  std::atomic<uint64_t> command;   // of the driver, a Command
  std::atomic<uint64_t> phase;     // what it does, for messages
  std::atomic<uint64_t> longest_create_ns;
};
static_assert(sizeof(Page) == 256);

inline uint64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace soak
