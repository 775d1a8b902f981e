// How much memory of a device this process may take, and what it has, in two accounts: that of its program,
// which it may share with other processes (ipc/memory_account.h), and that of its tenant, which its server
// may keep (ipc/tenant_memory.h). The first one also has the sums of this process. Lock-free, but for Open,
// JoinTenant and LeaveTenant.
#pragma once

#include <atomic>
#include <cstdint>

#include "ipc/memory_account.h"
#include "ipc/tenant_memory.h"
#include "preempt/scheduling/control_memory.h"

namespace xsched::preempt {

class MemoryLimit {
 public:
  // Where the server reads it.
  constexpr explicit MemoryLimit(ControlMemory& memory) : memory_(memory) {}

  // Not thread-safe. A null path: an account of this process alone, which is also used if the file cannot be.
  // ipc::kNoMemoryLimit: the process only counts, for its tenant. False: nothing is counted then.
  bool Open(const char* path, uint64_t limit);
  bool opened() const { return opened_.load(std::memory_order_acquire); }
  // In a forked child, which still has its parent's slot.
  void ForgetAfterFork() { has_parents_slot_.store(true, std::memory_order_relaxed); }
  // Makes sure that the slot is this process's, also in a forked child. Not thread-safe: nobody else counts
  // yet. False: there is no free slot.
  bool TakeOwnSlot();

  // ---- the tenant's account. One caller at a time ----
  // The server has given it. Does nothing after GiveUp.
  void JoinTenant(int memfd, uint32_t slot);
  // The server has accepted this process: it gives no account any more, unless it changes the tenant.
  void Welcomed();
  // The server is gone, or the process is a forked child.
  void LeaveTenant();
  // Nothing limits this process: no program's account, and its server has said that it limits no tenant. Then
  // it need not count.
  bool IsPointless() const {
    return !of_program_.load(std::memory_order_relaxed) && no_tenant_.load(std::memory_order_relaxed);
  }
  // It does not count from now on, so no account of a tenant would be right.
  void GiveUp() { gave_up_.store(true); }

  // REQUIRES for what follows: open, and TakeOwnSlot. As in ipc::MemoryAccount.
  int Device(XDevice device) { return account_.Device(device); }
  bool Take(int device, uint64_t bytes);
  void Count(int device, uint64_t bytes) {
    account_.Count(device, bytes);
    Report(device);
  }
  void GiveBack(int device, uint64_t bytes) {
    account_.GiveBack(device, bytes);
    Report(device);
  }
  // The lesser of both.
  uint64_t limit() const;
  // What both leave, by all of their processes that live.
  uint64_t Left(int device);
  // Of all devices.
  void ReportAll();

 private:
  bool TryTake(int device, uint64_t bytes);
  // To whoever else counts it.
  void Report(int device);

  ControlMemory& memory_;
  ipc::MemoryAccount account_;
  ipc::TenantMemoryShare tenant_;
  std::atomic<bool> opened_{false};
  std::atomic<bool> of_program_{false};
  std::atomic<bool> has_parents_slot_{false};
  bool joined_ = false;                 // at this server
  std::atomic<bool> no_tenant_{false};  // the last server that has accepted this process has said so
  std::atomic<bool> gave_up_{false};
};

}  // namespace xsched::preempt
