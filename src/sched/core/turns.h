// Decides whose turn it is, for devices that only one of several processes can use at a time. It does so for
// all devices together.
//
// The processes of one job (the ranks of a distributed program) wait for each other. A turn is useful only if
// all of them have it at the same time, on all their devices. So turns belong to *parties*: the processes of
// one job, one from each device. Processes without a known job are matched by priority and by the order in
// which they came to their devices: the first ones are one party, the second ones another.
//
// All parties are in one ring, in which those that have waited longest are first. When a turn is over, it is
// over on all devices. Then the parties are checked from the front: a party gets the turn if no device on
// which it competes was given to another party yet. Parties that got it go to the end. So a job has its turn
// on all of its devices or on none, and jobs without a common device never wait for each other.
//
// Turns differ in length, because a more urgent process ends them. A process that comes every 100 ms would
// end a long turn, then a short one, and so on. So a party that has had less time than the others keeps its
// turn until it has had as much.
//
// If a party pauses during its turn, or is held on a device, that device is lent to the next party in the
// ring that competes there. If a party could not use a timeslice of its turn, it keeps the next turn.
//
// Pure.
#pragma once

#include <span>

#include "base/array.h"
#include "sched/core/process_slices.h"

namespace xsched::sched {

struct PartyKey {
  JobId job{};
  ProcessId process{};    // if no job is known: for a process that is on several devices
  Priority priority = 0;  // for any other process
  uint32_t number = 0;    // its position among the processes with the same key on its device

  auto operator<=>(const PartyKey&) const = default;
};

struct Party {
  PartyKey key;
  ProcessRecord* members = nullptr;  // a list (next_in_party), with at most one of each device
  bool has_turn = false;
  TimePoint working_since = kNever;  // since when it has a device that others want, in its turn or lent
  Duration used{};                   // the sum of such time before working_since, since its last turn
  TimePoint used_until{};            // the end of the time in `used`
  Duration had{};                    // the time of its turns, minus the least of all that compete
  bool competed = false;             // it competed when the last turn began
};

class Turns {
 public:
  Turns() = default;
  ~Turns();
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  // 0 forgets the process. False: out of memory.
  bool SetJob(ProcessId process, JobId job);
  JobId JobOf(ProcessId process) const;

  // Other hints may put several processes of a device into other parties. None of them must wait longer for
  // that reason: an empty party keeps its place in the ring for a process that has left it. Call in this
  // order:
  // 1. The process leaves its party, if that has another key.
  void Detach(ProcessRecord& process, const PartyKey& key);
  // 2. Makes `process` a member of that party and of no other. False: out of memory; it is in none.
  bool Join(ProcessRecord& process, const PartyKey& key);
  // 3. Removes the parties that are empty now.
  void DropEmpty();
  // True if a process of this party is on `device`.
  bool IsOn(const PartyKey& key, const DeviceRecord& device) const;
  // The process takes no turns any more.
  void Leave(ProcessRecord& process);

  // Chooses which process is on each device (ProcessSlices::turn), and marks the devices where this has
  // changed as due. After `turn`, a turn ends as soon as a more urgent process has come and finished, or a
  // while later. Returns when to call it again at the latest.
  TimePoint Update(std::span<DeviceRecord* const> devices, TimePoint now, Duration turn);

 private:
  struct JobOfProcess {
    ProcessId process;
    JobId job;
  };

  size_t FindParty(const PartyKey& key) const;
  Party* MakeParty(const Party* beside);
  void Unlink(ProcessRecord& process);
  void Remove(Party* party);
  size_t FindJob(ProcessId process) const;
  void Begin(TimePoint now, Duration turn);
  static void CountUse(std::span<DeviceRecord* const> devices, TimePoint now);
  static void MarkUse(std::span<DeviceRecord* const> devices, TimePoint now);
  void OrderByUse(Duration worth);
  void CountTimeHad(Duration worth);
  Duration BehindOthers() const;
  void DropThoseWithoutWork();
  ProcessRecord* WithTurn(const DeviceRecord& device) const;
  ProcessRecord* NextInRing(const DeviceRecord& device) const;

  Array<JobOfProcess> jobs_;  // in order of their processes
  Array<Party*> by_key_;      // those that are not empty
  Array<Party*> ring_;        // those that have waited longest first; has room for all parties
  Array<Party*> playing_;     // those that have the turn; has room for all parties
  TimePoint until_{};         // from then on, the turn ends when a more urgent process has finished
  TimePoint latest_{};        // the turn ends then in any case
};

}  // namespace xsched::sched
