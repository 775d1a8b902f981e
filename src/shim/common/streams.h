// The program's streams on one platform, and the XQueues over them. A stream gets its XQueue with its first
// command, however it was made. If a stream is destroyed without our seeing it, its handle is registered
// anew. The platform defines the meaning of a handle, and makes an XQueue over it.
//
// Reading takes no lock and allocates nothing.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/no_cancellation.h"
#include "preempt/api/launch.h"

namespace xsched::shim {

// The platform of this shim.
extern const XPlatform kPlatform;

// A registered stream. Records are reused and never freed, because a reader may have one a moment longer than
// its stream exists. `life` shows whether the record still belongs to the same stream.
struct Stream {
  std::atomic<uint64_t> key{0};  // 0: no stream's
  std::atomic<uint32_t> life{0};
  std::atomic<uint64_t> home{0};        // the key of the default stream of its context, or device
  std::atomic<uint64_t> owner{0};       // the home of the context that owns this context
  std::atomic<uint64_t> thread{0};      // the thread whose default stream it is; 0: none
  std::atomic<bool> blocking{false};    // its home waits for this one, and the reverse
  std::atomic<bool> queue_made{false};  // an XQueue was made for it here, or could not be: none is made again
  Stream* next = nullptr;               // in the list of all streams
  Stream* next_free = nullptr;          // under the lock of streams.cc

  // True if it ends with the context or device of this home.
  bool EndsWith(uint64_t ended) const {
    return home.load(std::memory_order_relaxed) == ended || owner.load(std::memory_order_relaxed) == ended;
  }
  bool IsHome() const { return key.load(std::memory_order_relaxed) == home.load(std::memory_order_relaxed); }
};

struct StreamFacts {
  uint64_t home = 0;
  uint64_t owner = 0;  // 0: none
  bool blocking = false;
  bool per_thread = false;  // it is the calling thread's default stream
};

// Null: not registered yet.
Stream* FindStream(uint64_t key);

// The calling thread's default stream, which is to be registered, is forgotten when the thread ends. A
// runtime may destroy it in a destructor of its own, which the thread has registered before this, with its
// first call: so that runs later, and nobody asks about a stream that is gone. A thread-specific value would
// be destroyed after all destructors. Called for each such stream, because each runtime has a destructor. Not
// with a lock of ours, because it takes the dynamic linker's, and the linker may call us with that. False: no
// memory.
bool NotifyOfThreadsEnd();

// Registers a stream. Only one is registered at a time, and its record is published last.
class StreamRegistration {
 public:
  explicit StreamRegistration(uint64_t key);
  ~StreamRegistration();
  StreamRegistration(const StreamRegistration&) = delete;
  StreamRegistration& operator=(const StreamRegistration&) = delete;

  // The record that it has already; otherwise null.
  Stream* known() const { return known_; }
  // False: no memory.
  bool Begin(const StreamFacts& facts);
  // The known record, or after Begin the new one.
  Stream* record() const { return known_ != nullptr ? known_ : record_; }
  // After Begin. Null: no memory; then an XQueue that was made for it is destroyed.
  Stream* Publish();

 private:
  NoCancellation with_lock_;
  uint64_t key_;
  Stream* known_;
  Stream* record_ = nullptr;
};

// Registers a stream, unless that is done already, and returns its record. `with_queue`: `make_queue()` makes
// an XQueue over it, if it was not called for this record before. The stream may have a record because an
// event was recorded on it while it had an XQueue of the program's own. Null: no memory.
template <typename MakeQueue>
Stream* RegisterStream(uint64_t key, const StreamFacts& facts, bool with_queue, MakeQueue&& make_queue) {
  if (facts.per_thread && FindStream(key) == nullptr && !NotifyOfThreadsEnd()) return nullptr;
  StreamRegistration registration(key);
  Stream* const known = registration.known();
  if (known == nullptr && !registration.Begin(facts)) return nullptr;
  if (with_queue && !registration.record()->queue_made.load(std::memory_order_relaxed)) {
    make_queue();
    // Whoever sees it finds the XQueue, if there is one.
    registration.record()->queue_made.store(true, std::memory_order_release);
  }
  return known != nullptr ? known : registration.Publish();
}

// Null: it has none yet.
[[gnu::always_inline]] inline preempt::XQueue* FindQueue(uint64_t key) {
  return key == 0 ? nullptr : preempt::FindXQueue(kPlatform, key);
}

// The number of records of blocking streams. Most programs have none, and then no stream waits for another
// one by itself.
extern std::atomic<uint32_t> blocking_streams;
void AddDependenciesOfBlocking(preempt::XQueue* waiter, uint64_t key);

// Reports implicit dependencies to the scheduler before a command of `waiter` on the stream with `key`: a
// default stream waits for blocking streams, and they wait for it.
inline void AddImplicitDependencies(preempt::XQueue* waiter, uint64_t key) {
  if (blocking_streams.load(std::memory_order_acquire) != 0) [[unlikely]]
    AddDependenciesOfBlocking(waiter, key);
}

// Calls visit(record) for each known stream.
extern std::atomic<Stream*> all_streams;
template <typename Visit>
void ForEachStream(Visit&& visit) {
  for (Stream* stream = all_streams.load(std::memory_order_acquire); stream != nullptr;
       stream = stream->next) {
    if (stream->key.load(std::memory_order_acquire) != 0) visit(*stream);
  }
}

// Call these before the driver's call, after which the handle may be reused. They also destroy the XQueue,
// even one that the program made.
void ForgetStream(uint64_t key);
void ForgetStreamsOf(uint64_t home);  // those that end with it

// A number for the calling thread, which no other thread gets, not even after its end.
uint64_t ThreadNumber();

// Notes the progress of a home's streams before a wait for all of them, and reports it after the wait.
class HomeWait {
 public:
  explicit HomeWait(uint64_t home);
  void Succeeded() const;

 private:
  static constexpr int kMaxQueues = 64;  // the progress of further ones comes from other sources
  struct Newest {
    uint64_t key;
    uint32_t life;
    uint64_t number;
  };
  int count_ = 0;
  Newest newest_[kMaxQueues];
};

}  // namespace xsched::shim
