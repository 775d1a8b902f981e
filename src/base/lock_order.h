// The order of all locks (lock_order.inc), and what may be called while each is held. Checked where
// XSCHED_CHECK_LOCKS is set (debug builds, sanitizers): the first violation is printed, and ends the process.
// Nothing is checked, stored or called otherwise.
#pragma once

#include <cstdint>

namespace xsched {

enum class LockRank : uint8_t {
#define LOCK(rank, calls) rank,
#include "base/lock_order.inc"
#undef LOCK
};

// What a thread may call while it holds a lock. Each includes those before it.
enum class Calls : uint8_t { kNothing, kKernel, kDriver };

namespace lock_order {

#ifdef XSCHED_CHECK_LOCKS
// One record per process and thread: libpreempt.so has it for all libraries of ours (preempt/lock_order.map).
// This thread is about to acquire a lock.
[[gnu::visibility("default")]] void Acquiring(LockRank rank);
// It has released the lock, or did not get it.
[[gnu::visibility("default")]] void Released(LockRank rank);
// It must hold the lock.
[[gnu::visibility("default")]] void CheckHeld(LockRank rank);
// It is about to call the driver, or the kernel's driver.
[[gnu::visibility("default")]] void CheckCall(Calls calls);
#else
inline void Acquiring(LockRank) {}
inline void Released(LockRank) {}
inline void CheckHeld(LockRank) {}
inline void CheckCall(Calls) {}
#endif

}  // namespace lock_order
}  // namespace xsched
