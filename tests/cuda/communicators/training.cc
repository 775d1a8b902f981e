// A library that makes communicators.
#include "nccl.h"

extern "C" __attribute__((visibility("default"))) int Train(int function, int ranks, char id_end, int rank) {
  ncclUniqueId id{};
  id.internal[0] = 1;
  id.internal[127] = id_end;
  void* communicator = nullptr;
  int result = 0;
  if (function == 0) result = ncclCommInitRank(&communicator, ranks, id, rank);
  if (function == 1) result = ncclCommInitRankConfig(&communicator, ranks, id, rank, nullptr);
  if (function == 2) result = ncclCommInitRankScalable(&communicator, ranks, rank, 1, &id, nullptr);
  return communicator == nullptr ? -1 : result;
}
