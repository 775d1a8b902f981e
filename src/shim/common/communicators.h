// Learns from the communicators of NCCL and RCCL which processes are the ranks of one job: those that make a
// communicator with the same id. They wait for each other, so they must have their turns at the same time.
//
// A library that is linked to NCCL finds these functions first:
//
//   ncclCommInitRank, ncclCommInitRankConfig, ncclCommInitRankScalable
//
// They call the function that the library would have found without XSched. Who asks for NCCL's functions by
// dlsym, as Python's ctypes does, gets one of ours that calls the one that was found.
#pragma once

#include "shim/common/dl_hooks.h"

namespace xsched::shim {

// As LookUp, for these functions.
Lookup LookUpCommunicators(void* handle, const char* name);

}  // namespace xsched::shim
