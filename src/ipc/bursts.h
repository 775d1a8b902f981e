// What both sides know of kRecordedBurst.
#pragma once

#include <cstdint>

namespace xsched::ipc {

// At most so many bursts are in one message: more than a program waits for one after another between two
// looks. It is for clients that write nonsense, and for tools of a server that does.
inline constexpr uint32_t kMostBursts = 1024;

}  // namespace xsched::ipc
