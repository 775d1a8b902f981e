// Stream captures under way: what is put on a capturing stream is recorded into a graph, not run, and so
// passes untouched. Streams join a capture by waiting for its events; only the driver knows which have. So a
// launch asks the driver, but only while a capture is under way anywhere in the process.
#pragma once

#include <atomic>
#include <cstdint>

namespace xsched::shim {

// How many are under way. Never less than there are; a capture whose stream is destroyed may stay counted.
extern std::atomic<uint32_t> captures;
inline bool AnyCapture() { return captures.load(std::memory_order_acquire) != 0; }

// By the key of the stream that one was begun on; 0: of none.
void CaptureBegins(uint64_t stream);
void CaptureEnded(uint64_t stream);

}  // namespace xsched::shim
