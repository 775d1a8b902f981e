// The resource manager's objects behind a context, allocated by the same ioctls that the real driver makes:
// what a scheduler that watches them finds its channel groups by. Never knows what streams do.
#pragma once

#include <cstdint>

namespace standin::rm {

// Both are called without the lock: they make system calls that somebody may watch.
void ContextCreated(uint64_t context, int device);
void ContextDestroyed(uint64_t context);

}  // namespace standin::rm
