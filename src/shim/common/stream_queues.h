// Finds the XQueue of a call's stream. `Platform`: platform.h of each shim.
#pragma once

#include <cstdint>

#include "preempt/api/launch.h"
#include "shim/common/capture_scopes.h"
#include "shim/common/streams.h"

namespace xsched::shim {

// Makes the XQueue of a stream with its first command. Null: it runs unscheduled. Not inline, because it is
// rare.
template <typename Platform>
[[gnu::noinline]] preempt::XQueue* RegisterQueue(const typename Platform::Call& call,
                                                 typename Platform::Stream stream, uint64_t key) {
  if (!preempt::AutoXQueueEnabled()) return nullptr;
  // If none could be made, or the program has destroyed it, the stream stays without one.
  const Stream* const known = FindStream(key);
  if (known != nullptr && known->queue_made.load(std::memory_order_acquire)) return nullptr;
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
