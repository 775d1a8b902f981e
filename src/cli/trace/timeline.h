// Turns a recording (docs/recording.md) into a trace: a group of tracks for each process, in it two for each
// queue (its requests, and when it did not run, with an arrow from the queue because of which), and for each
// device its queues together (DeviceRuns).
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "cli/simulate/json_line.h"
#include "cli/trace/device_runs.h"
#include "cli/trace/track_events.h"

namespace xsched::cli {

class Timeline {
 public:
  explicit Timeline(std::ostream& out) : events_(out) {}

  // Reads a whole recording. Throws CommandError with the place of what is wrong.
  void Read(std::istream& input, const std::string& name);

  bool empty() const { return processes_.empty(); }  // it shows no program
  uint64_t requests() const { return requests_; }
  uint64_t lost() const { return lost_; }           // records that are missing in the recording
  bool was_cut_off() const { return !has_ended_; }  // it has no end

 private:
  struct Device {
    std::string name;
    DeviceRuns runs;
  };
  struct Process {
    TrackEvents::Track track;
    std::string name;
  };
  struct Queue {
    TrackEvents::Track requests;
    TrackEvents::Track holds;
    int64_t device;
    std::string name;  // with its program's
    // Of the request that has begun and not ended.
    bool open = false;
    Duration open_until{};
    int64_t commands = 0;
    int64_t device_ns = 0;
    int64_t waiting_ns = 0;
  };

  void ReadLine(const JsonLine& line);
  void ReadProcess(const JsonLine& process);
  void ReadQueue(const JsonLine& line, Duration at);
  void ReadBurst(const JsonLine& burst, Duration at);
  void ReadHold(const JsonLine& hold, Duration at);
  void ReadWait(const JsonLine& wait, Duration at);
  void EndRequest(Queue& queue);
  void Finish();
  Queue& QueueOf(const JsonLine& line, const char* key = "queue");

  TrackEvents events_;
  std::map<int64_t, Device> devices_;
  std::map<int64_t, Process> processes_;
  std::map<int64_t, Queue> queues_;
  uint64_t requests_ = 0;
  uint64_t lost_ = 0;
  bool has_ended_ = false;
};

}  // namespace xsched::cli
