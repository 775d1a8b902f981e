// The resource manager's objects behind a context, allocated by the same ioctls that the real driver makes. A
// scheduler that watches these finds its channel groups. Knows nothing of streams.
#pragma once

#include <cstdint>

namespace standin::rm {

// Both are called without the lock, because they make system calls that a scheduler may watch.
void ContextCreated(uint64_t context, int device);
void ContextDestroyed(uint64_t context);

}  // namespace standin::rm
