// The gates of one queue: they bound what is in flight, and hold the rest inside the driver.
//
//   driver's queue:   c1 c2 c3 c4 M  c5 c6 c7 c8 M [G] c9 … c12 M [G] c13 …
//                     '---- in flight (≤ limit) -'     '-- behind gates: accepted, not started --'
//
// A marker M reports that all before it has retired; a gate G holds all after it. Markers come every batch; a
// gate comes when the limit is reached, when the queue is told to hold (the tail gate), and every batch
// behind another gate. Advance opens gates, front first, as commands retire, while the queue may run.
//
// Thread-safe. A call of the driver may block, so the state has a lock of its own, which is never held around
// one: a launching thread that stands in the driver does not keep the agent from opening gates. Two more
// locks keep the driver's calls in order, one for what is appended and one for what is opened.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "base/fifo.h"
#include "base/mutex.h"
#include "hal/contract.h"
#include "preempt/gates/if_busy.h"
#include "preempt/gates/pace.h"

namespace xsched::preempt {

// What the chain asks of the queue below it. Implemented over XHwQueueOps, and by tests.
class GateDriver {
 public:
  virtual bool AppendGate(uint64_t* gate) = 0;
  virtual void OpenGate(uint64_t gate) = 0;
  // Progress up to command number `upto` is to be reported. False: it will not be.
  virtual bool AppendMarker(uint64_t upto) = 0;

 protected:
  ~GateDriver() = default;
};

class GateChain {
 public:
  // `closed` counts the closed gates, for launches that look without a lock.
  explicit GateChain(std::atomic<uint32_t>& closed) : closed_count_(closed) {}

  struct Limits {
    int64_t threshold;
    int64_t batch_size;
    Duration latency;
  };
  struct Now {
    uint64_t retired;
    bool hold;     // nothing more may start
    bool bounded;  // it may be told to hold at any time: keep what is in flight small
    bool tracked;  // others wait for it: its progress must be known now and then
    TimePoint time;
    uint64_t launched = UINT64_MAX;  // commands that are in the driver's hands for sure, where some wait
  };

  // Command `number` (1, 2, …) is about to be enqueued.
  void BeforeLaunch(uint64_t number, const Now& now, const Limits& limits, GateDriver& driver);

  // For queues without gates: puts markers as BeforeLaunch does. True: the command has to wait, until this
  // says otherwise.
  bool MarkBefore(uint64_t number, const Now& now, const Limits& limits, GateDriver& driver);

  // For queues without gates: puts a marker behind what has been launched, unless one is there.
  void MarkLaunched(const Now& now, GateDriver& driver);

  // Opens what may be opened. `submitted`: commands enqueued so far. Returns the number of gates opened, or
  // kBusy: another thread is opening gates, and the caller did not want to wait for it.
  static constexpr int kBusy = -1;
  int Advance(uint64_t submitted, const Now& now, const Limits& limits, GateDriver& driver,
              IfBusy if_busy = IfBusy::kWait);

  // Commands up to `retired` have finished.
  void OnRetired(uint64_t retired, TimePoint now);

  // Are there closed gates? Without a lock; exact for who has just been told of a retirement.
  bool HasClosed() const { return closed_count_.load(std::memory_order_acquire) != 0; }
  // The last command that is not behind a gate; `submitted` if no gate is closed.
  uint64_t OpenEnd(uint64_t submitted);

  // For a queue slot that is used again. REQUIRES: no gate is closed.
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

  void PutMarker(uint64_t upto, const Now& now, GateDriver& driver);
  Due WhatIsDue(uint64_t number, const Now& now, const Limits& limits);
  bool Mark(uint64_t number, const Now& now, const Limits& limits, GateDriver& driver);
  bool PopOpenable(uint64_t submitted, const Now& now, const Limits& limits, Gate* gate);

  Mutex appending_;  // taken before mutex_; held around calls of the driver
  Mutex opening_;    // taken before mutex_; held around calls of the driver
  Mutex mutex_;      // guards what follows
  Fifo<Gate> closed_;
  std::atomic<uint32_t>& closed_count_;
  uint64_t last_marker_ = 0;
  TimePoint last_marker_at_{};
  uint64_t seen_retired_ = 0;
  TimePoint busy_since_{};  // the device cannot have begun on what is in flight before this
  Pace pace_;
  bool gates_failed_ = false;  // under appending_
};

}  // namespace xsched::preempt
