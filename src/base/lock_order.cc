#include "base/lock_order.h"

#ifdef XSCHED_CHECK_LOCKS

#include <stdio.h>
#include <stdlib.h>

#include <bit>

namespace xsched::lock_order {
namespace {

constexpr const char* kNames[] = {
#define LOCK(rank, calls) #rank,
#include "base/lock_order.inc"
#undef LOCK
};
constexpr Calls kMostCalls[] = {
#define LOCK(rank, calls) Calls::calls,
#include "base/lock_order.inc"
#undef LOCK
};
constexpr const char* kCallNames[] = {"nothing", "the kernel's driver", "the driver"};

// The locks that this thread holds, one bit each. No thread holds two of one rank, for none comes after
// itself. Of the initial-exec kind, so that nothing is allocated: a lock may be taken inside of malloc.
[[gnu::tls_model("initial-exec")]] constinit thread_local uint64_t held = 0;
static_assert(sizeof kNames / sizeof kNames[0] <= 64);

constexpr uint64_t Bit(LockRank rank) { return uint64_t{1} << static_cast<int>(rank); }

const char* NameOf(LockRank rank) { return kNames[static_cast<int>(rank)]; }

}  // namespace

void Acquiring(LockRank rank) {
  const int highest = 63 - std::countl_zero(held);
  if (highest >= static_cast<int>(rank)) {
    fprintf(stderr, "xsched: out of order: %s is acquired while %s is held (base/lock_order.inc)\n",
            NameOf(rank), kNames[highest]);
    abort();
  }
  held |= Bit(rank);
}

void Released(LockRank rank) { held &= ~Bit(rank); }

void CheckHeld(LockRank rank) {
  if ((held & Bit(rank)) != 0) return;
  fprintf(stderr, "xsched: %s is not held by the thread that needs it\n", NameOf(rank));
  abort();
}

void CheckCall(Calls calls) {
  for (uint64_t left = held; left != 0; left &= left - 1) {
    const int rank = std::countr_zero(left);
    if (kMostCalls[rank] >= calls) continue;
    fprintf(stderr, "xsched: %s is called while %s is held (base/lock_order.inc)\n",
            kCallNames[static_cast<int>(calls)], kNames[rank]);
    abort();
  }
}

}  // namespace xsched::lock_order

#endif
