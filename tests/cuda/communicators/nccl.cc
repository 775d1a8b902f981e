// A stand-in for NCCL. Its results show whether the arguments have arrived, and the address of a communicator
// which copy of it has made it.
#include "nccl.h"

namespace {

char made_here;

int ResultOf(void** communicator, int ranks, const ncclUniqueId& id, int rank) {
  *communicator = &made_here;
  return 1000 * ranks + 100 * rank + id.internal[127];
}

}  // namespace

extern "C" {

int ncclCommInitRank(void** communicator, int ranks, ncclUniqueId id, int rank) {
  return ResultOf(communicator, ranks, id, rank);
}
int ncclCommInitRankConfig(void** communicator, int ranks, ncclUniqueId id, int rank, void* config) {
  return ResultOf(communicator, ranks, id, rank) + (config == nullptr ? 10000 : 0);
}
int ncclCommInitRankScalable(void** communicator, int ranks, int rank, int ids, ncclUniqueId* id, void*) {
  return ResultOf(communicator, ranks, *id, rank) + 20000 * ids;
}
}
