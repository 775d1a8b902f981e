// What happens in one simulated history: programs, their processes and queues, and what befalls them. Plain
// data, so that a random history can be printed, and kept as an ordinary test.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sched/core/types.h"

namespace xsched::sched::sim {

using std::chrono::microseconds;
using std::chrono::milliseconds;

inline constexpr int kMaxDevices = 3;
inline constexpr int kMaxProcesses = 6;
inline constexpr int kMaxQueues = 18;
inline constexpr Duration kAlways = std::chrono::hours(1);

// How a program keeps its queue at work.
enum class Style : uint8_t {
  kWaits,         // a task, wait for its end, pause, the next task
  kPeriodic,      // a task every so often, whether or not the last one is done
  kLaunchesAhead  // never waits: its thread blocks when the launch queue is full
};

// What the first command of some tasks waits for.
enum class Wait : uint8_t {
  kNone,
  kKnown,   // before it starts, for what another queue has been given; the scheduler knows
  kHidden,  // on the device, for what another queue has been given next; the scheduler does not know
  kGang,    // on the device, until its partner has come as far; likewise
};

// The answer of the driver to a call that sets a slice or switches channels.
enum class Fault : uint8_t {
  kRefused,   // no effect, and reported so
  kTimedOut,  // takes effect, and reports a failure
};

struct ProcessScript {
  int level = 2;                          // of preemption: 1 to 3
  int overrun = 0;                        // commands that still start after a hold
  Duration reaction = microseconds(100);  // of its agent: to report, to answer, to begin a control call
  Duration call = microseconds(300);      // a control call takes so long
  int faults_from = 0;                    // the control call that fails first, and how many in a row
  int faults = 0;
  Fault fault = Fault::kRefused;
  int job = 0;  // told to the scheduler; 0: none
};

struct QueueScript {
  int process = 0;
  int device = 0;
  Priority priority = 0;
  Utilization utilization = 100;
  Style style = Style::kWaits;
  Duration command = milliseconds(1);
  int commands = 1;  // of a task
  int room = 1020;   // commands that its stream takes before a launch blocks
  Duration pause{};  // kWaits: after a task; kPeriodic: from task to task
  Duration start{};
  Duration end = kAlways;
  // The first command of this task takes longer. -1: of none.
  int long_task = -1;
  Duration long_command{};
  // Every so many tasks wait. A queue waits for one with a smaller number, except in a gang of two: so no two
  // programs ever wait for each other for good.
  Wait wait = Wait::kNone;
  int target = 0;
  int every = 1;
};

enum class EventKind : uint8_t {
  kKill,     // of a process: what it has on the device vanishes
  kStop,     // of a process, for `length`: it goes on on the device, and nothing of it on the host does
  kSuspend,  // of a queue, by its own program, for `length`
  kHints,    // of a queue: other priority and utilisation
  kPolicy,
};

struct Event {
  Duration at{};
  EventKind kind = EventKind::kKill;
  int subject = 0;  // a process or a queue
  Duration length{};
  Duration notice{};  // until the scheduler's environment has noticed (kKill, kStop)
  Priority priority = 0;
  Utilization utilization = 100;
  XPolicyType policy = kPolicyHighestPriorityFirst;
};

struct History {
  XPolicyType policy = kPolicyHighestPriorityFirst;
  std::vector<ProcessScript> processes;
  std::vector<QueueScript> queues;
  std::vector<Event> events;
  Duration length = milliseconds(500);
  // At the end all processes but one are killed, and that one must get back whatever was taken from it.
  int survivor = 0;
  bool survivor_works = false;
};

// As C++ that makes this history: for a test that keeps it.
std::string ToString(const History& history);

}  // namespace xsched::sched::sim
