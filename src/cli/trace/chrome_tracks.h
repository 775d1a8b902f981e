// Shows a trace of Chrome's format, as PyTorch's profiler writes it, beside a recording: a track for each
// thread and stream, with further ones for slices that overlap, and a counter of allocated memory for each
// device.
#pragma once

#include <cstdint>
#include <functional>

#include "base/clock.h"
#include "cli/trace/chrome_trace.h"
#include "cli/trace/track_events.h"

namespace xsched::cli {

// The recording beside which it is shown.
struct Beside {
  Duration from, until;  // Unix times; what is before or after that is left out
  // The track of the process with this number; 0: it has none.
  std::function<TrackEvents::Track(int32_t pid)> process;
};

struct ShownSlices {
  uint64_t shown = 0;
  uint64_t left_out = 0;
};

// `events` counts from `beside.from`.
ShownSlices AddChromeTrace(ChromeTrace&& trace, const Beside& beside, TrackEvents& events);

}  // namespace xsched::cli
