#include "preempt/scheduling/control_memory.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "base/handle.h"
#include "base/log.h"
#include "base/no_cancellation.h"
#include "ipc/control_access.h"

namespace xsched::preempt {

Result<> ControlMemory::Create() {
  Result<ipc::OwnedSegment> segment = ipc::CreateSegment();
  if (!segment) return segment.error();
  UniqueFd agent_bell(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  UniqueFd scheduler_bell(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!agent_bell || !scheduler_bell) return Error::FromErrno(errno, "cannot make an eventfd");
  mapping_ = std::move(segment->mapping);
  memfd_ = GuardedFd(std::move(segment->memfd));
  agent_bell_fd_ = GuardedFd(std::move(agent_bell));
  scheduler_bell_fd_ = GuardedFd(std::move(scheduler_bell));
  agent_bell_.store(&agent_bell_fd_, std::memory_order_release);
  segment_.store(mapping_.get(), std::memory_order_release);
  return {};
}

void ControlMemory::ForgetAfterFork() {
  if (!created()) return;
  // Our duplicates of the parent's descriptors would keep its connection open after its end.
  agent_bell_.store(nullptr, std::memory_order_relaxed);
  scheduler_bell_.store(nullptr, std::memory_order_relaxed);
  memfd_.Reset();
  agent_bell_fd_.Reset();
  scheduler_bell_fd_.Reset();
  lost_.store(false, std::memory_order_relaxed);
  // Private memory replaces the control blocks. With flags of 0, every queue is unscheduled.
  void* own = mmap(mapping_.get(), ipc::kSegmentSize, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  if (own == MAP_FAILED) XSCHED_WARN("a forked process still counts its launches with its parent's");
  mapping_.Forget();
  segment_.store(nullptr, std::memory_order_relaxed);
}

void ControlMemory::UseBellOf(Scheduler scheduler) {
  scheduler_bell_.store(scheduler == Scheduler::kAgents ? &agent_bell_fd_ : &scheduler_bell_fd_,
                        std::memory_order_release);
}

// ---- control blocks ----

ipc::ControlBlock* ControlMemory::ResetBlock(uint32_t index) {
  ipc::ResetBlock(segment(), index);
  return &segment().blocks[index];
}

void ControlMemory::OpenControls() {
  for (uint32_t i = 0; i < queues_.end_of_used(); ++i) {
    ipc::RestoreWords(segment().blocks[i], ipc::kOpenWords);
  }
}

bool ControlMemory::AnythingTaken() const {
  for (uint32_t i = 0; i < queues_.end_of_used(); ++i) {
    if (ipc::AnythingTaken(segment().blocks[i])) return true;
  }
  return false;
}

bool ControlMemory::HasPassed(const ipc::Wait& wait) const {
  // The server can write here as well, so an index must be checked before use.
  if (wait.until == 0 || wait.queue >= ipc::kMaxQueues) return true;
  const XQueueHandle there = queues_.HandleAt(wait.queue);
  return there == 0 || !ipc::MeansQueue(wait, there) ||
         ipc::ReadRetired(segment().blocks[wait.queue]) >= wait.until;
}

bool ControlMemory::AddWait(const XQueue& waiter, const XQueue& owner, uint64_t until) {
  if (!created() || owner.retired() >= until) return false;
  ipc::DependencySlot* chosen = nullptr;
  for (ipc::DependencySlot& slot : segment().depends[waiter.index()]) {
    const ipc::Wait old = ipc::ReadWait(slot);
    const bool passed = HasPassed(old);
    const bool same_owner = old.queue == owner.index();
    if (same_owner && !passed && old.until >= until) return false;
    if (same_owner || passed) chosen = &slot;
    if (same_owner && !passed) break;
  }
  // If all four are used for other queues, the scheduler's watchdog must end the wait.
  if (chosen == nullptr) return false;
  ipc::WriteWait(*chosen, {owner.index(), HandleGeneration(owner.id()), until});
  return true;
}

void ControlMemory::ReportMemory(int number, XDevice device, uint64_t limit, uint64_t used) {
  ipc::Segment* segment = segment_.load(std::memory_order_acquire);
  if (segment == nullptr || number >= ipc::kMaxMemoryUses) return;
  ipc::MemoryUse& use = segment->header.memory[number];
  use.used.store(used, std::memory_order_relaxed);
  use.device.store(device, std::memory_order_release);
  segment->header.memory_limit.store(limit, std::memory_order_relaxed);
}

// ---- bells ----

void ControlMemory::RingScheduler(uint32_t index) {
  ipc::Segment* segment = segment_.load(std::memory_order_acquire);
  const GuardedFd* bell = scheduler_bell_.load(std::memory_order_acquire);
  if (segment == nullptr || bell == nullptr) return;
  if (!bell->Intact()) return Lose();
  ipc::RingScheduler(*segment, index, bell->get());
}

void ControlMemory::RingAgent() {
  const GuardedFd* bell = agent_bell_.load(std::memory_order_acquire);
  if (bell == nullptr) return;
  if (!bell->Intact()) return Lose();
  const NoCancellation with_what_the_caller_holds;
  const uint64_t one = 1;
  // If the counter is full (EAGAIN), the bell has rung already.
  [[maybe_unused]] ssize_t written = write(bell->get(), &one, sizeof one);
}

void ControlMemory::SilenceAgent() {
  if (!agent_bell_fd_.Intact()) return;
  uint64_t count;
  [[maybe_unused]] ssize_t bytes = read(agent_bell_fd_.get(), &count, sizeof count);
}

bool ControlMemory::Intact() {
  if (!lost() && agent_bell_fd_.Intact() && scheduler_bell_fd_.Intact() && memfd_.Intact()) return true;
  Lose();
  return false;
}

void ControlMemory::Lose() {
  if (lost_.exchange(true, std::memory_order_seq_cst)) return;
  state_.SetScheduled(false);
  for (uint32_t i = 0; i < queues_.end_of_used(); ++i) ipc::ForceOpen(segment().blocks[i], true);
}

}  // namespace xsched::preempt
