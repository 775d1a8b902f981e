#include "hal/cuda/queue.h"

#include <pthread.h>

#include <atomic>
#include <new>
#include <optional>

#include "base/mutex.h"
#include "hal/cuda/capture_mode.h"
#include "hal/cuda/device.h"
#include "hal/cuda/level3.h"
#include "hal/cuda/shared_memory.h"
#include "hal/cuda/stream_priority.h"
#include "preempt/api/launch.h"
#include "preempt/queue/query_lock.h"

namespace xsched::cuda {
namespace {

using preempt::ReentrancyGuard;

struct Queue {
  const Functions& next;
  CUcontext context;
  CUstream stream;
  XDevice device;
  std::optional<int> own_priority;            // as the program made it; known once it has been changed
  std::atomic<CUdeviceptr> shared_memory{0};  // the control blocks', as the context sees it; 0: not asked yet
  std::optional<int> priority = own_priority;  // that it has; ApplyUrgency's, one call at a time
  // Under queues_mutex.
  int steps = 0;
  Queue* next_queue = nullptr;
};

constinit Mutex queues_mutex;
constinit Queue* all_queues = nullptr;

void AddQueue(Queue* queue) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] { pthread_atfork(nullptr, nullptr, [] { queues_mutex.ResetAfterFork(); }); });
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

// Among the process's streams on the queue's device.
int PriorityFor(const Queue& queue, PriorityRange range) {
  MutexLock lock(queues_mutex);
  return PriorityAmong(*queue.own_priority - queue.steps, range, [&queue](auto&& visit) {
    for (const Queue* other = all_queues; other != nullptr; other = other->next_queue) {
      if (other->device == queue.device && other->own_priority.has_value())
        visit(*other->own_priority - other->steps);
    }
  });
}

Queue& Of(void* hwq) { return *static_cast<Queue*>(hwq); }

XResult ToResult(CUresult result) { return result == CUDA_SUCCESS ? kXSchedSuccess : kXSchedErrorHardware; }

// For threads that are not the program's: the default stream is that of the current context.
class CurrentContext {
 public:
  CurrentContext(const Functions& next, CUcontext context)
      : next_(next), pushed_(next.cuCtxPushCurrent_v2(context) == CUDA_SUCCESS) {}
  ~CurrentContext() {
    CUcontext ours;
    if (pushed_) next_.cuCtxPopCurrent_v2(&ours);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

  bool pushed() const { return pushed_; }

 private:
  const Functions& next_;
  bool pushed_;
};

// Makes the queue's context current for a launch: the thread of a submit worker may have none.
class LaunchingContext {
 public:
  explicit LaunchingContext(const Queue& queue) {
    CUcontext current = nullptr;
    const bool told = queue.next.cuCtxGetCurrent(&current) == CUDA_SUCCESS;
    if (!told || current != queue.context) made_current_.emplace(queue.next, queue.context);
  }

