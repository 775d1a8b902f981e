// The memory that the processes of one tenant have of devices, and how much they may have: an account in
// shared memory. The server makes it, and passes it to each process of the tenant with the number of a slot
// (kTenantMemory). Each process writes only its own slot. What all have together is the sum of the slots, so
// nothing can drift, and no allocation asks the server.
//
//   table  limit                            [server] bytes of each device, for all processes together
//          slots_in_use                     [server] those behind have no owner
//          devices[kMaxMemoryDevices]       XDevice of each number
//   slot   in_use                           [server]
//          used[kMaxMemoryDevices]          [process] bytes; the server sets them to 0 for a new owner
//
// What gives memory back. The server knows when a process ends, because its connection does; its slot then
// counts no more. A process without a server, or whose server hangs, has left the account, and has no limit:
// who else has ended by then, nobody knows. The next server gets the sums that the process has kept for
// itself.
//
// Ordering. A process first writes its own slot, then reads all (both seq_cst). Of two that ask at the same
// time, at least one sees the other. So together they never have more than the limit.
//
// A process of the tenant can write anything here. That is its own tenant's account. The server and other
// tenants read nothing of it but numbers that are shown.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/result.h"
#include "ipc/memory_account.h"
#include "xsched/types.h"

namespace xsched::ipc {

inline constexpr uint64_t kNoMemoryLimit = UINT64_MAX;

struct alignas(64) TenantMemorySlot {
  std::atomic<uint32_t> in_use;
  std::atomic<uint64_t> used[kMaxMemoryDevices];
};

struct TenantMemoryTable {
  static constexpr uint32_t kVersion = 2;

  uint32_t version;
  std::atomic<uint32_t> slots_in_use;
  std::atomic<uint64_t> limit;
  std::atomic<XDevice> devices[kMaxMemoryDevices];
  TenantMemorySlot slots[kMaxMemoryProcesses];

  // The number of a device, which it may get now; -1: there are too many.
  int Device(XDevice device);
  uint64_t Together(int device) const;
};

// A process's part in the account of its tenant. Lock-free, but Join and Leave, of which only one runs at a
// time.
class TenantMemoryShare {
 public:
  // More accounts would take too many addresses of the process, whose server comes and goes then.
  static constexpr int kMostJoins = 1000;

  constexpr TenantMemoryShare() = default;
  TenantMemoryShare(const TenantMemoryShare&) = delete;
  TenantMemoryShare& operator=(const TenantMemoryShare&) = delete;

  // Maps the account and leaves the former one. REQUIRES: Update of each device afterwards.
  Result<> Join(int memfd, uint32_t slot);
  // The process is in no account. Also for a forked child, whose parent stays in it.
  void Leave();

  // The process has `own` bytes of the device now. It may change meanwhile: what it is at last counts.
  void Update(XDevice device, const std::atomic<uint64_t>& own);
  // None: kNoMemoryLimit.
  uint64_t limit() const;
  uint64_t Together(XDevice device) const;

 private:
  struct Joined {
    TenantMemoryTable* table;
    uint32_t slot;
  };
  static void KeepOnlyAddresses(Joined* former);

  std::atomic<Joined*> joined_{nullptr};  // null: none
  int joins_ = 0;
};

}  // namespace xsched::ipc
