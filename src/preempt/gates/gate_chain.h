// The gates of one queue: they bound what is in flight, and hold the rest inside the driver.
//
//   driver's queue:   c1 c2 c3 c4 M  c5 c6 c7 c8 M [G] c9 … c12 M [G] c13 …
//                     '---- in flight (≤ limit) -'     '-- behind gates: accepted, not started --'
//
// A marker M reports that everything before it has retired. A gate G holds everything after it. There is a
// marker every batch. A gate is added when the limit is reached, when the queue is held (the tail gate), and
// every batch behind another gate. On out-of-order queues they are further apart where many commands have not
// finished. While the queue may run, Advance opens gates as commands retire, the front one first. If nothing
// retires for a second, it opens one gate each second all the same; with commands of seconds, one each 5 s at
// the latest.
//
// Thread-safe. A call of the driver may block, so the state has its own lock, which is never held during one:
// a launching thread that is blocked in the driver does not keep the agent from opening gates. Another lock
// keeps the driver's calls for appending in order. One thread at a time opens gates, and no other one waits
// for it: some drivers run commands, and functions of the program, in the call that opens a gate.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/fifo.h"
#include "base/mutex.h"
#include "hal/contract.h"
#include "preempt/gates/pace.h"

namespace xsched::preempt {

// The queue below the chain. Implemented over XHwQueueOps, and by tests.
class GateDriver {
 public:
  virtual bool AppendGate(uint64_t* gate) = 0;
  // False: it is still closed.
  virtual bool OpenGate(uint64_t gate) = 0;
  // Makes the driver go on after gates were opened.
  virtual void Flush() {}
  // Makes the driver report progress up to command number `upto`. False: it will not be reported.
  virtual bool AppendMarker(uint64_t upto) = 0;

 protected:
  ~GateDriver() = default;
};

class GateChain {
 public:
  // `closed` counts the closed gates, for launches that check without a lock.
  explicit GateChain(std::atomic<uint32_t>& closed) : closed_count_(closed) {}

  struct Limits {
    int64_t threshold;
    int64_t batch_size;
    Duration latency;
    int64_t least = 1;          // this many may be in flight, unless one alone takes longer than `latency`
    bool out_of_order = false;  // a marker costs the more time, the more has not finished
  };
  struct Now {
    uint64_t retired;
    bool hold;     // nothing more may start
    bool bounded;  // it may be held at any time: bound what is in flight
    bool tracked;  // others wait for it: its progress must become known from time to time
    TimePoint time;
    uint64_t launched = UINT64_MAX;  // if commands wait before their launch: the number of launched ones
  };

  // Command `number` (1, 2, …) is about to be enqueued.
  void BeforeLaunch(uint64_t number, const Now& now, const Limits& limits, GateDriver& driver);

  // For queues without gates: puts markers as BeforeLaunch does. True: the command must wait and call this
  // again.
  bool MarkBefore(uint64_t number, const Now& now, const Limits& limits, GateDriver& driver);

  // For queues without gates: puts a marker behind what has been launched, unless one is there.
  void MarkLaunched(const Now& now, GateDriver& driver);

  // Opens the gates that may be opened, unless another thread is opening gates. `submitted`: commands
  // enqueued so far.
  struct Advanced {
    int opened = 0;         // gates
    bool refused = false;   // the driver has not opened a gate: call it again later
    bool outdated = false;  // another thread has called it meanwhile: call it again at once
    bool operator==(const Advanced&) const = default;
  };
  Advanced Advance(uint64_t submitted, const Now& now, const Limits& limits, GateDriver& driver);

  // For a thread that must open none: true if Advance would open a gate now.
  bool IsDue(uint64_t submitted, const Now& now, const Limits& limits);

  // Commands up to `retired` have finished.
  void OnRetired(uint64_t retired, TimePoint now);

