// Whether processes with short commands share their device or take turns. Gates alone stop them soon enough,
// so both are possible. Which one does more depends on the programs:
//   - Those that are bound by launch cost fill each other's gaps. In turns, each would leave most of its turn
//     unused.
//   - Those that fill the device only pay for the changes between them, and a more urgent process waits for
//     each of them, since they have the driver's slices.
// So both are tried: first turns, then sharing, until each process has used the device for a while in either
// way. What did more is kept, and tried again later, at longer and longer intervals.
//
// Of one device. Pure.
#pragma once

#include <span>

#include "sched/core/types.h"

namespace xsched::sched {

struct ProcessRecord;

// What a process has done with its part of the device's time, during a trial.
struct Pace {
  Duration time{};
  int64_t commands = 0;

  void Add(Duration used, int64_t done) {
    time += used;
    commands += done;
  }
};

class Sharing {
 public:
  // Another process has come: what was found may be wrong, and is tried again, at most every 4 s.
  void ProcessCame();
  // REQUIRES: commands of all of them are short. Those that do not compete are ignored.
  bool Pays(std::span<ProcessRecord* const> processes, TimePoint now);
  // When to ask again at the latest, if nothing happens.
  TimePoint ask_at() const { return until_; }

 private:
  enum class Phase : uint8_t { kNew, kTriesTurns, kTriesSharing, kKnown };

  static constexpr Duration kKeepFirst = std::chrono::seconds(4);

  void Begin(Phase phase, TimePoint now, Duration at_most);

  Phase phase_ = Phase::kNew;
  bool pays_ = false;           // valid in kKnown
  TimePoint until_ = kNever;    // the end of the phase
  TimePoint soonest_{};         // in kKnown: no trial begins before that
  Duration keep_ = kKeepFirst;  // for how long the next result is kept
};

}  // namespace xsched::sched
