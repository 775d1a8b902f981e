// The programs of `xsched calibrate`: `xsched calibrate --work JOB`, in a process of their own. They know
// nothing of XSched. Two lines of their output begin with kAnswerMark: one says "ready", when their queues
// exist, and the other is the answer. Other lines are messages for people, of drivers for example. They begin
// when the file of WorkJob::start does, at the time that it says.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/calibrate/experiment.h"

namespace xsched::cli {

inline constexpr std::string_view kAnswerMark = "> ";

// The length of a kernel: base_ns + loops * ns_per_loop.
struct KernelSpeed {
  double base_ns = 0;
  double ns_per_loop = 0;  // 0: not known yet
};

struct WorkJob {
  std::string platform;  // its id
  KernelSpeed speed;
  // Without queues: the answer is the device's name, and the speed.
  std::vector<QueueWork> queues;
  Duration length{};
  std::string start;  // the path of a file with a time of CLOCK_MONOTONIC, in nanoseconds
};

struct DeviceFacts {
  std::string name;
  KernelSpeed speed;
};

nlohmann::json JsonOf(const WorkJob& job);

// The program. Throws CommandError.
void DoWork(const std::string& job);

// The answers, from a program's second line, without the mark. They throw CommandError if it is none.
DeviceFacts FactsFrom(const std::string& answer);
// One list for each queue.
std::vector<std::vector<Span>> SpansFrom(const std::string& answer);

}  // namespace xsched::cli