  // Commands up to `retired` count as finished, whenever they finish: they say nothing about the pace.
  void OnPresumed(uint64_t retired);

  // The usual time of a command; 0: not known yet.
  Duration pace();

  // True if there are closed gates, or a thread is opening the last one. Takes no lock. Exact for a thread
  // that was just notified of a retirement.
  bool HasClosed() const { return closed_count_.load(std::memory_order_acquire) != 0; }
  // The last command that is not behind a gate; `submitted` if no gate is closed.
  uint64_t OpenEnd(uint64_t submitted);

  // For a queue slot that is reused. Forgets gates that the driver has never opened.
  void Reset();
  void ResetAfterFork();

 private:
  struct Gate {
    uint64_t token;
    uint64_t after;  // the last command before it
  };

  struct Due {
    uint64_t marker;  // 0: none
    bool gate;
  };

  // How many commands there are between two markers, at least.
  static uint64_t Apart(int64_t batch, uint64_t unfinished, const Limits& limits);
  // How many commands may be in flight.
  int64_t InFlight(const Limits& limits) const REQUIRES(mutex_);
  // False: what is launched up to there is not reported.
  bool PutMarker(uint64_t upto, const Now& now, GateDriver& driver) REQUIRES(appending_);
  Due WhatIsDue(uint64_t number, const Now& now, const Limits& limits) REQUIRES(appending_);
  // Puts a marker if one is due; tells whether a gate is.
  bool Mark(uint64_t number, const Now& now, const Limits& limits, GateDriver& driver) REQUIRES(appending_);
  // True if the device may never retire what is in flight unless another gate opens.
  bool MayBeStuck(TimePoint now) const REQUIRES(mutex_);
  // Closed gates, but for one that is being opened.
  bool AnyClosed() REQUIRES(mutex_) { return closed_.size() > being_opened_; }
  // False: another thread opens gates, and does so again; or the queue is held.
  bool MayOpen(const Now& now) REQUIRES(mutex_);
  void NoteHold(const Now& now) REQUIRES(mutex_);
  bool FrontMayOpen(uint64_t submitted, const Now& now, const Limits& limits) REQUIRES(mutex_);
  // Chooses the front gate, if it may be opened. Then the driver opens it, and EndOpening follows.
  bool BeginOpening(uint64_t submitted, const Now& now, const Limits& limits, uint64_t* gate);
  void EndOpening(bool opened);

  std::atomic<uint32_t>& closed_count_;

  // Held around calls of the driver.
  Mutex<LockRank::kGateAppending> appending_;
  TimePoint no_gates_until_ GUARDED_BY(appending_){};  // the driver has refused one
  bool warned_ GUARDED_BY(appending_) = false;

  Mutex<LockRank::kGateChain> mutex_;
  Fifo<Gate> closed_ GUARDED_BY(mutex_);
  bool opening_ GUARDED_BY(mutex_) = false;   // a thread opens gates
  bool outdated_ GUARDED_BY(mutex_) = false;  // and another one would have
  // 1 while the driver opens the front gate. What is launched meanwhile may not rely on that gate.
  size_t being_opened_ GUARDED_BY(mutex_) = 0;
  uint64_t last_marker_ GUARDED_BY(mutex_) = 0;
  TimePoint last_marker_at_ GUARDED_BY(mutex_){};
  uint64_t seen_retired_ GUARDED_BY(mutex_) = 0;
  // The device cannot have begun with the commands in flight before this time.
  TimePoint busy_since_ GUARDED_BY(mutex_){};
  // Since then the queue has had gates, and nothing has retired and no gate opened. Later by the time for
  // which the queue was held meanwhile.
  TimePoint stands_since_ GUARDED_BY(mutex_){};
  std::optional<TimePoint> held_since_ GUARDED_BY(mutex_);  // a thread that opens gates has seen it held
  Pace pace_ GUARDED_BY(mutex_);
};

}  // namespace xsched::preempt
