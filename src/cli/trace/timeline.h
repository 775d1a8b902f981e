// Turns a recording (docs/recording.md) into a trace: a group of tracks for each process, in it two for each
// queue (its requests, and when it did not run, with an arrow from the queue because of which) and a counter
// of its commands in flight, for each device of the process its time slices and memory (DeviceShare), and for
// each device its queues together (DeviceRuns) and the turns of its processes (DeviceTurns).
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "cli/simulate/json_line.h"
#include "cli/trace/chrome_trace.h"
#include "cli/trace/chrome_tracks.h"
#include "cli/trace/device_runs.h"
#include "cli/trace/device_share.h"
#include "cli/trace/device_turns.h"
#include "cli/trace/track_events.h"

namespace xsched::cli {

class Timeline {
 public:
  explicit Timeline(std::ostream& out) : events_(out) {}

  // Before Read: the timeline's times are Unix times, so that what others measured can be laid beside it.
  // Otherwise they count from the recording's beginning.
  void UseUnixTimes() { unix_times_ = true; }

  // Reads a whole recording. Throws CommandError with the place of what is wrong.
  void Read(std::istream& input, const std::string& name);

  bool empty() const { return processes_.empty(); }  // it shows no program
  uint64_t requests() const { return requests_; }
  uint64_t lost() const { return lost_; }           // records that are missing in the recording
  bool was_cut_off() const { return !has_ended_; }  // it has no end

  // Adds what PyTorch's profiler recorded at the same time, as far as it is from the recording's time.
  // REQUIRES: UseUnixTimes, Read.
  ShownSlices AddTorch(ChromeTrace trace);

 private:
  struct Device {
    std::string name;
    DeviceRuns runs;
    DeviceTurns turns;
  };
  struct Process {
    TrackEvents::Track track;
    int32_t pid;
    std::string name;
    std::map<int64_t, DeviceShare> shares{};  // by the device
  };
  struct Queue {
    TrackEvents::Track requests;
    TrackEvents::Track holds;
    TrackEvents::Track in_flight = 0;  // 0: there is none yet
    int64_t number;
    int64_t process;
    int64_t device;
    std::string name;  // with its program's
    // Of the request that has begun and not ended.
    bool open = false;
    Duration open_until{};
    int64_t commands = 0;
    int64_t launched = 0;
    int64_t device_ns = 0;
    int64_t waiting_ns = 0;
  };

  void ReadHead(const JsonLine& recorded);
  void ReadLine(const JsonLine& line);
  void ReadProcess(const JsonLine& process);
  void ReadQueue(const JsonLine& line, Duration at);
  void ReadBurst(const JsonLine& burst, Duration at);
  void ReadHold(const JsonLine& hold, Duration at);
  void ReadWait(const JsonLine& wait, Duration at);
  void ReadSlice(const JsonLine& slice, Duration at);
  void ReadTurn(const JsonLine& turn, Duration at);
  void ReadMemory(const JsonLine& memory, Duration at);
  void ReadInFlight(const JsonLine& in_flight, Duration at);
  void EndRequest(Queue& queue);
  void CountInFlight(Queue& queue, Duration at, int64_t commands);
  void Finish();
  Queue& QueueOf(const JsonLine& line, const char* key = "queue");
  DeviceShare& ShareOf(const JsonLine& line);
  // When it was over.
  Duration EndOf(const JsonLine& line, Duration at);

  TrackEvents events_;
  std::map<int64_t, Device> devices_;
  std::map<int64_t, Process> processes_;
  std::map<int64_t, Queue> queues_;
  uint64_t requests_ = 0;
  uint64_t lost_ = 0;
  bool has_ended_ = false;
  bool unix_times_ = false;
  Duration began_{};  // Unix time, if these are used
  Duration length_{};
};

}  // namespace xsched::cli
