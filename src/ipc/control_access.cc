#include "ipc/control_access.h"

namespace xsched::ipc {

void WriteWords(ControlBlock& block, const SchedulerWords& words) {
  WriteWords(block, words, [] {});
}

bool HasWords(const ControlBlock& block, const SchedulerWords& words) {
  return block.gate.load(std::memory_order_relaxed) == words.gate &&
         block.flags.load(std::memory_order_relaxed) == words.flags;
}

bool RestoreWords(ControlBlock& block, const SchedulerWords& words) {
  if (HasWords(block, words)) return false;
  WriteWords(block, words);
  return true;
}

// seq_cst, against a launch that counts its command, reads the flags, and then checks whether the agent is
// watching: either the agent sees the command here, or the launch sees that the agent does not watch
// (Agent::Tick).
bool AnythingTaken(const ControlBlock& block) {
  if ((block.flags.load(std::memory_order_seq_cst) & ~kFlagCounted) == 0 &&
      block.gate.load(std::memory_order_seq_cst) == kGateRun) {
    return false;
  }
  return block.retired.load(std::memory_order_seq_cst) < block.submitted.load(std::memory_order_seq_cst);
}

void ForceOpen(ControlBlock& block, bool open) { block.open.store(open ? 1 : 0, std::memory_order_seq_cst); }

void SetPause(ControlBlock& block, bool pause) {
  block.pause.store(pause ? 1 : 0, std::memory_order_seq_cst);
}

void AskProgress(ControlBlock& block) { block.query.fetch_add(1, std::memory_order_release); }

Progress ReadProgress(const ControlBlock& block) {
  Progress progress;
  // `retired` first: it follows `submitted`, so the pair never shows more retired than submitted.
  progress.retired = block.retired.load(std::memory_order_acquire);
  progress.submitted = block.submitted.load(std::memory_order_acquire);
  progress.moved = block.moved.load(std::memory_order_relaxed);
  progress.drained = block.drained.load(std::memory_order_relaxed);
  progress.found_idle = block.found_idle.load(std::memory_order_relaxed);
  return progress;
}

bool RaiseRetired(ControlBlock& block, uint64_t number) {
  uint64_t seen = block.retired.load(std::memory_order_relaxed);
  do {
    if (seen >= number) return false;
  } while (!block.retired.compare_exchange_weak(seen, number, std::memory_order_seq_cst));
  return true;
}

void CountMove(ControlBlock& block) { block.moved.fetch_add(1, std::memory_order_relaxed); }

void CountDrain(ControlBlock& block) { block.drained.fetch_add(1, std::memory_order_relaxed); }

void CountFoundIdle(ControlBlock& block) { block.found_idle.fetch_add(1, std::memory_order_relaxed); }

namespace {
constexpr uint64_t kBurstEnded = 1;

bool GoesOn(uint64_t burst_at) { return burst_at != 0 && (burst_at & kBurstEnded) == 0; }
}  // namespace

// The accesses to burst_at are seq_cst, against CountSubmitted and ReadSubmitted (FlowState::EndBurst).
void BeginBurst(ControlBlock& block, TimePoint now) {
  uint64_t former = block.burst_at.load(std::memory_order_seq_cst);
  if (GoesOn(former)) return;
  const auto at = static_cast<uint64_t>(now.time_since_epoch().count());
  // If this fails, another launch has begun it.
  block.burst_at.compare_exchange_strong(former, at & ~kBurstEnded, std::memory_order_seq_cst);
}

// The end of a burst that began before the queue was recorded is counted, and its length is not.
void EndBurst(ControlBlock& block, TimePoint now) {
  const auto at = static_cast<uint64_t>(now.time_since_epoch().count());
  const uint64_t began = block.burst_at.fetch_or(kBurstEnded, std::memory_order_seq_cst);
  if (GoesOn(began) && at > began) block.busy_ns.fetch_add(at - began, std::memory_order_relaxed);
  block.bursts.fetch_add(1, std::memory_order_release);
}

void DropBurst(ControlBlock& block) {
  if (GoesOn(block.burst_at.load(std::memory_order_relaxed)))
    block.burst_at.fetch_or(kBurstEnded, std::memory_order_relaxed);
}

// `bursts` first, for then `busy_ns` has all of them.
Bursts ReadBursts(const ControlBlock& block) {
  constexpr auto kLongest = static_cast<uint64_t>(Duration::max().count());
  Bursts bursts;
  bursts.ended = block.bursts.load(std::memory_order_acquire);
  bursts.busy = Duration(block.busy_ns.load(std::memory_order_relaxed) & kLongest);
  const uint64_t burst_at = block.burst_at.load(std::memory_order_relaxed);
  bursts.began = TimePoint(Duration(burst_at & kLongest & ~kBurstEnded));
  bursts.goes_on = GoesOn(burst_at);
  return bursts;
}

Wait ReadWait(const DependencySlot& slot) {
  Wait wait;
  wait.until = slot.until.load(std::memory_order_acquire);
  wait.queue = slot.queue.load(std::memory_order_relaxed);
  wait.generation = slot.generation.load(std::memory_order_relaxed);
  return wait;
}

void WriteWait(DependencySlot& slot, const Wait& wait) {
  slot.queue.store(wait.queue, std::memory_order_relaxed);
  slot.generation.store(wait.generation, std::memory_order_relaxed);
  // Last, with release: a reader that sees `until` also sees the queue that it belongs to.
  slot.until.store(wait.until, std::memory_order_release);
}

void ResetBlock(Segment& segment, uint32_t index) {
  ControlBlock& block = segment.blocks[index];
  WriteWords(block, kOpenWords);
  block.query.store(0, std::memory_order_relaxed);
  block.submitted.store(0, std::memory_order_relaxed);
  block.open.store(0, std::memory_order_relaxed);
  block.pause.store(0, std::memory_order_relaxed);
  block.passed.store(0, std::memory_order_relaxed);
  block.moved.store(0, std::memory_order_relaxed);
  block.drained.store(0, std::memory_order_relaxed);
  block.found_idle.store(0, std::memory_order_relaxed);
  block.bursts.store(0, std::memory_order_relaxed);
  block.busy_ns.store(0, std::memory_order_relaxed);
  block.burst_at.store(0, std::memory_order_relaxed);
  block.retired.store(0, std::memory_order_release);
  for (DependencySlot& slot : segment.depends[index]) slot.until.store(0, std::memory_order_relaxed);
}

MemoryWords ReadMemory(const Segment& segment, uint64_t device) {
  MemoryWords words{0, segment.header.memory_limit.load(std::memory_order_relaxed)};
  if (words.limit == 0) return words;
  for (const MemoryUse& use : segment.header.memory) {
    if (use.device.load(std::memory_order_acquire) != device) continue;
    words.used = use.used.load(std::memory_order_relaxed);
    break;
  }
  return words;
}

}  // namespace xsched::ipc
