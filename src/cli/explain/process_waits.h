// Sums up a recording (docs/recording.md) by processes: their requests, and why and because of whom they did
// not run. Pure.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cli/hold_reasons.h"
#include "cli/simulate/json_line.h"

namespace xsched::cli {

class ProcessWaits {
 public:
  // Time in which queues of a process did not run, for one reason and because of one other process.
  struct Wait {
    Duration time{};
    uint64_t times = 0;
  };
  struct Because {
    const HoldReason* reason;
    int64_t process;  // 0: of none, or of one that the reader may not see

    bool operator<(const Because& other) const {
      return std::pair(reason, process) < std::pair(other.reason, other.process);
    }
  };
  struct Process {
    std::string name;
    int32_t pid = 0;
    std::string user;
    int64_t priority = 0;  // of its queue that was described last
    std::set<std::string> devices;
    uint64_t queues = 0;
    std::vector<double> request_ms;  // from ready to idle
    uint64_t unfinished = 0;         // requests that had not ended
    Duration busy{};                 // the sum of its queues' times with work
    Duration device_time{};
    Duration waiting{};
    std::map<Because, Wait> waits;
    Duration longest{};  // of its waits
    Duration longest_at{};
    Because longest_because{};
  };

  // Throws CommandError with the place of what is wrong.
  void Read(std::istream& input, const std::string& name);

  // By their numbers in the recording.
  const std::map<int64_t, Process>& processes() const { return processes_; }
  uint64_t lost() const { return lost_; }
  Duration end() const { return end_; }

 private:
  struct Queue {
    int64_t process;
    Duration request{};  // of the request that was cut and goes on
    bool open = false;
  };

  void ReadLine(const JsonLine& line);
  void ReadQueue(const JsonLine& queue);
  void ReadBurst(const JsonLine& burst);
  void ReadHold(const JsonLine& hold, Duration at);
  Queue& QueueOf(const JsonLine& line, const char* key = "queue");

  std::map<int64_t, std::string> devices_;
  std::map<int64_t, Process> processes_;
  std::map<int64_t, Queue> queues_;
  uint64_t lost_ = 0;
  Duration end_{};
};

}  // namespace xsched::cli
