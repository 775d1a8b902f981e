// What one process had of one device, as tracks of the process: its time slices, and counters of its memory
// and of the limit of that. Each is there only if the recording has it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "cli/trace/track_events.h"

namespace xsched::cli {

class DeviceShare {
 public:
  DeviceShare(TrackEvents::Track process, std::string device)
      : process_(process), device_(std::move(device)) {}

  // In the order of time.
  void HadSlice(TrackEvents& events, Duration from, Duration to, Duration slice);
  void HadMemory(TrackEvents& events, Duration from, Duration to, int64_t used, int64_t limit);
  // There is no more: what the process had, it has no longer.
  void Finish(TrackEvents& events);

 private:
  TrackEvents::Track process_;
  std::string device_;
  TrackEvents::Track slices_ = 0;  // 0: there is none yet
  TrackEvents::Track memory_ = 0;
  TrackEvents::Track limit_ = 0;
  Duration had_until_{};  // the memory
};

}  // namespace xsched::cli
