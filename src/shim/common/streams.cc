#include "shim/common/streams.h"

#include <dlfcn.h>
#include <pthread.h>

#include <new>

#include "base/fork_handler.h"
#include "base/mutex.h"
#include "base/no_destroy.h"
#include "base/pointer_map.h"
#include "shim/common/dl_hooks.h"

namespace xsched::shim {

constinit std::atomic<Stream*> all_streams{nullptr};
constinit std::atomic<uint32_t> blocking_streams{0};

namespace {

constinit NoDestroy<PointerMap<Stream>> streams;
constinit Mutex<LockRank::kStreamRegistration> registration_mutex;
constinit Mutex<LockRank::kStreamRecords> record_mutex;
constinit Stream* free_records GUARDED_BY(record_mutex) = nullptr;

void InstallForkHandler() {
  static constinit ForkHandler handler = {[] {
    registration_mutex.ResetAfterFork();
    record_mutex.ResetAfterFork();
    streams->ResetAfterFork();
  }};
  handler.Install();
}

Stream* NewRecord() {
  MutexLock lock(record_mutex);
  Stream* record = free_records;
  if (record != nullptr) {
    free_records = record->next_free;
    return record;
  }
  record = new (std::nothrow) Stream;
  if (record == nullptr) return nullptr;
  record->next = all_streams.load(std::memory_order_relaxed);
  all_streams.store(record, std::memory_order_release);
  return record;
}

void FreeRecord(Stream* record) {
  if (record->blocking.exchange(false, std::memory_order_relaxed))
    blocking_streams.fetch_sub(1, std::memory_order_release);
  record->key.store(0, std::memory_order_release);
  record->life.fetch_add(1, std::memory_order_release);
  MutexLock lock(record_mutex);
  record->next_free = free_records;
  free_records = record;
}

template <typename Match>
void ForgetWhere(Match&& match) {
  ForEachStream([&](const Stream& stream) {
    if (match(stream)) ForgetStream(stream.key.load(std::memory_order_acquire));
  });
}

// When a thread ends, its default streams end as well.
void ForgetThread(void* thread) {
  ForgetWhere([thread](const Stream& stream) {
    return stream.thread.load(std::memory_order_relaxed) == reinterpret_cast<uint64_t>(thread);
  });
}

// The C library's own, for destructors of thread-local objects (glibc 2.18). The last one that was registered
// runs first.
using AtThreadExit = int (*)(void (*function)(void*), void* argument, void* address_in_library);
constinit std::atomic<AtThreadExit> at_thread_exit{nullptr};

void FindAtThreadExit() EXCLUDES(registration_mutex) {
  if (at_thread_exit.load(std::memory_order_relaxed) != nullptr) return;
  at_thread_exit.store(reinterpret_cast<AtThreadExit>(RealDlsym(RTLD_DEFAULT, "__cxa_thread_atexit_impl")),
                       std::memory_order_relaxed);
}

bool NotifyByThreadKey() EXCLUDES(registration_mutex) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  static pthread_key_t key;
  static bool made = false;
  pthread_once(&once, [] { made = pthread_key_create(&key, ForgetThread) == 0; });
  return made && pthread_setspecific(key, reinterpret_cast<void*>(ThreadNumber())) == 0;
}

}  // namespace

bool NotifyOfThreadsEnd() {
  FindAtThreadExit();
  const AtThreadExit notify = at_thread_exit.load(std::memory_order_relaxed);
  void* thread = reinterpret_cast<void*>(ThreadNumber());
  return (notify != nullptr && notify(ForgetThread, thread, &at_thread_exit) == 0) || NotifyByThreadKey();
}

uint64_t ThreadNumber() {
  static constinit std::atomic<uint64_t> count{0};
  thread_local uint64_t number = 0;
  if (number == 0) number = count.fetch_add(1, std::memory_order_relaxed) + 1;
  return number;
}

Stream* FindStream(uint64_t key) { return streams->Find(key); }

StreamRegistration::StreamRegistration(uint64_t key) : key_(key) {
  InstallForkHandler();
  registration_mutex.Lock();
  known_ = streams->Find(key);
}

StreamRegistration::~StreamRegistration() { registration_mutex.Unlock(); }

bool StreamRegistration::Begin(const StreamFacts& facts) {
  record_ = NewRecord();
  if (record_ == nullptr) return false;
  record_->home.store(facts.home, std::memory_order_relaxed);
  record_->owner.store(facts.owner, std::memory_order_relaxed);
  record_->blocking.store(facts.blocking, std::memory_order_relaxed);
  if (facts.blocking) blocking_streams.fetch_add(1, std::memory_order_release);
  record_->queue_made.store(false, std::memory_order_relaxed);
  record_->thread.store(facts.per_thread ? ThreadNumber() : 0, std::memory_order_relaxed);
  record_->key.store(key_, std::memory_order_release);
  return true;
}

Stream* StreamRegistration::Publish() {
  if (streams->Insert(key_, record_)) return record_;
  FreeRecord(record_);
  preempt::DestroyWhenDrained(kPlatform, key_);
  return nullptr;
}

void AddDependenciesOfBlocking(preempt::XQueue* waiter, uint64_t key) {
  const Stream* record = FindStream(key);
  if (record == nullptr) return;
  const uint64_t home = record->home.load(std::memory_order_relaxed);
  if (record->blocking.load(std::memory_order_relaxed)) {
    preempt::XQueue* queue = FindQueue(home);
    if (queue != nullptr) preempt::AddDependency(waiter, queue, preempt::SubmittedNow(queue));
  }
  if (!record->IsHome()) return;
  ForEachStream([&](const Stream& other) {
    if (other.home.load(std::memory_order_relaxed) != home) return;
    if (!other.blocking.load(std::memory_order_relaxed)) return;
    if (preempt::XQueue* owner = FindQueue(other.key.load(std::memory_order_relaxed)))
      preempt::AddDependency(waiter, owner, preempt::SubmittedNow(owner));
  });
}

void ForgetStream(uint64_t key) {
  if (key == 0) return;
  if (Stream* record = streams->Remove(key)) FreeRecord(record);
  preempt::DestroyWhenDrained(kPlatform, key);
}

void ForgetStreamsOf(uint64_t home) {
  ForgetWhere([home](const Stream& stream) { return stream.EndsWith(home); });
}

HomeWait::HomeWait(uint64_t home) {
  ForEachStream([&](const Stream& stream) {
    if (stream.home.load(std::memory_order_relaxed) != home || count_ == kMaxQueues) return;
    const uint64_t key = stream.key.load(std::memory_order_acquire);
    preempt::XQueue* queue = FindQueue(key);
    if (queue == nullptr) return;
    newest_[count_++] = {key, stream.life.load(std::memory_order_acquire), preempt::SubmittedNow(queue)};
  });
}

void HomeWait::Succeeded() const {
  for (int i = 0; i < count_; ++i) {
    const Stream* stream = FindStream(newest_[i].key);
    preempt::XQueue* queue = FindQueue(newest_[i].key);
    if (stream == nullptr || queue == nullptr) continue;
    if (stream->life.load(std::memory_order_acquire) == newest_[i].life)
      preempt::RetiredUpTo(queue, newest_[i].number);
  }
}

}  // namespace xsched::shim
