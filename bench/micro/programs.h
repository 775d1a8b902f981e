// Programs of a shared machine, as far as their server sees them: they ring, answer its questions, and ask
// whether it lives, as real agents do. There is no device. All of them run on the calling thread.
//
// Every fifth program of a device serves requests, and is more urgent than the others. Those are batch jobs:
// some of their queues always have work, and another one has a short copy from time to time. All other
// queues are idle.
//
//   request comes: idle -> ready    all of the device's batch queues are held    after `work`: idle again
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "server/testing/test_client.h"

namespace xsched::bench {

struct Crowd {
  int devices = 8;
  int programs = 500;     // REQUIRES: at least two on each device
  int queues = 20;        // of each
  int users = 1;          // more than one: needs root
  int busy = 1;           // queues of a batch job that always have work
  int level = 3;          // 1: the host opens the gates; 2: the device; 3: it also divides its time
  double requests = 100;  // per second on each device
  Duration work = std::chrono::milliseconds(1);  // of a request
  double copies = 10;                            // per second of each batch job
  uint64_t seed = 1;
};

// What was measured, in microseconds.
struct CrowdFigures {
  // From the store that makes an urgent queue ready until the gate of every queue that it displaces is
  // closed.
  std::vector<double> close_us;
  std::vector<double> first_close_us;  // of the first one
  std::vector<double> displaced;       // how many queues
  int unseen = 0;  // requests that do not count: this thread was kept from looking at the gates meanwhile
  int never = 0;   // requests for which not all were held within a second
};

class Programs {
 public:
  // Connects all of them. Throws std::runtime_error with a message for users.
  Programs(const ipc::SocketPath& socket, const Crowd& crowd);
  // They begin to work: batch jobs at once.
  void Start();
  // They work for so long.
  CrowdFigures Run(Duration time);
  // All work ends.
  void Finish();

 private:
  struct Program {
    std::unique_ptr<server::testing::TestAgent> agent;
    int device = 0;
    bool urgent = false;
    bool working = false;            // urgent: it has a request
    std::vector<uint32_t> answered;  // for each queue, the last question for its progress
  };
  struct Event {
    TimePoint at;
    std::function<void()> happen;
    bool operator<(const Event& other) const { return at > other.at; }  // the earliest is the first
  };
  // A request whose hold is not complete.
  struct Hold {
    TimePoint began;
    std::vector<const ipc::ControlBlock*> open;  // the gates that are to close, in the order of their queues
    size_t closed = 0;                           // so many of them have closed
    size_t program = 0;
    double first_close_us = 0;
    bool seen = true;  // all the time
  };

  void Connect(const ipc::SocketPath& socket);
  void CreateQueues(Program& program);
  void At(TimePoint time, std::function<void()> happen) { events_.push({time, std::move(happen)}); }
  Duration Pause(double per_second);  // until the next of so many independent events per second
  void Request(int device, TimePoint now);
  void EndRequest(size_t program);
  void Copy(size_t program);
  void EndCopy(size_t program);
  void AskServer(size_t program);
  bool HappenNext(TimePoint now);
  void CheckHolds(TimePoint now);
  void ReadOne();
  void Answer(Program& program);

  const Crowd crowd_;
  std::mt19937_64 random_;
  std::vector<Program> programs_;
  std::vector<std::vector<size_t>> urgent_of_;                  // by device
  std::vector<std::vector<const ipc::ControlBlock*>> busy_of_;  // by device
  UniqueFd messages_;                                           // an epoll
  std::priority_queue<Event> events_;
  std::vector<Hold> holds_;
  TimePoint looked_at_{};  // at their gates
  CrowdFigures figures_;
};

}  // namespace xsched::bench
