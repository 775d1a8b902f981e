// How control blocks are written and read: which words, in which order. The scheduler's end and the client's
// end both come through here; control_block.h has the layout, docs/model.md what the orders are for.
//
//   the scheduler writes  gate and flags (WriteWords), query (AskProgress)
//   the scheduler reads   the counters (ReadProgress), the waits (ForEachWait)
//   the client writes     gate and flags of a queue that nobody schedules (WriteWords with kOpenWords), open
//                         (ForceOpen), moved (CountMove), a whole block for a new queue (ResetBlock), the
//                         waits (WriteWait)
//   the client reads      whether something is taken from a queue (AnythingTaken)
//
// Not here: the counters' own writers, which are the hot path (preempt/queue/xqueue.cc) and the device.
#pragma once

#include <cstdint>

#include "ipc/control_block.h"

namespace xsched::ipc {

// What a scheduler says of a queue.
struct SchedulerWords {
  uint16_t gate = kGateRun;
  uint32_t flags = 0;

  bool held() const { return gate == kGateHold; }
  bool tracked() const { return (flags & kFlagTracked) != 0; }
  bool operator==(const SchedulerWords&) const = default;
};

// What stands where nobody schedules, and before a scheduler has decided anything.
inline constexpr SchedulerWords kOpenWords{};

// `Control` is sched::Control, which this layer does not know.
template <typename Control>
constexpr SchedulerWords WordsOf(const Control& control) {
  SchedulerWords words;
  words.gate = control.run ? kGateRun : kGateHold;
  words.flags = (control.tracked ? kFlagTracked : 0) | (control.gated ? kFlagGated : 0) |
                (control.sliced ? kFlagSliced : 0);
  return words;
}

// ---- gate and flags ----

// `between()` is called after the flags are stored and before the gate is.
template <typename Between>
void WriteWords(ControlBlock& block, const SchedulerWords& words, Between&& between) {
  // Flags first. Before a gate closes, they keep the agent awake, which asks whether its scheduler lives.
  // When a scheduler leaves, a launch that still sees the closed gate must not take the queue for scheduled.
  block.flags.store(words.flags, std::memory_order_release);
  between();
  block.gate.store(words.gate, std::memory_order_release);
}
void WriteWords(ControlBlock& block, const SchedulerWords& words);

// Do the words stand there? False: somebody else has written, too.
bool HasWords(const ControlBlock& block, const SchedulerWords& words);
// Writes them unless they stand there. True: they did not.
bool RestoreWords(ControlBlock& block, const SchedulerWords& words);

// Has a scheduler taken something from the queue, or may it take something at once, while the queue has work?
// From a queue without work nothing is taken.
bool AnythingTaken(const ControlBlock& block);

// Opens the gates that devices look at, whatever the scheduler says; or leaves them to it again.
void ForceOpen(ControlBlock& block, bool open);

// ---- progress ----

// Asks the client to bring `retired` up to date.
void AskProgress(ControlBlock& block);

struct Progress {
  uint64_t submitted;
  uint64_t retired;
  uint32_t moved;
};
// Each word is read once: it may change at any time, and a client may write anything.
Progress ReadProgress(const ControlBlock& block);

// The client's end: commands have retired, though `retired` does not show it.
void CountMove(ControlBlock& block);

// ---- waits for other queues of the process ----

struct Wait {
  uint32_t queue = 0;       // index of the other queue's control block
  uint32_t generation = 0;  // which of the queues that have had that block; 0: not said
  uint64_t until = 0;       // the other queue has retired its command of this number; 0: there is no wait
};

// Of an XQueueHandle: which of the queues that have had its block it names. Never 0 for a handle.
constexpr uint32_t HandleGeneration(uint64_t handle) { return static_cast<uint32_t>(handle >> 24); }

// Does the wait mean the queue with `handle` (0: not known), which has the block now?
constexpr bool MeansQueue(const Wait& wait, uint64_t handle) {
  return wait.generation == 0 || handle == 0 || wait.generation == HandleGeneration(handle);
}

// `queue` may be no index at all: the other end can write here as well.
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

// Makes block `index` that of a queue which has done nothing yet, and which nobody schedules.
void ResetBlock(Segment& segment, uint32_t index);

}  // namespace xsched::ipc
