// Computes parameters of the device model (sched/sim/device_parameters.h) from what programs saw. Pure. All
// times are nanoseconds.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "cli/calibrate/experiment.h"

namespace xsched::cli {

// A figure, and half of the range in which the middle half of its single values lies.
struct Estimate {
  double value = 0;
  double spread = 0;
};

using Spans = std::span<const Span>;

// The median latency of tasks. The first ones do not count. nullopt: there are no others.
std::optional<Estimate> Latency(Spans tasks);

// How long one command takes in a queue that always has work.
Estimate CommandLength(Spans commands);

// What a device that divides its time between processes does.
struct Slices {
  Estimate slice;
  Estimate change;  // of the process, with a command at work
};
// Of two programs that always have work, with commands of the length `command`. nullopt: the device shows no
// slices that are longer than a few commands.
std::optional<Slices> FitSlices(Spans one, Spans other, double command);

// What a change of the process takes if the one that leaves has no work: tasks of one command of the length
// `command` beside a program that always has work, with commands of the same length.
Estimate FitChangeWhenIdle(Spans tasks, Spans other, double command, double change);

// What one urgent task saw of a queue of the same process that is held for it, and that always has work.
struct Hold {
  double stopped = 0;  // from the task's begin until the end of the last command that ran beside it
  int commands = 0;    // that ended beside it
  double resumed = 0;  // from the task's end until the end of the other queue's next command
};
// One entry for each task beside which commands ended. The first tasks do not count: the scheduler does not
// know yet that pauses follow them.
std::vector<Hold> HoldsOf(Spans tasks, Spans other);

// The earliest moment at which a queue stands still, if it is equally likely to do so at all later ones.
// `spread` is how exactly the edge can be known.
Estimate EarliestStop(std::span<const Hold> holds);
// The time from a task's end until the other queue's next command has ended.
Estimate Resumed(std::span<const Hold> holds);
// The usual number of commands that run on.
double CommandsAfterHold(std::span<const Hold> holds);

}  // namespace xsched::cli
