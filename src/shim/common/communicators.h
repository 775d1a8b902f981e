// Learns from the communicators of NCCL and RCCL which processes are the ranks of one job: those that make a
// communicator with the same id. They wait for each other, so they must have their turns at the same time.
//
// A library that is linked to NCCL finds these functions first:
//
//   ncclCommInitRank, ncclCommInitRankConfig, ncclCommInitRankScalable
//
// Each of them calls the function that the library would have found without XSched. Some programs look up
// NCCL's functions by dlsym, as Python's ctypes does. They get a function of ours, which calls NCCL's.
#pragma once

#include "shim/common/dl_hooks.h"

namespace xsched::shim {

// As LookUp, for these functions.
Lookup LookUpCommunicators(void* handle, const char* name);

}  // namespace xsched::shim
