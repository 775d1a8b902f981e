// How much memory of a device the program may take, and how much its processes have. Shims ask here before
// each allocation. Lock-free; allocates nothing.
//
// XSCHED_MEMORY, which `xsched run --memory` sets, limits the program, whose processes share an account
// (ipc/memory_account.h). If that fails, this process has one of its own; if that fails as well, there is no
// limit. The server may limit the tenant (ipc/tenant_memory.h). What neither of them limits is not counted.
// As long as no server has said so, it is.
#pragma once

#include <cstdint>

#include "hal/contract.h"

namespace xsched::preempt {

// False: nothing has to be counted, from now on and for good. The first call in a process finds it out, and
// so it may start the agent and wait for the server, but not long.
XSCHED_PRIVATE bool MemoryIsCounted();
// True: something may have been counted before. Starts nothing.
XSCHED_PRIVATE bool MemoryWasCounted();

// ---- REQUIRES for what follows: MemoryIsCounted ----

// The number of a device, for the functions below; -1: its memory is not limited.
XSCHED_PRIVATE int LimitedDevice(XDevice device);
// False: the program must not have it. Nothing is taken then.
XSCHED_PRIVATE bool TakeMemory(int device, uint64_t bytes);
// The driver has it already, so it counts, be it beyond the limit or not.
XSCHED_PRIVATE void CountMemory(int device, uint64_t bytes);
XSCHED_PRIVATE void GiveMemoryBack(int device, uint64_t bytes);

struct MemoryState {
  uint64_t limit;
  uint64_t left;  // by what all processes have whose memory counts together
};
XSCHED_PRIVATE MemoryState MemoryOf(int device);

// Writes what this process has to where the server reads it.
void ReportMemory();

}  // namespace xsched::preempt
