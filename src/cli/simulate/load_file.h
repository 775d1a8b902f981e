// Reads loads: files that `xsched record` wrote, or that were written by hand (docs/simulator.md).
//
// A recorded program is an open one, whose tasks come at the recorded times, unless a burst began right after
// the one before had ended, or is the rest of one that was cut. Then it follows that end in the simulation.
//
// Recordings are read strictly: every line must be of a known kind. In a load that was written by hand, lines
// of other kinds are ignored; but misspelled keys are errors in the lines that are read.
#pragma once

#include <istream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/simulate/arrivals.h"
#include "cli/simulate/json_line.h"
#include "cli/simulate/recorded.h"
#include "sched/sim/load.h"

namespace xsched::cli {

// Reads one load from several files: their programs run at the same time.
class LoadReader {
 public:
  // Throws CommandError, with the file and the line. A recording's last line is ignored if it has no end: the
  // recorder was stopped while it wrote it.
  void Read(std::istream& input, const std::string& name);
  // `length`: how long the load goes on, in place of the files' own end. `device`: in place of the parameters
  // of every device, whose level no queue exceeds then.
  sched::sim::Load Finish(std::optional<Duration> length,
                          const std::optional<sched::sim::DeviceParameters>& device);
  // What is missing in recordings, one sentence each.
  const std::vector<std::string>& warnings() const { return warnings_; }
  // What was recorded of each queue of the load. REQUIRES: Finish was called.
  std::vector<std::vector<RecordedBurst>> recorded() const;

 private:
  struct Wait {
    Duration at;
    int queue;
  };
  // What the files say of a queue, beside what is in the load.
  struct Recorded {
    std::vector<RecordedBurst> bursts;
    std::vector<Wait> waits;
  };
  struct Generator {
    size_t queue;
    sched::sim::Task task;
    Arrivals arrivals;  // period 0: `task` comes once, at its time
    bool ends;          // arrivals.until was given
    std::string place;  // file and line
  };
  using Numbers = std::map<int64_t, size_t>;  // from a file's numbers to the load's

  void ReadLine(const JsonLine& line);
  void EndFile(const std::string& name);
  void ReadDevice(const JsonLine& device);
  void ReadProcess(const JsonLine& process);
  uint64_t TenantNamed(const std::string& name);
  void ReadQueue(const JsonLine& queue, Duration at);
  void ReadBurst(const JsonLine& burst, Duration at);
  void ReadHold(const JsonLine& hold) const;
  void ReadGone(const JsonLine& gone, Duration at);
  void ReadGenerator(const JsonLine& line, Duration at);
  size_t QueueOf(const JsonLine& line, const char* key = "queue") const;
  static size_t Find(const JsonLine& line, const char* key, const Numbers& numbers);
  void AddBursts(size_t queue);
  // Of the devices, or of `device` in place of each.
  void AddGenerated(Duration length, const std::optional<sched::sim::DeviceParameters>& device);
  void CountTasks(const Generator& generator, Duration pause);
  void SetTimes();
  void NameQueues();
  void CheckGuarantees() const;

  sched::sim::Load load_;
  std::vector<Recorded> recorded_;  // of each queue
  std::vector<Generator> generators_;
  size_t recordings_ = 0;  // that were read
  // A recording numbers its jobs itself: with the number of the recording; 0: by hand.
  std::map<std::pair<size_t, std::string>, uint64_t> jobs_;
  std::map<std::string, uint64_t> tenants_;
  Numbers devices_, processes_, queues_;  // of the file that is read
  // Of the file that is read.
  bool is_recording_ = false;
  bool has_ended_ = false;
  int64_t lost_ = 0;
  std::vector<std::string> warnings_;
  int64_t tasks_ = 0;  // that generators make, about
  Duration end_{};     // of what was recorded
};

}  // namespace xsched::cli
