// The software device: one thread that takes commands off the heads of streams. Never knows what a command
// means.
//
// A command is a list of steps, done one after the other. Kernels of all streams share one engine. It runs
// one kernel at a time, in the order in which they came to the head of their stream, as a GPU does if each
// kernel fills it. Copies, memory operations and similar steps take no time and need no engine. A waiting
// step is polled, and delays only its own stream. Host functions run on a second thread, one at a time, so
// that they delay only their own stream.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "sharing.h"

namespace standin {

struct Context;
struct Stream;

struct Step {
  enum class Kind : uint8_t { kKernel, kAction, kWait, kHost };
  Kind kind;
  std::function<void()> act;              // when it is done; with the lock held, except for kHost
  std::function<bool()> ready = nullptr;  // kWait
  std::chrono::nanoseconds duration{0};   // kKernel
};

struct Command {
  Context* context = nullptr;
  std::vector<Step> steps;
  std::vector<std::shared_ptr<Command>> after;  // besides what is before it in its stream
  size_t next_step = 0;
  uint64_t ready_since = 0;  // place among the kernels that wait for the engine; 0: not there yet
  bool with_host_thread = false;
  bool done = false;
  Clock::time_point finished;
};
using CommandPtr = std::shared_ptr<Command>;

// One lock for everything that calls and devices share.
std::mutex& TheLock();
struct Lock : std::unique_lock<std::mutex> {
  Lock() : std::unique_lock<std::mutex>(TheLock()) {}
};
// Notified whenever a command is done.
std::condition_variable& CommandsDone();

// All functions REQUIRE TheLock.
class Device {
 public:
  explicit Device(int ordinal);

  int ordinal() const { return ordinal_; }
  void Enqueue(Stream& stream, CommandPtr command);
  // The last command of each stream of `context` that has any left, destroyed streams included.
  std::vector<CommandPtr> LastCommandsOf(const Context& context) const;
  void Wake() { changed_.notify_one(); }
  // Changes of turns() take effect now, and not only at the device's next poll.
  void LookAtTurns() { DriveEngine(Clock::now()); }
  Turns& turns() { return turns_; }
  std::chrono::nanoseconds busy() const { return busy_; }
  size_t pending() const;

 private:
  void Run();
  void RunHostFunctions();
  bool AdvanceStreams();
  bool Advance(Stream& stream);
  bool DriveEngine(Clock::time_point now);
  void FinishCommand(Stream& stream);
  void Sleep(Lock& lock);

  const int ordinal_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Stream>> active_;  // streams with commands left
  uint64_t kernels_readied_ = 0;
  bool something_waits_ = false;

  std::shared_ptr<Stream> on_engine_;  // whose kernel is on the engine
  std::chrono::nanoseconds left_{0};
  Clock::time_point resumed_at_;
  bool running_ = false;  // on_engine_'s kernel runs; false: it waits for this process's turn
  std::chrono::nanoseconds busy_{0};
  Turns turns_;

  std::condition_variable host_changed_;
  std::deque<std::shared_ptr<Stream>> host_queue_;
};

}  // namespace standin
