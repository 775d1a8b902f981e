#include "hal/cuda/queue.h"

#include <pthread.h>

#include <atomic>
#include <new>
#include <optional>

#include "base/fork_handler.h"
#include "base/mutex.h"
#include "hal/cuda/capture_mode.h"
#include "hal/cuda/channel_groups/mps.h"
#include "hal/cuda/device.h"
#include "hal/cuda/green_contexts.h"
#include "hal/cuda/level3.h"
#include "hal/cuda/lost_context.h"
#include "hal/cuda/shared_memory.h"
#include "hal/cuda/stream_key.h"
#include "hal/cuda/stream_priority.h"
#include "preempt/api/launch.h"
#include "preempt/api/query_lock.h"

namespace xsched::cuda {
namespace {

using preempt::ReentrancyGuard;

constinit Mutex<LockRank::kCudaQueues> queues_mutex;

struct Queue {
  const Functions& next;
  CUcontext context;      // of a green context's stream: that context's owner
  CUcontext own_context;  // of such a stream: the green context
  CUstream stream;
  // The default stream of a green context or of a thread. It is known only to threads that have this context
  // current, or to this thread.
  bool known_to_launching_thread_only;
  pthread_t thread;  // of a thread's default stream: that thread
  XDevice device;
  uint64_t key;
  std::optional<int> own_priority GUARDED_BY(queues_mutex);  // the one that the program gave it
  std::atomic<CUdeviceptr> shared_memory{0};  // the control blocks' address in the context; 0: not known yet
  int steps GUARDED_BY(queues_mutex) = 0;
  Queue* next_queue GUARDED_BY(queues_mutex) = nullptr;
};

constinit Queue* all_queues GUARDED_BY(queues_mutex) = nullptr;

void AddQueue(Queue* queue) {
  static constinit ForkHandler handler = {[] { queues_mutex.ResetAfterFork(); }};
  handler.Install();
  MutexLock lock(queues_mutex);
  queue->next_queue = all_queues;
  all_queues = queue;
}

void RemoveQueue(const Queue* queue) {
  MutexLock lock(queues_mutex);
  for (Queue** link = &all_queues; *link != nullptr; link = &(*link)->next_queue) {
    if (*link != queue) continue;
    *link = queue->next_queue;
    return;
  }
}

// Null: it is not registered.
Queue* FindByKey(uint64_t key) REQUIRES(queues_mutex) {
  Queue* queue = all_queues;
  while (queue != nullptr && queue->key != key) queue = queue->next_queue;
  return queue;
}

// The priority of the queue's stream, among the process's streams on its device. Nothing: the driver did not
// say which one it had.
std::optional<int> PriorityFor(const Queue& queue, PriorityRange range) {
  MutexLock lock(queues_mutex);
  if (!queue.own_priority.has_value()) return std::nullopt;
  return PriorityAmong(*queue.own_priority - queue.steps, range, [&queue](auto&& visit) {
    queues_mutex.AssertHeld();
    for (const Queue* other = all_queues; other != nullptr; other = other->next_queue) {
      if (other->device == queue.device && other->own_priority.has_value())
        visit(*other->own_priority - other->steps);
    }
  });
}

Queue& Of(void* hwq) { return *static_cast<Queue*>(hwq); }

XResult ToResult(CUresult result) { return result == CUDA_SUCCESS ? kXSchedSuccess : kXSchedErrorHardware; }

// Makes the queue's context current on a thread of ours: the default stream belongs to the current context.
class CurrentContext {
 public:
  CurrentContext(const Functions& next, CUcontext context)
      : next_(next), result_(next.cuCtxPushCurrent_v2(context)) {}
  ~CurrentContext() {
    CUcontext ours;
    if (pushed()) next_.cuCtxPopCurrent_v2(&ours);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

  bool pushed() const { return result_ == CUDA_SUCCESS; }
  CUresult result() const { return result_; }

 private:
  const Functions& next_;
  const CUresult result_;
};

// Makes the queue's context current for a launch, because the thread of a submit worker may have none. A
// green context that is current will do for its owner.
class LaunchingContext {
 public:
  explicit LaunchingContext(const Queue& queue) {
    CUcontext current = nullptr;
    const bool told = queue.next.cuCtxGetCurrent(&current) == CUDA_SUCCESS;
    if (!told || CudaOwnerOf(current) != queue.context) made_current_.emplace(queue.next, queue.context);
  }

