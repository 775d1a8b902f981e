// A device that runs one command at a time, in virtual time. It knows nothing of the scheduler.
//
//  - A device with time slices serves one process after another, in a fixed order, each for its slice. To
//    change takes time. The slice ends in the middle of a command, which later continues where it stopped.
//    A process that has no work gives way at once. One that waits at a gate keeps its slice, unused.
//  - Of the queues of one process, or of all if there are no slices, the device takes commands in turn:
//    next is the one that has not run for longest. So one that is held for a while keeps its place.
//  - A held queue goes on to its next gate, or as far as its commands have been launched (level 1).
//  - A call that takes a process off the device, or puts it back, stops the device for as long as it lasts.
//
// Equal commands in a row are one step, so that an hour of short commands costs no more than its decisions.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "sched/core/policy.h"
#include "sched/sim/device_parameters.h"
#include "sched/sim/load.h"

namespace xsched::sched::sim {

// The order in which a device takes the commands of several queues.
enum class Order : uint8_t {
  kInTurn,     // one of each: natively, and under XSched
  kByArrival,  // whole tasks, as if all came through one queue (FIFO)
};

struct CommandQueue {
  int process = 0;
  int level = 1;

  // The oldest unfinished task. The program sets it.
  uint64_t head_end = 0;  // number of its last command: CommandDevice::SetEnd
  Duration command{};
  Duration launch{};
  TimePoint arrived{};
  bool waits = false;  // for another queue

  // The scheduler's part.
  bool gated = false;
  bool sliced = false;
  bool charges_overruns = false;
  bool keeps_busy = false;
  bool open = true;
  uint64_t stop_at = 0;  // valid unless open: the number of the last command that still runs

  // The device's part.
  uint64_t retired = 0;
  Duration left{};  // of a command that has started; 0: none has
  Duration device_time{};
  bool busy = false;  // among those of its process that have work
  uint64_t turn = 0;  // the number of its last turn; 0: it has not run

  bool HasWork() const { return retired < head_end; }
  bool MayRun() const { return HasWork() && !waits && (open || retired < stop_at); }
};

class CommandDevice {
 public:
  // `queues` are those of all devices. Add says which are on this one, in their order.
  CommandDevice(const DeviceParameters& parameters, Order order, std::vector<CommandQueue>& queues,
                size_t processes);
  void Add(size_t queue);

  // The queue has commands up to this one.
  void SetEnd(size_t queue, uint64_t last);

  // Time has come to `now`: what has been done until then. Returns the queue of which commands have retired,
  // if there is one. REQUIRES: `now` is not after next().
  std::optional<size_t> Settle(TimePoint now) {
    const Duration time = now - at_;
    at_ = now;
    if (doing_ != Doing::kRuns) return std::nullopt;
    Duration& left = queues_[running_].left;
    left -= time;
    if (left > Duration::zero()) return std::nullopt;
    Retire(-left);
    return running_;
  }
  // Something has changed since the last Dispatch, or has to.
  bool IsDue(TimePoint now) const { return changed_ || now >= next_; }
  // Decides what the device does next. Call it when it is due, after Settle.
  void Dispatch(TimePoint now);
  // When the device changes what it does by itself. REQUIRES: nothing has changed since the last Dispatch.
  TimePoint next() const { return next_; }

  // The scheduler's decisions take effect. REQUIRES: settled.
  void Hold(size_t queue);
  void Open(size_t queue);
  // The client's agent begins to set a slice.
  void SetSlice(int process, Duration slice, TimePoint now);

 private:
  enum class Doing : uint8_t { kNothing, kChanges, kRuns, kWaitsAtGate };
  struct Process {
    std::vector<size_t> busy;  // its queues that have work, in order: most have none most of the time
    Duration slice{};          // as set on the device; kNoSlice: it is off the device
    Duration wanted{};
    std::optional<size_t> last;  // the queue that ran last; at first, that of its queues that was added first
  };
  struct Call {
    size_t process;
    Duration slice;
    TimePoint begin;
    TimePoint end;
    bool stops;  // the device, while it lasts
  };

  struct Choice {
    std::optional<size_t> queue;  // none may run
    bool others = false;          // others may run as well
  };

  bool Sliced() const { return order_ == Order::kInTurn && parameters_.slice > Duration::zero(); }
  size_t GroupOf(const CommandQueue& queue) const {
    return Sliced() ? static_cast<size_t>(queue.process) : 0;
  }
  Duration SliceOf(const Process& process) const {
    return process.slice == kDriversSlice ? parameters_.slice : process.slice;
  }
  void Retire(Duration rest);
  void WorkChanged(size_t index);
  void Choose(TimePoint now);
  TimePoint Next() const;
  bool Wants(const Process& process) const;
  template <typename Is>
  bool AnyBusy(const Process& process, Is&& is) const;
  int64_t CommandsBetweenGates(const CommandQueue& queue) const;
  int64_t CommandsInFlight(const CommandQueue& queue) const;
  Duration GateOf(const CommandQueue& queue) const;
  Duration LengthOf(const CommandQueue& queue) const;
  uint64_t Together(const Process& process, uint64_t left) const;
  int ChooseProcess(TimePoint now);
  int ChooseOfSeveral(TimePoint now);
  bool IsBefore(size_t index, size_t other_index, size_t last) const;
  Choice ChooseQueue(const Process& process) const;
  void Run(Process& process, TimePoint now);
  void EndCalls(TimePoint now);
  bool Stopped(TimePoint now) const;

  const DeviceParameters& parameters_;
  Order order_;
  std::vector<CommandQueue>& queues_;
  std::vector<Process> processes_;
  std::deque<Call> calls_;

  bool changed_ = true;  // since the last Dispatch
  TimePoint next_ = kNever;
  Doing doing_ = Doing::kNothing;
  TimePoint at_{};                 // settled so far
  TimePoint change_end_ = kNever;  // kChanges
  size_t running_ = 0;             // kRuns: a queue,
  uint64_t until_ = 0;             // up to this command,
  Duration length_{};              // each so long;
  bool in_turn_ = false;           // others wait for their turn
  uint64_t turns_ = 0;             // that queues have had
  int on_ = -1;                    // the process that the device runs, or has run
  TimePoint slice_begun_{};
  bool contested_ = false;  // other processes want the device
};

}  // namespace xsched::sched::sim
