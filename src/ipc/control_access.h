// Writes and reads control blocks, in the right order. Both the scheduler and the client use these functions.
// control_block.h has the layout, and docs/model.md explains the orders.
//
//   the scheduler writes  gate and flags (WriteWords), query (AskProgress)
//   the scheduler reads   the counters (ReadProgress, ReadBursts), the waits (ForEachWait)
//   the client writes     gate and flags of an unscheduled queue (RestoreWords with kOpenWords), open
//                         (ForceOpen), pause (SetPause), submitted (CountSubmitted), retired (RaiseRetired),
//                         moved (CountMove), drained (CountDrain), found_idle (CountFoundIdle), the bursts
//                         (BeginBurst, EndBurst), the waits (WriteWait), a whole block for a new queue
//                         (ResetBlock)
//   the client reads      gate (ClosesGate), flags (ReadFlags), query (ReadQuery), the counters
//                         (ReadSubmitted, ReadRetired, ReadPassed), the waits (ReadWait), whether something
//                         is taken from a queue (AnythingTaken)
//
// A device reads gate, open and pause, and writes retired and passed, by their addresses
// (preempt/gates/device_gates.cc).
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/handle.h"
#include "ipc/control_block.h"

namespace xsched::ipc {

// What a scheduler sets for a queue.
struct SchedulerWords {
  uint16_t gate = kGateRun;
  uint32_t flags = 0;