 private:
  std::optional<CurrentContext> made_current_;
};

// The device's address of the control blocks' memory. 0: the driver refused. REQUIRES: capture mode is
// relaxed.
CUdeviceptr ShareMemory(Queue& queue, void* memory, size_t size) {
  CurrentContext current(queue.next, queue.context);  // not a green one, which may be current now
  const CUdeviceptr shared = SharedMemoryIn(queue.next, queue.context, memory, size);
  queue.shared_memory.store(shared, std::memory_order_relaxed);
  return shared;
}

void ShareMemoryOf(void* hwq, void* memory, size_t size) {
  ReentrancyGuard guard;
  RelaxedCaptureMode relaxed(Of(hwq).next);
  ShareMemory(Of(hwq), memory, size);
}

// The device's address of `word`, which is in words.memory. 0: the driver refused. REQUIRES: capture mode is
// relaxed.
CUdeviceptr DeviceAddress(Queue& queue, const XControlWords& words, const void* word) {
  CUdeviceptr memory = queue.shared_memory.load(std::memory_order_relaxed);
  if (memory == 0) [[unlikely]] {
    memory = ShareMemory(queue, words.memory, words.memory_size);
    if (memory == 0) return 0;
  }
  auto offset = static_cast<const char*>(word) - static_cast<const char*>(words.memory);
  return memory + static_cast<CUdeviceptr>(offset);
}

CUstreamBatchMemOpParams WriteOp(CUdeviceptr address, uint64_t value) {
  CUstreamBatchMemOpParams op{};
  op.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
  op.writeValue.address = address;
  op.writeValue.value64 = value;
  op.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
  return op;
}

CUstreamBatchMemOpParams WaitOp(CUdeviceptr address, uint32_t value, unsigned condition) {
  CUstreamBatchMemOpParams op{};
  op.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  op.waitValue.address = address;
  op.waitValue.value = value;
  op.waitValue.flags = condition;
  return op;
}

// The launching thread calls both.

XResult AppendInlineGate(void* hwq, const XControlWords* words, uint64_t number) {
  ReentrancyGuard guard;
  const Functions& next = Of(hwq).next;
  RelaxedCaptureMode relaxed(next);
  LaunchingContext current(Of(hwq));
  CUstreamBatchMemOpParams ops[4];
  unsigned count = 0;
  CUdeviceptr gate = DeviceAddress(Of(hwq), *words, words->gate);
  if (gate == 0) return kXSchedErrorHardware;
  if (words->retired != nullptr)
    ops[count++] = WriteOp(DeviceAddress(Of(hwq), *words, words->retired), number);
  ops[count++] = WaitOp(gate, words->gate_mask, CU_STREAM_WAIT_VALUE_AND);
  if (words->pause != nullptr)
    ops[count++] = WaitOp(DeviceAddress(Of(hwq), *words, words->pause), 0, CU_STREAM_WAIT_VALUE_EQ);
  if (words->passed != nullptr) ops[count++] = WriteOp(DeviceAddress(Of(hwq), *words, words->passed), number);
  return ToResult(next.cuStreamBatchMemOp_v2(Of(hwq).stream, count, ops, 0));
}

XResult AppendProgress(void* hwq, const XControlWords* words, uint64_t number) {
  ReentrancyGuard guard;
  const Functions& next = Of(hwq).next;
  RelaxedCaptureMode relaxed(next);
  LaunchingContext current(Of(hwq));
  CUdeviceptr retired = DeviceAddress(Of(hwq), *words, words->retired);
  if (retired == 0) return kXSchedErrorHardware;
  return ToResult(
      next.cuStreamWriteValue64_v2(Of(hwq).stream, retired, number, CU_STREAM_WRITE_VALUE_DEFAULT));
}

bool MeansThisQueueHere(const Queue& queue) {
  if (queue.stream == CU_STREAM_PER_THREAD && pthread_equal(queue.thread, pthread_self()) == 0) return false;
  if (queue.own_context == queue.context || !IsDefaultStream(queue.stream)) return true;
  CUcontext current = nullptr;
  return queue.next.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == queue.own_context;
}

bool TakesReports(void* hwq) {
  ReentrancyGuard guard;
  const Queue& queue = Of(hwq);
  if (!MeansThisQueueHere(queue)) return false;
  RelaxedCaptureMode relaxed(queue.next);
  LaunchingContext current(queue);
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  return queue.next.cuStreamIsCapturing(queue.stream, &capture) == CUDA_SUCCESS &&
         capture == CU_STREAM_CAPTURE_STATUS_NONE;
}

// Lets a thread of ours ask the driver about the stream. Not while the stream captures, because this would
// invalidate the capture.
class QuietStream {
 public:
  explicit QuietStream(const Queue& queue)
      : relaxed_(queue.next),
        current_(queue.next, queue.context),
        lost_(IsLost(current_.result())),
        quiet_(current_.pushed() && no_capture_begins_ && !Captures(queue)) {}
  explicit operator bool() const { return quiet_; }
  bool lost() const { return lost_; }

