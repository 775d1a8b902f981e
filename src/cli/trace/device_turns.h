// Which processes have a device while others are off it: their turns, as a track. They follow from the holds
// of a recording whose reason is that the queue's process was off the device.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/trace/track_events.h"

namespace xsched::cli {

class DeviceTurns {
 public:
  using Process = int64_t;  // its number in the recording

  // A process was off the device because this one had it; none: one that the recording does not name.
  void Had(std::optional<Process> process, Duration from, Duration to);

  // Without turns, there is no track. `names` has every process that was named here.
  void Write(TrackEvents& events, const std::string& device, const std::map<Process, std::string>& names);

 private:
  struct Change {
    Duration at;
    std::optional<Process> process;
    int by;
  };

  std::vector<Change> changes_;
};

}  // namespace xsched::cli
