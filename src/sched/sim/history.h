// One simulated history: programs, their processes and queues, and the events that happen to them. It is
// plain data, so that a random history can be printed and kept as an ordinary test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sched/core/policy.h"
#include "sched/core/types.h"

namespace xsched::sched::sim {

using std::chrono::microseconds;
using std::chrono::milliseconds;

inline constexpr int kMaxDevices = 3;
inline constexpr int kMaxProcesses = 6;
inline constexpr int kMaxQueues = 18;
inline constexpr Duration kAlways = std::chrono::hours(1);
inline constexpr Duration kReservationPeriod = milliseconds(20);  // of guarantees and limits

// Histories name what they have by int, which is easily written.
inline size_t Index(int index) { return static_cast<size_t>(index); }

// How a program gives work to its queue.
enum class Style : uint8_t {
  kWaits,         // submits a task, waits for its end, pauses, submits the next
  kPeriodic,      // submits a task at fixed intervals, even if the last one is not finished
  kLaunchesAhead  // never waits: its thread blocks when the stream is full
};

// What the first command of some tasks waits for.
enum class Wait : uint8_t {
  kNone,
  kKnown,   // before it starts, for the commands submitted to another queue; the scheduler knows it
  kHidden,  // on the device, for the next command of another queue; the scheduler does not know it
  kGang,    // on the device, until its partner has arrived as far; the scheduler does not know it
};

// How a driver's call that sets a slice or switches channels fails.
enum class Fault : uint8_t {
  kRefused,   // has no effect, and reports a failure
  kTimedOut,  // takes effect, and reports a failure
};

struct ProcessScript {
  int level = 2;                          // of preemption: 1 to 3
  int overrun = 0;                        // commands that still start after a hold
  Duration reaction = microseconds(100);  // of its agent: to report, to answer, to begin a control call
  Duration call = microseconds(300);      // length of a control call
  int faults_from = 0;                    // number of the first control call that fails
  int faults = 0;                         // how many calls in a row fail
  Fault fault = Fault::kRefused;
  int job = 0;     // 0: the scheduler knows no job
  int tenant = 0;  // 0: it knows no tenant
};

struct QueueScript {
  int process = 0;
  int device = 0;
  Priority priority = 0;
  Utilization utilization = 100;
  Weight weight = 100;
  int64_t guarantee_us = 0;  // of each kReservationPeriod
  int64_t limit_us = 0;      // likewise
  int64_t burst_us = 0;      // of an unused limit
  LatencyTarget latency_target_us = NO_LATENCY_TARGET;
  Style style = Style::kWaits;
  Duration command = milliseconds(1);
  int commands = 1;  // of each task
  int room = 1020;   // how many commands its stream takes before a launch blocks
  Duration pause{};  // kWaits: after a task; kPeriodic: from one task to the next
  Duration start{};
  Duration end = kAlways;
  // The first command of this task is longer. -1: of no task.
  int long_task = -1;
  Duration long_command{};
  // One task in `every` waits for the queue `target`. A queue waits for one with a smaller number, except in
  // a gang of two. So two programs never wait for each other forever.
  Wait wait = Wait::kNone;
  int target = 0;
  int every = 1;
};

enum class EventKind : uint8_t {
  kKill,     // a process is killed: its work on the device vanishes
  kStop,     // a process is stopped for `length`: its work on the device goes on
  kSuspend,  // a program suspends its queue for `length`
  kHints,    // a queue gets another priority and utilization
  kPolicy,
};

struct Event {
  Duration at{};
  EventKind kind = EventKind::kKill;
  int subject = 0;  // a process or a queue
  Duration length{};
  Duration notice{};  // kKill, kStop: how long until the server notices it
  Priority priority = 0;
  Utilization utilization = 100;
  XPolicyType policy = kDefaultPolicy;
};

struct History {
  XPolicyType policy = kDefaultPolicy;
  std::vector<ProcessScript> processes;
  std::vector<QueueScript> queues;
  std::vector<Event> events;
  Duration length = milliseconds(500);
  Duration timeslice = microseconds(TIMESLICE_DEFAULT);
  // At the end all processes but one are killed. That one must get back everything that was taken from it.
  int survivor = 0;
  bool survivor_works = false;
};

// Returns C++ source that makes this history, for a test that keeps it.
std::string ToString(const History& history);

}  // namespace xsched::sched::sim