  bool held() const { return gate == kGateHold; }
  bool tracked() const { return (flags & kFlagTracked) != 0; }
  bool counted() const { return (flags & kFlagCounted) != 0; }
  // The client reports to its scheduler, and its agent watches that this one lives.
  bool scheduled() const { return (flags & ~kFlagCounted) != 0; }
  bool operator==(const SchedulerWords&) const = default;
};

// The words of an unscheduled queue, and of a queue before the scheduler's first decision.
inline constexpr SchedulerWords kOpenWords{};

// `Control` is sched::Control, which this layer does not know.
template <typename Control>
constexpr SchedulerWords WordsOf(const Control& control) {
  SchedulerWords words;
  words.gate = control.run ? kGateRun : kGateHold;
  words.flags = (control.tracked ? kFlagTracked : 0) | (control.gated ? kFlagGated : 0) |
                (control.sliced ? kFlagSliced : 0) | (control.charges_overruns ? kFlagChargesOverruns : 0) |
                (control.charges_overruns && !control.keeps_busy ? kFlagStopsSoon : 0);
  return words;
}

// ---- gate and flags ----

// `between()` is called after the flags are stored and before the gate is.
template <typename Between>
void WriteWords(ControlBlock& block, const SchedulerWords& words, Between&& between) {
  // Flags first. Before a gate closes, they keep the agent awake, and it checks that its scheduler is alive.
  // When a scheduler leaves, a launch that still sees the closed gate must not take the queue for scheduled.
  block.flags.store(words.flags, std::memory_order_release);
  between();
  block.gate.store(words.gate, std::memory_order_release);
}
void WriteWords(ControlBlock& block, const SchedulerWords& words);

// True if the block has these words. False: another writer has changed them.
bool HasWords(const ControlBlock& block, const SchedulerWords& words);
// Writes the words if the block has others. True: it had.
bool RestoreWords(ControlBlock& block, const SchedulerWords& words);

// True if the queue has work, and a scheduler has taken something from it or may do so at once. Nothing is
// taken from a queue without work.
bool AnythingTaken(const ControlBlock& block);

// Opens the device-side gates, whatever the scheduler says, or leaves them to the scheduler again.
void ForceOpen(ControlBlock& block, bool open);
// Lets the device wait at pausable gates, or go on.
void SetPause(ControlBlock& block, bool pause);

// ---- progress ----

// Asks the client to update `retired`.
void AskProgress(ControlBlock& block);

struct Progress {
  uint64_t submitted;
  uint64_t retired;
  uint32_t moved;
  uint32_t drained;
  uint32_t found_idle;
};
// Each word is read once: it may change at any time, and a client may write anything.
Progress ReadProgress(const ControlBlock& block);

// ---- the client's side of progress; on every launch, so inline ----

// A launch begins. Returns its number: 1, 2, …
inline uint64_t CountSubmitted(ControlBlock& block) {
  // seq_cst, against RaiseRetired: either the launch sees that the queue was idle, or the thread that makes
  // it idle sees the command.
  return block.submitted.fetch_add(1, std::memory_order_seq_cst) + 1;
}
inline uint64_t ReadSubmitted(const ControlBlock& block) {
  return block.submitted.load(std::memory_order_seq_cst);
}
inline uint64_t ReadRetired(const ControlBlock& block) {
  return block.retired.load(std::memory_order_seq_cst);
}
// Commands up to `number` have finished. False: that was known.
bool RaiseRetired(ControlBlock& block, uint64_t number);
// Commands have retired, although `retired` does not show it.
void CountMove(ControlBlock& block);
// The queue is held, and the device has nothing more of it.
void CountDrain(ControlBlock& block);
// The scheduler asked, and all that was launched has retired. The program had not noticed.
void CountFoundIdle(ControlBlock& block);

// A burst begins or ends; while the queue reports or is recorded. One that goes on does not begin again: the
// device may have been idle, and nobody noticed.
void BeginBurst(ControlBlock& block, TimePoint now);
void EndBurst(ControlBlock& block, TimePoint now);
// The one that goes on ends, and nobody counts bursts any more.
void DropBurst(ControlBlock& block);
struct Bursts {
  uint32_t ended = 0;    // their number, which wraps
  Duration busy{};       // the sum of their lengths
  TimePoint began{};     // the last one, which may have ended
  bool goes_on = false;  // the last one; its end is not among those that have ended
};
// A client may write anything, and may have another clock.
Bursts ReadBursts(const ControlBlock& block);

// The words that the scheduler wrote last.
inline uint32_t ReadFlags(const ControlBlock& block) { return block.flags.load(std::memory_order_acquire); }
inline bool ClosesGate(const ControlBlock& block) {
  return block.gate.load(std::memory_order_acquire) == kGateHold;
}
// Changes when the scheduler has asked for progress.
inline uint32_t ReadQuery(const ControlBlock& block) { return block.query.load(std::memory_order_acquire); }
// For a queue that begins. REQUIRES: no device has the block.
inline void NoGatePassed(ControlBlock& block) { block.passed.store(kNonePassed, std::memory_order_relaxed); }
// The device has passed the gate behind this command; kNonePassed: no gate.
inline uint64_t ReadPassed(const ControlBlock& block) { return block.passed.load(std::memory_order_acquire); }

// ---- waits for other queues of the process ----

struct Wait {
  uint32_t queue = 0;       // index of the other queue's control block
  uint32_t generation = 0;  // of the other queue, because blocks are reused; 0: not given
  uint64_t until = 0;  // the wait ends when the other queue has retired this command; 0: there is no wait
};

// True if the wait is for the queue with `handle` (0: not known), which has the block now.
constexpr bool MeansQueue(const Wait& wait, uint64_t handle) {
  return wait.generation == 0 || handle == 0 || wait.generation == HandleGeneration(handle);
}

// `queue` may be an invalid index, because the other end can write here as well.
Wait ReadWait(const DependencySlot& slot);
void WriteWait(DependencySlot& slot, const Wait& wait);

// Calls visit(wait) for each wait of queue `index` that names a control block.
template <typename Visit>
void ForEachWait(const Segment& segment, uint32_t index, Visit&& visit) {
  for (const DependencySlot& slot : segment.depends[index]) {
    const Wait wait = ReadWait(slot);
    if (wait.until != 0 && wait.queue < kMaxQueues) visit(wait);
  }
}

// ---- a new queue ----

// Resets block `index` for a new queue, which is unscheduled.
void ResetBlock(Segment& segment, uint32_t index);

// The memory that the client has taken of a device, and what its program may take, by its own account.
struct MemoryWords {
  uint64_t used = 0;
  uint64_t limit = 0;  // 0: there is none
};
MemoryWords ReadMemory(const Segment& segment, uint64_t device);

}  // namespace xsched::ipc
