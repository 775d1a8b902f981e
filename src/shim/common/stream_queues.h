// Finds the XQueue of a call's stream. `Platform`: platform.h of each shim.
#pragma once

#include <cstdint>

#include "preempt/api/launch.h"
#include "shim/common/capture_scopes.h"
#include "shim/common/streams.h"

namespace xsched::shim {

// Registers a stream with its first command. Null: it runs unscheduled. Not inline, because it is rare.
template <typename Platform>
[[gnu::noinline]] preempt::XQueue* RegisterQueue(const typename Platform::Call& call,
                                                 typename Platform::Stream stream, uint64_t key) {
  // A stream that was registered without an XQueue never gets one.
  if (FindStream(key) != nullptr || !preempt::AutoXQueueEnabled()) return nullptr;
  return Platform::Register(call, stream, key, true) == nullptr ? nullptr : FindQueue(key);
}

// The XQueue for a command on `stream` now, which has this key. Null: the command passes untouched.
template <typename Platform>
[[gnu::always_inline]] inline preempt::XQueue* QueueForCommand(const typename Platform::Call& call,
                                                               typename Platform::Stream stream,
                                                               uint64_t key) {
  if (IsCapturing<Platform>(call, stream)) return nullptr;
  preempt::XQueue* queue = FindQueue(key);
  return queue != nullptr || key == 0 ? queue : RegisterQueue<Platform>(call, stream, key);
}

// The stream's record. Makes no XQueue. Null: no such stream, or no memory.
template <typename Platform>
Stream* RecordOf(const typename Platform::Call& call, typename Platform::Stream stream, uint64_t key) {
  if (Stream* known = FindStream(key)) return known;
  return Platform::Register(call, stream, key, false);
}

}  // namespace xsched::shim
