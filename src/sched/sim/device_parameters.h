// What the simulation has to know of a device: how it divides its time, and what each step of XSched takes.
// Measured by `xsched calibrate`, or taken from docs/design.md. With all times zero the device is ideal.
#pragma once

#include <string>

#include "sched/core/types.h"

namespace xsched::sched::sim {

struct DeviceParameters {
  std::string name = "ideal";
  std::string platform;
  int level = 1;

  // From a change of work or hints until a gate is closed, or until the first command starts behind one.
  Duration hold_latency{};
  Duration resume_latency{};
  // A gate's time in the queue. Level 1: for how long the device waits for the host between two commands, if
  // they run one by one.
  Duration gate{};
  // Level 2: how long the commands between two gates run; the second one where time slices serve the rival
  // before any gate does.
  Duration preempt_latency{};
  Duration sliced_preempt_latency{};
  // Level 1: how many commands run on after a hold. At most that many, and at least one, run in
  // `preempt_latency`. If that harms nobody (Control::keeps_busy): what runs in so many times that latency,
  // and at least `least_if_busy`, unless one alone takes longer.
  int in_flight = 1;
  int least_if_busy = 2;
  int factor_if_busy = 4;

  // The device's own time slice of a process. 0: it does not divide its time between processes, and takes the
  // commands of all queues in turn.
  Duration slice{};
  // To change the process that the device runs: while the one before has a command at work, or has none.
  Duration switch_running{};
  Duration switch_idle{};
  // The driver's calls: until a new slice takes effect, to take a process off the device, to put it back.
  Duration slice_change{};
  Duration off{};
  Duration on{};

  // The least time between two launches of one thread, unless the load says more.
  Duration launch{};
  // What a task takes beside its commands: its first launch, and until its thread knows of its end.
  Duration command_latency{};
};

}  // namespace xsched::sched::sim
