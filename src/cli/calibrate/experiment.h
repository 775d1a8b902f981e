// What `xsched calibrate` lets programs do beside each other, and what they see of it. Plain data, and the
// interface of what runs it: programs on a device, or in tests the simulator.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"

namespace xsched::cli {

// What one queue of a program does.
struct QueueWork {
  Duration command{};  // length of a command on an idle device; 0: as short as possible
  int commands = 1;    // of a task; 0: the queue never has work
  // From the end of a task to the next one, and up to how much longer. None: the queue always has work, and
  // each command counts as a task.
  std::optional<Duration> pause = std::nullopt;
  Duration spread{};
  int priority = 0;
};

// The pause before a task. Pauses are spread evenly, so that tasks meet other programs' commands at all
// moments.
inline Duration PauseBefore(const QueueWork& work, uint64_t task) {
  constexpr double kGoldenRatio = 0.6180339887498949;
  const double place = static_cast<double>(task) * kGoldenRatio;
  const double part = place - std::floor(place);
  return *work.pause + Duration(std::llround(part * static_cast<double>(work.spread.count())));
}

// All programs begin at the same time.
struct Experiment {
  bool scheduled = false;                        // under a server, where higher priorities run first
  std::vector<std::vector<QueueWork>> programs;  // the queues of each
  Duration length{};
};

// A task: when it was given to the queue, and when its program knew of its end.
struct Span {
  Duration begin{};
  Duration end{};
};

struct Observation {
  int level = 0;                         // of the queues, if they are scheduled
  std::vector<std::vector<Span>> spans;  // of each queue: first all of the first program
};

class Machine {
 public:
  virtual ~Machine() = default;
  virtual Observation Run(const Experiment& experiment) = 0;
};

}  // namespace xsched::cli