 private:
  std::optional<CurrentContext> made_current_;
};

// The device's address of `word`, which lies in words.memory; 0: the driver refused. REQUIRES: the queue's
// context is current, and capture mode is relaxed.
CUdeviceptr DeviceAddress(Queue& queue, const XControlWords& words, const void* word) {
  CUdeviceptr memory = queue.shared_memory.load(std::memory_order_relaxed);
  if (memory == 0) [[unlikely]] {
    memory = SharedMemoryIn(queue.next, queue.context, words.memory, words.memory_size);
    if (memory == 0) return 0;
    queue.shared_memory.store(memory, std::memory_order_relaxed);
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
  ops[count++] = WriteOp(DeviceAddress(Of(hwq), *words, words->retired), number);
  ops[count++] = WaitOp(gate, words->gate_mask, CU_STREAM_WAIT_VALUE_AND);
  if (words->pause != nullptr) {
    ops[count++] = WaitOp(DeviceAddress(Of(hwq), *words, words->pause), 0, CU_STREAM_WAIT_VALUE_EQ);
    ops[count++] = WriteOp(DeviceAddress(Of(hwq), *words, words->passed), number);
  }
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

// The context is lost: every further call fails with the same, and nothing of it runs or writes any more.
bool IsLost(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
      return true;
    default:
      return false;
  }
}

// The stream as another thread may ask the driver about it. Not while it captures: that would spoil it.
class QuietStream {
 public:
  explicit QuietStream(const Queue& queue)
      : relaxed_(queue.next),
        current_(queue.next, queue.context),
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
  bool lost_ = false;  // before the next, which sets it
  bool quiet_;
};

bool Finished(void* hwq) {
  ReentrancyGuard guard;
  const Queue& queue = Of(hwq);
  QuietStream quiet(queue);
  if (quiet.lost()) return true;
  if (!quiet) return false;
  // An error is for the program to find: nothing of such a queue will run any more.
  return queue.next.cuStreamQuery(queue.stream) != CUDA_ERROR_NOT_READY;
}

void NoteUrgency(void* hwq, int steps) {
  MutexLock lock(queues_mutex);
  Of(hwq).steps = steps;
}

// A stream of higher priority is given the place of each block of another's kernel that ends: it need not
// wait for the end of the kernel, as it must at a gate.
XResult ApplyUrgency(void* hwq) {
  ReentrancyGuard guard;
  Queue& queue = Of(hwq);
  const Functions& next = queue.next;
  if (next.cuStreamSetAttribute == nullptr || next.cuCtxGetStreamPriorityRange == nullptr ||
      !queue.own_priority.has_value())
    return kXSchedErrorNotSupported;
  RelaxedCaptureMode relaxed(next);
  CurrentContext current(next, queue.context);
  PriorityRange range{};
  if (!current.pushed() || next.cuCtxGetStreamPriorityRange(&range.least, &range.greatest) != CUDA_SUCCESS)
    return kXSchedErrorHardware;
  const int priority = PriorityFor(queue, range);
  if (priority == queue.priority) return kXSchedSuccess;
  // A capture that begins from here on captures with the new priority, or with the old one. So no lock is
  // held that a capture would wait for: the driver may wait for a launch that waits for room on a stream.
  if (!QuietStream(queue)) return kXSchedErrorNotAllowed;
  const preempt::Barrier barrier;
  CUstreamAttrValue value{};
  value.priority = priority;
  const CUresult result = next.cuStreamSetAttribute(queue.stream, CU_STREAM_ATTRIBUTE_PRIORITY, &value);
  if (result == CUDA_SUCCESS) queue.priority = priority;
  return ToResult(result);
}

XResult Synchronize(void* hwq) {
  ReentrancyGuard guard;
  const Queue& queue = Of(hwq);
  CurrentContext current(queue.next, queue.context);
  return ToResult(queue.next.cuStreamSynchronize(queue.stream));
}

XResult Interrupt(void* hwq) { return InterruptQueue(Of(hwq).device); }
XResult Restore(void* hwq) { return RestoreQueue(Of(hwq).device); }

void Destroy(void* hwq) {
  RemoveQueue(&Of(hwq));
  delete &Of(hwq);
}

std::optional<int> PriorityOf(const Functions& next, CUstream stream) {
  int priority = 0;
  if (next.cuStreamGetPriority == nullptr || next.cuStreamGetPriority(stream, &priority) != CUDA_SUCCESS)
    return std::nullopt;
  return priority;
}

XHwQueueOps OpsFor(CUstream stream, bool level3) {
  XHwQueueOps ops{};
  ops.size = sizeof ops;
  ops.platform = kPlatformCUDA;
  ops.max_level = level3 ? kPreemptLevelInterrupt : kPreemptLevelDeactivate;
  ops.gating = kGatingDeviceGates;
  ops.append_device_gate = AppendInlineGate;
  ops.append_progress = AppendProgress;
  // "Per thread" means another stream on another thread.
  if (stream != CU_STREAM_PER_THREAD) {
    ops.finished = Finished;
    ops.note_urgency = NoteUrgency;
    ops.apply_urgency = ApplyUrgency;
  }
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
  auto* hwq = new (std::nothrow) Queue{*next, context, stream, identity.device, PriorityOf(*next, stream)};
  if (hwq == nullptr) return kXSchedErrorUnknown;
  AddQueue(hwq);
  const XHwQueueOps ops = OpsFor(stream, QueueMade(identity.device));
  const XHwQueueInfo info{identity.device, identity.name, key, reinterpret_cast<uint64_t>(context)};
  XResult result = HwQueueRegister(&ops, hwq, &info, out);
  if (result != kXSchedSuccess) Destroy(hwq);
  return result;
}

void CudaContextGoes(CUcontext context) { xsched::cuda::ForgetSharedMemory(context); }
void CudaContextGone(CUcontext context) { xsched::cuda::ReuseSharedMemory(context); }
