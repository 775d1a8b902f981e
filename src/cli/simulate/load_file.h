// Reads loads: files that `xsched record` wrote, or that were written by hand (docs/simulator.md).
//
// A recorded program is an open one, whose tasks come at the recorded times, unless a burst began right after
// the one before had ended, or is the rest of one that was cut. Then it follows that end in the simulation.
#pragma once

#include <istream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/simulate/arrivals.h"
#include "cli/simulate/json_line.h"
#include "sched/sim/load.h"

namespace xsched::cli {

// Reads one load from several files: their programs run at the same time.
class LoadReader {
 public:
  // Throws CommandError, with the file and the line. A last line without an end is ignored: the recorder was
  // stopped while it wrote it.
  void Read(std::istream& input, const std::string& name);
  // `length`: how long the load goes on, in place of the files' own end. `device`: in place of the parameters
  // of every device.
  sched::sim::Load Finish(std::optional<Duration> length,
                          const std::optional<sched::sim::DeviceParameters>& device);

 private:
  struct Burst {
    Duration at;
    Duration span;
    uint64_t commands;
    Duration command;
  };
  struct Wait {
    Duration at;
    int queue;
  };
  // What the files say of a queue, beside what is in the load.
  struct Recorded {
    std::vector<Burst> bursts;
    std::vector<Wait> waits;
    std::optional<Duration> gone;
  };
  struct Generator {
    size_t queue;
    sched::sim::Task task;
    Arrivals arrivals;  // period 0: `task` comes once, at its time
    bool ends;          // arrivals.until was given
  };
  using Numbers = std::map<int64_t, size_t>;  // from a file's numbers to the load's

  void ReadLine(const JsonLine& line);
  void ReadDevice(const JsonLine& device);
  void ReadProcess(const JsonLine& process);
  void ReadQueue(const JsonLine& queue, Duration at);
  void ReadBurst(const JsonLine& burst, Duration at);
  void ReadGone(const JsonLine& gone, Duration at);
  void ReadGenerator(const JsonLine& line, Duration at);
  size_t QueueOf(const JsonLine& line, const char* key = "queue") const;
  static size_t Find(const JsonLine& line, const char* key, const Numbers& numbers);
  void AddBursts(size_t queue);
  void AddGenerated(Duration length);
  void NameQueues();

  sched::sim::Load load_;
  std::vector<Recorded> recorded_;  // of each queue
  std::vector<Generator> generators_;
  std::map<std::string, uint64_t> jobs_;
  Numbers devices_, processes_, queues_;  // of the file that is read
  Duration end_{};                        // of what was recorded
};

}  // namespace xsched::cli
