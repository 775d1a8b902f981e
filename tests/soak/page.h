// A page of a file that a client of the soak test shares with soak.py. clients.py has the same layout.
#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>

namespace soak {

enum class Command : uint64_t {
  kRun = 0,     // what the seed determines
  kSteady = 1,  // one command after the other, for a measurement
  kIdle = 2,
  kExit = 3
};

struct alignas(256) Page {
  std::atomic<uint64_t> pid;       // 0: no client
  std::atomic<uint64_t> done;      // commands that the device has finished
  std::atomic<uint64_t> steps;     // other calls than launches that have returned
  std::atomic<uint64_t> wants;     // 0: the client sleeps on purpose and has no work on the device
  std::atomic<uint64_t> late_ns;   // total delay of a thread that only sleeps
  std::atomic<uint64_t> slice_us;  // CUDA: the slice of the channel group; 0: not known
  std::atomic<uint64_t> on;        // CUDA: the group may run
  std::atomic<uint64_t> errors;    // wrong results
  std::atomic<uint64_t> command;   // a Command, set by soak.py
  std::atomic<uint64_t> phase;     // what the client does, for messages
  std::atomic<uint64_t> longest_create_ns;
};
static_assert(sizeof(Page) == 256);

inline uint64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace soak
