// Devices as they were measured (docs/design.md, sections 4 and 6), in virtual time:
//
//  - The commands of a queue run in order. Queues of one process run at the same time and share its time.
//  - Level 1: a held queue starts a few more commands. Then the device has no work of it.
//  - Level 2: a held queue starts a few more commands. Then it waits at a gate.
//  - Level 3: as level 2. In addition, processes have time slices, and can be off the device.
//  - The device divides its time between runnable processes by their slices. A process that waits on the
//    device, at a gate or inside a command, is runnable, and its share is lost.
//  - A process with the shortest slice makes no progress while another process is runnable. Beside a long
//    slice it gets almost nothing, and with two of the shortest the device only switches between them.
//
// Shares are exact at each moment: a process with 2 of 10 ms runs at a fifth of the speed. The model knows
// nothing of the scheduler.
#pragma once

#include <span>

#include "sched/sim/history.h"

namespace xsched::sched::sim {

// Several short commands of a queue are modeled as one, up to this length.
inline constexpr Duration kTakenAsOne = milliseconds(1);

// The state of the oldest unfinished command of a queue on the device.
enum class Stage : uint8_t {
  kNone,      // there is none
  kHeld,      // not started: held, suspended or off the device
  kAwaits,    // not started: waits for another queue, and the scheduler knows it
  kExecutes,  // started
  kSpins,     // has done its own work, and waits for another queue; the scheduler does not know it
};

struct QueueModel {
  const QueueScript* script = nullptr;
  bool exists = false;  // from its creation until its program or its process ends
  Hints hints;

  // The program's part.
  uint64_t submitted = 0;
  bool launching = false;  // its thread waits until the stream has room, in the launch of the last command
  int tasks = 0;           // submitted so far
  TimePoint next_task = kNever;
  bool suspended = false;

  // The scheduler's part.
  bool hold = false;
  int overrun = 0;  // commands that still start while it is held

  // The device's part.
  Stage stage = Stage::kNone;
  uint64_t retired = 0;
  uint64_t arrived = 0;  // as `retired`, and the one that spins; several commands modeled as one count once
  int head_commands = 0;
  double head_left = 0;          // ns of device time
  uint64_t await_retired = 0;    // kAwaits: waits until the target has retired so many commands
  uint64_t await_arrived = 0;    // kSpins: waits until so many of the target's have arrived; 0: no wait
  double rate = 0;               // its share of the device's time; valid while it executes
  TimePoint finish_at = kNever;  // at this rate

  bool HasHead() const { return stage != Stage::kNone; }
  // True if the device has something of it, although it may be held.
  bool OnDevice() const { return Started() || (overrun > 0 && HasHead()); }
  bool Started() const { return stage == Stage::kExecutes || stage == Stage::kSpins; }
};

struct ProcessModel {
  const ProcessScript* script = nullptr;
  bool alive = true;
  bool stopped = false;              // nothing of it runs on the host
  bool seen_stopped = false;         // the server takes it for stopped: it notices both changes later
  Duration slice[kMaxDevices] = {};  // as set on the device
  bool own_off[kMaxDevices] = {};    // its program suspended all of its queues, at level 3
  bool wants[kMaxDevices] = {};      // runnable, as the device sees it
  int executing[kMaxDevices] = {};   // number of queues that execute
};

class DeviceModel {
 public:
  DeviceModel(std::span<ProcessModel> processes, std::span<QueueModel> queues)
      : processes_(processes), queues_(queues) {}

  // Sets the next command of a queue. The program decides its kind.
  void SetHead(QueueModel& queue, int commands, double work) const;
  // Call after any change: starts the commands that may start, and divides each device anew.
  void Settle(TimePoint now);
  // Lets time pass. REQUIRES: nothing changes in that time.
  void Advance(Duration time);
  TimePoint NextFinish() const;
  // True if the spinning command of this queue may retire.
  bool IsSatisfied(const QueueModel& queue) const;
  // How many more commands of this queue will arrive without another launch, at most two.
  static uint64_t Coming(const QueueModel& queue);
  bool MayUse(const ProcessModel& process, int device) const;

 private:
  bool MayStart(const QueueModel& queue) const;
  void Divide(TimePoint now);

  std::span<ProcessModel> processes_;
  std::span<QueueModel> queues_;
};

}  // namespace xsched::sched::sim
