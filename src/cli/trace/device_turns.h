// Which processes have a device while others are off it: their turns, as a track. A recording says when a
// process had its turn. Of a process that is not recorded, and in older recordings, it follows from the holds
// whose reason is that the queue's process was off the device.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/trace/track_events.h"

namespace xsched::cli {

class DeviceTurns {
 public:
  using Process = int64_t;  // its number in the recording

  // In the order of time.
  void HadTurn(Process process, Duration from, Duration to);
  // A process was off the device because this one had it. None: the recording names nobody.
  void Had(std::optional<Process> process, Duration from, Duration to);

  // Without turns, there is no track. `names` has every process that was named here.
  void Write(TrackEvents& events, const std::string& device, const std::map<Process, std::string>& names);

 private:
  struct Change {
    Duration at;
    std::optional<Process> process;
    int by;
  };

  std::vector<Change> turns_;
  std::vector<Change> holds_;
  std::set<Process> known_;  // those of turns_: holds say nothing new of them
};

}  // namespace xsched::cli
