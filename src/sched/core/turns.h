// Whose turn it is on devices that only one of several processes can use at a time, for all devices together.
//
// The processes of one job (the ranks of a distributed program) wait for each other: a turn is worth
// something only if all of them have it, on whatever devices they are. So turns belong to *parties*: the
// processes of one job, one from each device. Processes of which no job is known are matched by the order in
// which they came to their devices, among those of their priority: the first ones are one party, the second
// ones another.
//
// All parties stand in one ring, those that have waited longest first. When a turn is over, it is over on all
// devices. The ring is then gone through from the front: a party gets the turn if no device on which it
// competes has been given to another yet. Parties that have got it go to the end. So a job has its turn on
// all of its devices or on none, and jobs that do not meet on any device never wait for each other.
//
// Turns differ in length, since a more urgent process that comes ends them. A process that comes every 100 ms
// would end a long turn, then a short one, and so on. So a party that has had less time than the others keeps
// its turn until it has had as much.
//
// A device whose party has a pause meanwhile, or is held there, is lent to the next in the ring that competes
// there. A turn of which its party could not use a timeslice goes on with the next one.
//
// Pure.
#pragma once

#include <span>

#include "base/array.h"
#include "sched/core/process_slices.h"

namespace xsched::sched {

struct PartyKey {
  JobId job{};
  ProcessId process{};    // where no job is known, of a process that is on several devices
  Priority priority = 0;  // of any other
  uint32_t number = 0;    // the how manyth of these it is on its device

  auto operator<=>(const PartyKey&) const = default;
};

struct Party {
  PartyKey key;
  ProcessRecord* members = nullptr;  // a list: next_in_party; at most one of each device
  bool has_turn = false;
  TimePoint working_since = kNever;  // it has had a device since then that others want, by its turn or lent
  Duration used{};                   // … and before that, since its last turn,
  TimePoint used_until{};            // … up to then
  Duration had{};                    // the time of its turns, beyond what all that compete have had
  bool competed = false;             // when the last turn began
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

  // Other hints may put several processes of a device into other parties. For none of them is this a reason
  // to wait longer: a party that all have left stays in the ring for one that has left it. In this order:
  // 1. The process leaves its party, if that has another key.
  void Detach(ProcessRecord& process, const PartyKey& key);
  // 2. Makes `process` a member of that party and of no other. False: out of memory; it is in none.
  bool Join(ProcessRecord& process, const PartyKey& key);
  // 3. Forgets the parties that are empty now.
  void DropEmpty();
  // The process takes no turns any more.
  void Leave(ProcessRecord& process);

  // Chooses who is on, on each device (ProcessSlices::turn), and marks devices where that has changed as due.
  // A turn is over after `turn`, as soon as a more urgent process has come and finished, or a while later.
  // Returns when to be called again at the latest.
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
  Array<Party*> by_key_;      // that are not empty
  Array<Party*> ring_;        // those that have waited longest first; has room for all parties
  Array<Party*> playing_;     // those that have the turn; likewise
  TimePoint until_{};         // the turn is over after that when a more urgent process has finished,
  TimePoint latest_{};        // … and at this time in any case
};

}  // namespace xsched::sched
