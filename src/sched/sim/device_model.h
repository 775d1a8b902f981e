// Devices as they were measured (docs/design.md, ideas 1 and 3), in virtual time:
//
//  - the commands of a queue run in order; queues of one process run side by side and share its time;
//  - level 1: a held queue starts a few more commands, then the device has nothing of it;
//  - level 2: a held queue starts a few more commands, then stands at a gate;
//  - level 3: as level 2; besides, processes have time slices, and can be off the device;
//  - the device gives its time to runnable processes by their slices. A process that waits on the device, at
//    a gate or inside of a command, is runnable and does nothing with its share;
//  - a process with the shortest slice does nothing while another process is runnable, whatever slice that
//  one
//    has: beside a long one it gets next to nothing, and two of the shortest only make the device change
//    between them.
//
// Shares are exact at each moment: a process with 2 of 10 ms runs at a fifth of the speed. Knows nothing of
// the scheduler.
#pragma once

#include <span>

#include "sched/sim/history.h"

namespace xsched::sched::sim {

// Shorter commands of a queue are taken together, up to so long.
inline constexpr Duration kTakenAsOne = milliseconds(1);

// What the device does with the oldest unfinished command of a queue.
enum class Stage : uint8_t {
  kNone,      // there is none
  kHeld,      // not started: held, suspended or off the device
  kAwaits,    // not started: waits for another queue, as the scheduler knows
  kExecutes,  // started
  kSpins,     // has done its own work, and waits for another queue, as the scheduler does not know
};

struct QueueModel {
  const QueueScript* script = nullptr;
  bool exists = false;  // from its creation until its program or its process has ended
  Hints hints;

  // The program's part.
  uint64_t submitted = 0;
  bool launching = false;  // its thread waits in a launch until the stream has room: the last of `submitted`
  int tasks = 0;           // given so far
  TimePoint next_task = kNever;
  bool suspended = false;

  // The scheduler's part.
  bool hold = false;
  int overrun = 0;  // commands that still start while it is held

  // The device's part.
  Stage stage = Stage::kNone;
  uint64_t retired = 0;
  uint64_t arrived = 0;  // as `retired`, with the one that spins; counted as taken, not by commands
  int head_commands = 0;
  double head_left = 0;          // ns of device time
  uint64_t await_retired = 0;    // kAwaits: until the target has retired so many commands
  uint64_t await_arrived = 0;    // kSpins: until so many of the target's have arrived; 0: none
  double rate = 0;               // of the device's time; valid while it executes
  TimePoint finish_at = kNever;  // at this rate

  bool HasHead() const { return stage != Stage::kNone; }
  bool Started() const { return stage == Stage::kExecutes || stage == Stage::kSpins; }
};

struct ProcessModel {
  const ProcessScript* script = nullptr;
  bool alive = true;
  bool stopped = false;  // nothing of it runs on the host
  bool seen_stopped =
      false;  // … as the scheduler's environment has noticed, until it notices that it goes on
  Duration slice[kMaxDevices] = {};  // as the device has it
  bool own_off[kMaxDevices] = {};    // its program suspended all of its queues, at level 3
  bool wants[kMaxDevices] = {};      // runnable, as the device sees it
  int executing[kMaxDevices] = {};   // queues
};

class DeviceModel {
 public:
  DeviceModel(std::span<ProcessModel> processes, std::span<QueueModel> queues)
      : processes_(processes), queues_(queues) {}

  // The next command of a queue, of whose kind the program decides.
  void SetHead(QueueModel& queue, int commands, double work) const;
  // After anything has changed: starts what may start, and divides each device anew.
  void Settle(TimePoint now);
  // Lets the time pass in which nothing changes.
  void Advance(Duration time);
  TimePoint NextFinish() const;
  // May the command of this queue that spins retire?
  bool IsSatisfied(const QueueModel& queue) const;
  // How many more of this queue's commands, two at most, will arrive without another launch.
  static uint64_t Coming(const QueueModel& queue);
  bool MayUse(const ProcessModel& process, int device) const;

 private:
  bool MayStart(const QueueModel& queue) const;
  void Divide(TimePoint now);

  std::span<ProcessModel> processes_;
  std::span<QueueModel> queues_;
};

}  // namespace xsched::sched::sim
