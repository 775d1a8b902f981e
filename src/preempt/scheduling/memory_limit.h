// How much memory of a device this process may take, and what it has: its account, which it may share with
// the other processes of its program (ipc/memory_account.h). Lock-free, but for Open.
#pragma once

#include <atomic>
#include <cstdint>

#include "ipc/memory_account.h"
#include "preempt/scheduling/control_memory.h"

namespace xsched::preempt {

class MemoryLimit {
 public:
  // Where the server reads it.
  constexpr explicit MemoryLimit(ControlMemory& memory) : memory_(memory) {}

  // Not thread-safe. A null path: an account of this process alone, which is also used if the file cannot be.
  // False: there is no limit then.
  bool Open(const char* path, uint64_t limit);
  // In a forked child, which still has its parent's slot. It takes one of its own when it is asked next.
  void ForgetAfterFork() { has_parents_slot_.store(true, std::memory_order_relaxed); }
  // False: there is none any more.
  bool HasSlot() { return !has_parents_slot_.load(std::memory_order_relaxed) || LeaveParentsSlot(); }

  // REQUIRES for what follows: open, and HasSlot. As in ipc::MemoryAccount.
  int Device(XDevice device) { return account_.Device(device); }
  bool Take(int device, uint64_t bytes) { return account_.Take(device, bytes) && Report(device); }
  void Count(int device, uint64_t bytes) {
    account_.Count(device, bytes);
    Report(device);
  }
  void GiveBack(int device, uint64_t bytes) {
    account_.GiveBack(device, bytes);
    Report(device);
  }
  uint64_t limit() const { return account_.limit(); }
  // By all processes of the program that live.
  uint64_t UsedTogether(int device) {
    account_.DropEnded();
    return account_.Together(device);
  }
  // Of all devices.
  void ReportAll();

 private:
  bool LeaveParentsSlot();
  bool Report(int device) {
    memory_.ReportMemory(device, account_.device(device), account_.limit(), account_.Own(device));
    return true;
  }

  ControlMemory& memory_;
  ipc::MemoryAccount account_;
  std::atomic<bool> has_parents_slot_{false};
};

}  // namespace xsched::preempt
