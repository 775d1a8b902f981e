// Learns from the communicators of NCCL and RCCL which processes are the ranks of one job: those that make a
// communicator with the same id. They wait for each other, so they must have their turns at the same time.
//
// A library that is linked to NCCL finds these functions first:
//
//   ncclCommInitRank, ncclCommInitRankConfig, ncclCommInitRankScalable
//
// They call the function that the library would have found without XSched. Who gets the address of NCCL's own
// function by dlsym calls that one, and is not seen.
#pragma once

#include "shim/common/dl_hooks.h"

namespace xsched::shim {

// As LookUp, for these functions: what the caller would find without XSched.
Lookup LookUpCommunicators(void* handle, const char* name);

}  // namespace xsched::shim
