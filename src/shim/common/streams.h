// The program's streams, and the XQueues over them, of one platform. A stream gets its XQueue with its first
// command, whoever made it and however; streams that go without our seeing it are registered anew. What a
// handle means, and making an XQueue over it, is the platform's.
//
// Reading takes no lock and allocates nothing.
#pragma once

#include <atomic>
#include <cstdint>

#include "preempt/api/launch.h"

namespace xsched::shim {

// Whose shim this is.
extern const XPlatform kPlatform;

// A stream that is registered. Records are used again and never freed: a reader may hold one a moment longer
// than its stream is there. `life` tells whether it is still the same stream's.
struct Stream {
  std::atomic<uint64_t> key{0};  // 0: none's
  std::atomic<uint32_t> life{0};
  std::atomic<uint64_t> home{0};      // the key of the default stream of its context, or device
  std::atomic<uint64_t> thread{0};    // whose default stream it is; 0: not a thread's
  std::atomic<bool> blocking{false};  // its home waits for this one, and the reverse
  Stream* next = nullptr;             // of all
  Stream* next_free = nullptr;        // under the lock of streams.cc

  bool IsHome() const { return key.load(std::memory_order_relaxed) == home.load(std::memory_order_relaxed); }
};

struct StreamFacts {
  uint64_t home = 0;
  bool blocking = false;
  bool per_thread = false;  // it is the calling thread's default stream
};

// Null: not registered yet.
Stream* FindStream(uint64_t key);

// Registering a stream: one at a time, and its record is published last, so that who finds one, and no
// XQueue, knows that there will be none.
class StreamRegistration {
 public:
  explicit StreamRegistration(uint64_t key);
  ~StreamRegistration();
  StreamRegistration(const StreamRegistration&) = delete;
  StreamRegistration& operator=(const StreamRegistration&) = delete;

  // Another thread was first. Null: nobody was.
  Stream* known() const { return known_; }
  // False: no memory.
  bool Begin(const StreamFacts& facts);
  // After Begin. Null: no memory; an XQueue that was made for it is gone.
  Stream* Publish();

 private:
  uint64_t key_;
  Stream* known_;
  Stream* record_ = nullptr;
};

// The record of a stream, which may be known by now. `make_queue()` makes an XQueue over it, or not. Null: no
// memory.
template <typename MakeQueue>
Stream* RegisterStream(uint64_t key, const StreamFacts& facts, MakeQueue&& make_queue) {
  StreamRegistration registration(key);
  if (registration.known() != nullptr) return registration.known();
  if (!registration.Begin(facts)) return nullptr;
  make_queue();
  return registration.Publish();
}

// Null: it has none, so far.
inline preempt::XQueue* FindQueue(uint64_t key) {
  return key == 0 ? nullptr : preempt::FindXQueue(kPlatform, key);
}

// What a default stream waits for, and what waits for it: says so to the scheduler, before a command of
// `waiter` on the stream with `key`.
void AddImplicitDependencies(preempt::XQueue* waiter, uint64_t key);

// Calls visit(record) for each stream that is known.
extern std::atomic<Stream*> all_streams;
template <typename Visit>
void ForEachStream(Visit&& visit) {
  for (Stream* stream = all_streams.load(std::memory_order_acquire); stream != nullptr;
       stream = stream->next) {
    if (stream->key.load(std::memory_order_acquire) != 0) visit(*stream);
  }
}

// These: before the driver's call, after which a handle may be another's. The XQueue goes as well, also one
// that the program made.
void ForgetStream(uint64_t key);
void ForgetStreamsOf(uint64_t home);
void ForgetAllStreams();

// The calling thread, by a number that no other thread gets, not even after its end.
uint64_t ThreadNumber();

// How far the streams of one home are before a wait for all of them, and what is known after it.
class HomeWait {
 public:
  explicit HomeWait(uint64_t home);
  void Succeeded() const;

 private:
  static constexpr int kMaxQueues = 64;  // of more, others tell how far they are
  struct Newest {
    uint64_t key;
    uint32_t life;
    uint64_t number;
  };
  int count_ = 0;
  Newest newest_[kMaxQueues];
};

}  // namespace xsched::shim
