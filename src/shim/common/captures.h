// Counts active stream captures. Commands on a capturing stream are recorded into a graph and not run, so
// they pass untouched. Streams join a capture by waiting for its events, and only the driver knows which
// streams have joined. So a launch asks the driver, but only while a capture is active anywhere in the
// process.
#pragma once

#include <atomic>
#include <cstdint>

namespace xsched::shim {

// The number of active captures. It is never too small. A capture whose stream is destroyed stays counted,
// unless the shim of the platform knows that it ends then (CaptureEnded).
extern std::atomic<uint32_t> captures;
// The program knows a function that begins captures and that XSched does not: the driver must always be
// asked.
void CapturesMayBeUnseen();
inline bool AnyCapture() { return captures.load(std::memory_order_acquire) != 0; }

// `stream`: the key of the stream on which the capture began; 0: none. False: it counts already.
bool CaptureBegins(uint64_t stream);
void CaptureEnded(uint64_t stream);

}  // namespace xsched::shim
