// Which queues of one device run at each time, and because of which decisions that changes: a track of each.
// It follows from the bursts and holds of a recording, which may come in any order.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/hold_reasons.h"
#include "cli/trace/track_events.h"

namespace xsched::cli {

class DeviceRuns {
 public:
  using Queue = int64_t;  // its number in the recording
  using Names = std::map<Queue, std::string>;

  void Worked(Queue queue, Duration from, Duration to);
  void Held(Queue queue, Duration from, Duration to, const HoldReason& reason, std::optional<Queue> by);

  // `names` has every queue that was named here.
  void Write(TrackEvents& events, const std::string& device, const Names& names);

 private:
  struct Change {
    enum Kind { kReady, kIdle, kHeld, kReleased } kind;
    Duration at;
    Queue queue;
    const HoldReason* reason = nullptr;  // of a hold
    std::optional<Queue> by;
  };
  struct State {
    int bursts = 0;
    int holds = 0;
    bool IsRunning() const { return bursts > 0 && holds == 0; }
  };

  void Apply(const Change& change);
  // What a change says about the scheduler, in words; empty: nothing. All changes of its time have been
  // applied.
  std::string DecisionOf(const Change& change, const Names& names) const;
  std::string Running(const Names& names) const;

  std::vector<Change> changes_;
  std::map<Queue, State> states_;  // of the queues that are recorded
  std::set<Queue> running_;
  int64_t with_work_ = 0;
};

}  // namespace xsched::cli