 private:
  bool Captures(const Queue& queue) {
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult asked = queue.next.cuStreamIsCapturing(queue.stream, &capture);
    lost_ = IsLost(asked);
    return asked != CUDA_SUCCESS || capture != CU_STREAM_CAPTURE_STATUS_NONE;
  }

  RelaxedCaptureMode relaxed_;
  CurrentContext current_;
  preempt::QueryLock no_capture_begins_;
  bool lost_;  // before the next, which may set it
  bool quiet_;
};

bool Finished(void* hwq) {
  ReentrancyGuard guard;
  const Queue& queue = Of(hwq);
  QuietStream quiet(queue);
  if (quiet.lost()) return true;
  if (!quiet) return false;
  // The program gets the error itself. Nothing of such a queue will run any more.
  return queue.next.cuStreamQuery(queue.stream) != CUDA_ERROR_NOT_READY;
}

// Asks the context and not the stream, which may not exist any more.
bool ContextLost(void* hwq) {
  ReentrancyGuard guard;
  const Queue& queue = Of(hwq);
  RelaxedCaptureMode relaxed(queue.next);
  CurrentContext current(queue.next, queue.context);
  if (!current.pushed()) return IsLost(current.result());
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  return IsLost(queue.next.cuStreamIsCapturing(CU_STREAM_LEGACY, &capture));
}

void NoteUrgency(void* hwq, int steps) {
  MutexLock lock(queues_mutex);
  Of(hwq).steps = steps;
}

std::optional<int> PriorityOf(const Functions& next, CUstream stream) {
  int priority = 0;
  if (next.cuStreamGetPriority == nullptr || next.cuStreamGetPriority(stream, &priority) != CUDA_SUCCESS)
    return std::nullopt;
  return priority;
}

// When a block of another stream's kernel ends, a stream of higher priority gets its place. So it does not
// wait for the end of the kernel, as it must at a gate.
XResult ApplyUrgency(void* hwq) {
  ReentrancyGuard guard;
  const Queue& queue = Of(hwq);
  const Functions& next = queue.next;
  if (next.cuStreamSetAttribute == nullptr || next.cuCtxGetStreamPriorityRange == nullptr)
    return kXSchedErrorNotSupported;
  RelaxedCaptureMode relaxed(next);
  CurrentContext current(next, queue.context);
  PriorityRange range{};
  if (!current.pushed() || next.cuCtxGetStreamPriorityRange(&range.least, &range.greatest) != CUDA_SUCCESS)
    return kXSchedErrorHardware;
  const std::optional<int> priority = PriorityFor(queue, range);
  if (!priority.has_value()) return kXSchedErrorNotSupported;
  // A capture that begins now may use the new or the old priority. No lock that a capture needs is held,
  // because the driver may wait for a launch that waits for room on a stream.
  if (!QuietStream(queue)) return kXSchedErrorNotAllowed;
  // The program may set it at any time, and then this is called again.
  if (PriorityOf(next, queue.stream) == priority) return kXSchedSuccess;
  const preempt::Barrier barrier;
  CUstreamAttrValue value{};
  value.priority = *priority;
  return ToResult(next.cuStreamSetAttribute(queue.stream, CU_STREAM_ATTRIBUTE_PRIORITY, &value));
}

XResult Synchronize(void* hwq) {
  ReentrancyGuard guard;
  const Queue& queue = Of(hwq);
  if (!MeansThisQueueHere(queue)) return kXSchedErrorNotAllowed;
  RelaxedCaptureMode relaxed(queue.next);
  CurrentContext current(queue.next, queue.context);
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult asked = queue.next.cuStreamIsCapturing(queue.stream, &capture);
  if (asked == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT || capture != CU_STREAM_CAPTURE_STATUS_NONE)
    return kXSchedErrorNotAllowed;
  return ToResult(queue.next.cuStreamSynchronize(queue.stream));
}

XResult Interrupt(void* hwq) { return InterruptQueue(Of(hwq).device); }
XResult Restore(void* hwq) { return RestoreQueue(Of(hwq).device); }

void Destroy(void* hwq) {
  RemoveQueue(&Of(hwq));
  delete &Of(hwq);
}

XHwQueueOps OpsFor(const Queue& queue, bool level3) {
  XHwQueueOps ops{};
  ops.size = sizeof ops;
  ops.platform = kPlatformCUDA;
  ops.max_level = level3 ? kPreemptLevelInterrupt : kPreemptLevelDeactivate;
  ops.gating = kGatingDeviceGates;
  ops.share_memory = ShareMemoryOf;
  ops.append_device_gate = AppendInlineGate;
  ops.append_progress = AppendProgress;
  ops.takes_reports = TakesReports;
  ops.context_lost = ContextLost;
  if (!queue.known_to_launching_thread_only) {
    ops.finished = Finished;
    ops.note_urgency = NoteUrgency;
    ops.apply_urgency = ApplyUrgency;
  }
  ops.runs_beside_others = !UnderMps();
  if (level3) {
    ops.interrupt = Interrupt;
    ops.restore = Restore;
    ops.time_slices = true;
  }
  ops.synchronize = Synchronize;
  ops.destroy = Destroy;
  return ops;
}

}  // namespace
}  // namespace xsched::cuda

XResult CudaQueueRegister(const xsched::cuda::Functions* next, CUcontext context, CUstream stream,
                          uint64_t key, HwQueueHandle* out) {
  using namespace xsched::cuda;
  ReentrancyGuard guard;
  DeviceIdentity identity;
  if (!IdentifyCurrentDevice(*next, &identity)) return kXSchedErrorHardware;
  const CUcontext owner = CudaOwnerOf(context);
  const bool launching_thread_only =
      stream == CU_STREAM_PER_THREAD || (owner != context && IsDefaultStream(stream));
  auto* hwq = new (std::nothrow) Queue{*next,
                                       owner,
                                       context,
                                       stream,
                                       launching_thread_only,
                                       pthread_self(),
                                       identity.device,
                                       key,
                                       PriorityOf(*next, stream)};
  if (hwq == nullptr) return kXSchedErrorUnknown;
  AddQueue(hwq);
  const XHwQueueOps ops = OpsFor(*hwq, QueueMade(identity.device));
  const XHwQueueInfo info{identity.device, identity.name, key, reinterpret_cast<uint64_t>(owner)};
  XResult result = HwQueueRegister(&ops, hwq, &info, out);
  if (result != kXSchedSuccess) Destroy(hwq);
  return result;
}

bool CudaOwnPriority(uint64_t key, int* priority) {
  using namespace xsched::cuda;
  xsched::MutexLock lock(queues_mutex);
  const Queue* queue = FindByKey(key);
  if (queue == nullptr || !queue->own_priority.has_value()) return false;
  *priority = *queue->own_priority;
  return true;
}

void CudaOwnPriorityIs(uint64_t key, int priority) {
  using namespace xsched::cuda;
  xsched::MutexLock lock(queues_mutex);
  if (Queue* queue = FindByKey(key)) queue->own_priority = priority;
}

void CudaContextGoes(CUcontext context) {
  xsched::preempt::ContextGoes(reinterpret_cast<uint64_t>(context));
  xsched::cuda::ForgetSharedMemory(context);
}

void CudaContextGone(CUcontext context) {
  xsched::cuda::ReuseSharedMemory(context);
  xsched::preempt::ContextGone(reinterpret_cast<uint64_t>(context));
}

void CudaContextStays(CUcontext context) {
  xsched::preempt::ContextStays(reinterpret_cast<uint64_t>(context));
}
