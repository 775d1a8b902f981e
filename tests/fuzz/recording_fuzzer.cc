// A libFuzzer target for those who read recordings and loads: the simulator, the timeline, and what explains
// waits; and for what reads PyTorch's profiles, which a timeline shows beside a recording.
#include <sstream>

#include "cli/explain/process_waits.h"
#include "cli/simulate/load_file.h"
#include "cli/trace/chrome_tracks.h"
#include "cli/trace/timeline.h"

using namespace xsched;
using namespace xsched::cli;

namespace {

// A fault of the file is said, and nothing else is thrown.
template <typename Reader>
void Try(Reader&& reader) {
  try {
    reader();
  } catch (const CommandError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  Try([&] {
    std::istringstream input(text);
    LoadReader reader;
    reader.Read(input, "FILE");
    const sched::sim::Load load = reader.Finish(std::chrono::seconds(1), std::nullopt);
    RecordedOutcome(load, reader.recorded(), Duration::zero());
  });
  Try([&] {
    std::istringstream input(text);
    std::ostringstream out;
    Timeline(out).Read(input, "FILE");
  });
  Try([&] {
    std::istringstream input(text);
    ProcessWaits().Read(input, "FILE");
  });
  Try([&] {
    std::istringstream input(text);
    std::ostringstream out;
    TrackEvents events(out);
    const auto process = [](int32_t pid) { return static_cast<TrackEvents::Track>(pid % 2); };
    AddChromeTrace(ReadChromeTrace(input, "FILE"), {Duration::zero(), Duration::max(), process}, events);
  });
  return 0;
}
