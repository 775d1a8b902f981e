#include "shim/cuda/streams.h"

#include <pthread.h>

#include <new>

#include "base/log.h"
#include "base/mutex.h"
#include "base/no_destroy.h"
#include "base/pointer_map.h"
#include "hal/cuda/capture_mode.h"
#include "hal/cuda/queue.h"
#include "shim/cuda/fork.h"
#include "xsched/xqueue.h"

namespace xsched::cuda {

constinit std::atomic<Stream*> all_streams{nullptr};

namespace {

constinit NoDestroy<PointerMap<Stream>> streams;
constinit Mutex meeting;       // one stream is met at a time
constinit Mutex record_mutex;  // guards free_records; taken last
constinit Stream* free_records = nullptr;

void InstallForkHandler() {
  static constinit ForkHandler handler = {[] {
    meeting.ResetAfterFork();
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
  record->key.store(0, std::memory_order_release);
  record->life.fetch_add(1, std::memory_order_release);
  MutexLock lock(record_mutex);
  record->next_free = free_records;
  free_records = record;
}

// A thread's own default streams go with it.
void ForgetThread(void* thread);

pthread_key_t ThreadEnd() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  static pthread_key_t key;
  pthread_once(&once, [] { pthread_key_create(&key, ForgetThread); });
  return key;
}

template <typename Match>
void ForgetWhere(Match&& match) {
  ForEachStream([&](const Stream& stream) {
    if (match(stream)) ForgetStream(stream.key.load(std::memory_order_acquire));
  });
}

void ForgetThread(void* thread) {
  ForgetWhere([thread](const Stream& stream) {
    return stream.thread.load(std::memory_order_relaxed) == reinterpret_cast<uint64_t>(thread);
  });
}

// The context of `stream`, made current where it is not.
class ContextOfStream {
 public:
  ContextOfStream(const Functions& next, CUstream stream) : next_(next) {
    if (next.cuStreamGetCtx == nullptr || next.cuStreamGetCtx(stream, &context_) != CUDA_SUCCESS)
      context_ = nullptr;
    if (context_ != nullptr && context_ != CurrentContext()) {
      pushed_ = next.cuCtxPushCurrent_v2(context_) == CUDA_SUCCESS;
    }
  }
  ~ContextOfStream() {
    if (pushed_) next_.cuCtxPopCurrent_v2(&context_);
  }
  ContextOfStream(const ContextOfStream&) = delete;
  ContextOfStream& operator=(const ContextOfStream&) = delete;

  CUcontext get() const { return context_; }  // null: no such stream

 private:
  const Functions& next_;
  CUcontext context_ = nullptr;
  bool pushed_ = false;
};

// REQUIRES: meeting; capture mode is relaxed.
Stream* FillRecord(const Functions& next, CUstream stream, CUcontext context, uint64_t key) {
  Stream* record = NewRecord();
  if (record == nullptr) return nullptr;
  unsigned flags = 0;
  if (next.cuStreamGetFlags != nullptr) next.cuStreamGetFlags(stream, &flags);
  const bool per_thread = stream == CU_STREAM_PER_THREAD;
  record->context.store(context, std::memory_order_relaxed);
  record->legacy.store(stream == CU_STREAM_LEGACY, std::memory_order_relaxed);
  record->blocking.store(stream != CU_STREAM_LEGACY && (flags & CU_STREAM_NON_BLOCKING) == 0,
                         std::memory_order_relaxed);
  record->thread.store(per_thread ? ThreadNumber() : 0, std::memory_order_relaxed);
  if (per_thread) pthread_setspecific(ThreadEnd(), reinterpret_cast<void*>(ThreadNumber()));
  record->key.store(key, std::memory_order_release);
  return record;
}

void MakeXQueue(const Functions& next, CUcontext context, CUstream stream, uint64_t key) {
  HwQueueHandle hwq = 0;
  XResult result = CudaQueueRegister(&next, context, stream, key, &hwq);
  if (result == kXSchedSuccess) {
    result = preempt::AutoXQueueCreate(hwq);
    if (result == kXSchedSuccess) return;
    HwQueueDestroy(hwq);
  }
  static std::atomic<bool> warned{false};
  if (!warned.exchange(true)) XSCHED_WARN("a CUDA stream runs unscheduled (XSched error %d)", result);
}

// The stream's record, if it is new: `make_queue` also makes its XQueue.
Stream* Meet(CUstream stream, uint64_t key, bool make_queue) {
  preempt::ReentrancyGuard guard;
  const Functions& next = Driver();
  RelaxedCaptureMode relaxed(next);
  InstallForkHandler();
  ContextOfStream context(next, stream);
  if (context.get() == nullptr) return nullptr;
  MutexLock lock(meeting);
  if (Stream* known = streams->Find(key)) return known;
  Stream* record = FillRecord(next, stream, context.get(), key);
  if (record == nullptr) return nullptr;
  if (make_queue) MakeXQueue(next, context.get(), stream, key);
  // Last: who finds a record and no XQueue knows that there will be none.
  if (streams->Insert(key, record)) return record;
  FreeRecord(record);
  preempt::DestroyWhenDrained(kPlatformCUDA, key);
  return nullptr;
}

}  // namespace

uint64_t ThreadNumber() {
  static constinit std::atomic<uint64_t> count{0};
  thread_local uint64_t number = 0;
  if (number == 0) number = count.fetch_add(1, std::memory_order_relaxed) + 1;
  return number;
}

Stream* FindStream(uint64_t key) { return streams->Find(key); }

preempt::XQueue* MeetStream(CUstream stream, uint64_t key) {
  // Once met without getting one, it stays without.
  if (streams->Find(key) != nullptr || !preempt::AutoXQueueEnabled()) return nullptr;
  return Meet(stream, key, true) == nullptr ? nullptr : FindQueue(key);
}

Stream* RecordOf(CUstream stream, uint64_t key) {
  if (Stream* known = streams->Find(key)) return known;
  return Meet(stream, key, false);
}

void AddImplicitDependencies(preempt::XQueue* waiter, CUstream stream) {
  const Stream* record = FindStream(KeyOf(stream));
  if (record == nullptr) return;
  CUcontext context = record->context.load(std::memory_order_relaxed);
  if (record->blocking.load(std::memory_order_relaxed)) {
    preempt::XQueue* legacy = FindQueue(LegacyStreamKey(reinterpret_cast<uint64_t>(context)));
    if (legacy != nullptr) preempt::AddDependency(waiter, legacy, preempt::SubmittedNow(legacy));
  }
  if (!record->legacy.load(std::memory_order_relaxed)) return;
  ForEachStream([&](const Stream& other) {
    if (other.context.load(std::memory_order_relaxed) != context) return;
    if (!other.blocking.load(std::memory_order_relaxed)) return;
    if (preempt::XQueue* owner = FindQueue(other.key.load(std::memory_order_relaxed)))
      preempt::AddDependency(waiter, owner, preempt::SubmittedNow(owner));
  });
}

void ForgetStream(uint64_t key) {
  if (key == 0) return;
  if (Stream* record = streams->Remove(key)) FreeRecord(record);
  // Also one that the program made.
  preempt::DestroyWhenDrained(kPlatformCUDA, key);
}

void ForgetStreamsOfContext(CUcontext context) {
  ForgetWhere(
      [context](const Stream& stream) { return stream.context.load(std::memory_order_relaxed) == context; });
}

void ForgetAllStreams() {
  ForgetWhere([](const Stream&) { return true; });
}

}  // namespace xsched::cuda
