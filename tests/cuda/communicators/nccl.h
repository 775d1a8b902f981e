// The part of NCCL's interface that makes communicators.
#pragma once

#pragma GCC visibility push(default)
extern "C" {

struct ncclUniqueId {
  char internal[128];
};

int ncclCommInitRank(void** communicator, int ranks, ncclUniqueId id, int rank);
int ncclCommInitRankConfig(void** communicator, int ranks, ncclUniqueId id, int rank, void* config);
int ncclCommInitRankScalable(void** communicator, int ranks, int rank, int ids, ncclUniqueId* id,
                             void* config);
}
#pragma GCC visibility pop
