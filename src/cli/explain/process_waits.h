// Sums up what was recorded by processes: their requests, and why and because of whom they did not run. It
// reads a recording (docs/recording.md), or takes the server's messages. Pure.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <string>
#include <tuple>

#include "base/clock.h"
#include "cli/distribution.h"
#include "cli/hold_reasons.h"
#include "cli/record/gone_queues.h"
#include "cli/simulate/json_line.h"
#include "ipc/client.h"

namespace xsched::cli {

class ProcessWaits {
 public:
  // Time in which queues of a process did not run, for one reason and because of one other process with one
  // priority.
  struct Wait {
    Duration time{};
    uint64_t times = 0;

    void Add(const Wait& other);
  };
  struct Because {
    const HoldReason* reason;
    int64_t process;   // 0: of none, or of one that the reader may not see
    int64_t priority;  // of the queue that was waited for, then: those of a process may differ, and change

    bool operator<(const Because& other) const {
      return std::tie(reason, process, priority) < std::tie(other.reason, other.process, other.priority);
    }
  };
  struct Process {
    std::string name;
    int32_t pid = 0;
    std::string user;
    uint64_t job = 0;                         // taken from messages; 0: none
    int64_t priority = 0;                     // of its queue that was described last
    std::map<uint64_t, std::string> devices;  // names, by number
    uint64_t queues = 0;  // of the part with the most: which queues are the same in two parts is not known
    uint64_t queues_of_part = 0;
    Distribution requests;      // from ready to idle
    uint64_t unfinished = 0;    // requests that had not ended
    uint64_t unseen = 0;        // requests of unknown length
    Duration unseen_longest{};  // one of them was at least so long
    Duration busy{};            // the sum of its queues' times with work
    Duration device_time{};
    Duration waiting{};
    std::map<Because, Wait> waits;
    Duration longest{};  // of its waits
    Duration longest_at{};
    Because longest_because{};
    bool longest_is_part = false;  // it had begun before what is known

    // As if they were one.
    void Add(const Process& other);
  };

  // Throws CommandError with the place of what is wrong.
  void Read(std::istream& input, const std::string& name);

  // Those that are no part of a recording are ignored.
  void Take(const ipc::Packet& packet);
  // What is taken from now on is another server's, or of another recording, which began so long after the
  // first one. Its numbers of processes and queues are new, but the processes may be the same.
  void BeginPart(Duration began);
  // Requests that have not ended do not end any more.
  void Finish(Duration end);

  // By their numbers.
  const std::map<int64_t, Process>& processes() const { return processes_; }
  uint64_t lost() const { return lost_; }
  // A recording has no end.
  bool was_cut_off() const { return was_cut_off_; }
  Duration end() const { return end_; }
  // How many queues it remembers one by one.
  size_t known_queues() const { return queues_.size(); }

 private:
  struct Queue {
    int64_t process;
    int64_t priority = 0;  // as it was described last
    Duration request{};    // what is known of the request that was cut and goes on
    Duration until{};      // when it was cut
    bool open = false;
    bool whole = false;  // all of the request is known so far
    bool gone = false;
  };
  struct Burst {
    Duration at, span, device_time, waiting;
    bool continued, cut, unseen;
  };

  void ReadLine(const JsonLine& line);
  void ReadQueue(const JsonLine& queue);
  void ReadBurst(const JsonLine& burst, Duration at);
  void ReadHold(const JsonLine& hold, Duration at);
  Queue& QueueOf(const JsonLine& line, const char* key = "queue");

  void TakeQueue(const ipc::RecordedQueue& queue);
  void TakeBurst(const ipc::RecordedBurst& burst);
  void TakeHold(const ipc::RecordedHold& hold);
  void TakeEnd(const ipc::RecordedEnd& end);
  // The number of its process.
  int64_t ProcessOf(const ipc::RecordedQueue& queue);
  // Of what the server calls so.
  int64_t NumberOf(uint64_t id) const;
  Queue* FindQueue(uint64_t id);

  // True: it is new.
  bool AddQueue(int64_t id, int64_t process, int64_t priority);
  // `other`: null: of none that is known.
  static Because BecauseOf(const HoldReason& reason, const Queue* other);
  void AddBurst(Queue& queue, const Burst& burst);
  static void AddUnseen(Process& process, Duration at_least);
  // `at`: since its part began.
  void AddHold(const Queue& queue, const Because& because, Duration at, Duration span);

  std::map<uint64_t, std::string> devices_;
  std::map<int64_t, Process> processes_;
  std::map<int64_t, Queue> queues_;
  GoneQueues gone_;  // taken from messages
  uint64_t lost_ = 0;
  Duration end_{};
  bool was_cut_off_ = false;
  int64_t part_ = 0;
  Duration part_began_{};
  std::map<uint64_t, int64_t> clients_;  // the numbers of the processes of this part
  // Pid, job, user and name. Several runtimes of one process have the same.
  using Identity = std::tuple<int32_t, uint64_t, std::string, std::string>;
  std::multimap<Identity, int64_t> former_;  // processes of the parts before, unless this part has them
};

}  // namespace xsched::cli
