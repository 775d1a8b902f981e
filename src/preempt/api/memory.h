// How much memory of a device the program may take (XSCHED_MEMORY, which `xsched run --memory` sets), and how
// much its processes have. Shims ask here before each allocation. Lock-free; allocates nothing.
//
// The account is shared by the processes of one program (ipc/memory_account.h). If that fails, this process
// has one of its own; if that fails as well, there is no limit.
//
// Another account, such as a tenant's that the server keeps, would be asked here as well: behind these
// functions, after the program's.
#pragma once

#include <cstdint>

#include "hal/contract.h"

namespace xsched::preempt {

// False: nothing has to be counted.
XSCHED_PRIVATE bool MemoryIsLimited();

// ---- REQUIRES for what follows: MemoryIsLimited ----

// The number of a device, for the functions below; -1: its memory is not limited.
XSCHED_PRIVATE int LimitedDevice(XDevice device);
// False: the program must not have it. Nothing is taken then.
XSCHED_PRIVATE bool TakeMemory(int device, uint64_t bytes);
// The driver has it already, so it counts, be it beyond the limit or not.
XSCHED_PRIVATE void CountMemory(int device, uint64_t bytes);
XSCHED_PRIVATE void GiveMemoryBack(int device, uint64_t bytes);

struct MemoryState {
  uint64_t limit;
  uint64_t used;  // by all processes of the program

  uint64_t left() const { return used < limit ? limit - used : 0; }
};
XSCHED_PRIVATE MemoryState MemoryOf(int device);

// Writes what this process has to where the server reads it.
void ReportMemory();

}  // namespace xsched::preempt
