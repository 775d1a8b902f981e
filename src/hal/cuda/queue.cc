#include "hal/cuda/queue.h"

#include <algorithm>
#include <new>
#include <optional>

#include "hal/cuda/capture_mode.h"
#include "hal/cuda/device.h"
#include "hal/cuda/level3.h"
#include "hal/cuda/shared_memory.h"
#include "preempt/launch.h"
#include "preempt/query_lock.h"

namespace xsched::cuda {
namespace {

using preempt::ReentrancyGuard;

struct Queue {
  const Functions& next;
  CUcontext context;
  CUstream stream;
  XDevice device;
  std::optional<int> own_priority;  // as the program made it; known once it has been changed
};

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

// Both are called by who launches, so that the stream's context is current.

XResult AppendInlineGate(void* hwq, const XControlWords* words, uint64_t number) {
  ReentrancyGuard guard;
  const Functions& next = Of(hwq).next;
  RelaxedCaptureMode relaxed(next);
  CUstreamBatchMemOpParams ops[4];
  unsigned count = 0;
  CUdeviceptr gate = DeviceAddress(next, *words, words->gate);
  if (gate == 0) return kXSchedErrorHardware;
  ops[count++] = WriteOp(DeviceAddress(next, *words, words->retired), number);
  ops[count++] = WaitOp(gate, words->gate_mask, CU_STREAM_WAIT_VALUE_AND);
  if (words->pause != nullptr) {
    ops[count++] = WaitOp(DeviceAddress(next, *words, words->pause), 0, CU_STREAM_WAIT_VALUE_EQ);
    ops[count++] = WriteOp(DeviceAddress(next, *words, words->passed), number);
  }
  return ToResult(next.cuStreamBatchMemOp_v2(Of(hwq).stream, count, ops, 0));
}

XResult AppendProgress(void* hwq, const XControlWords* words, uint64_t number) {
  ReentrancyGuard guard;
  const Functions& next = Of(hwq).next;
  RelaxedCaptureMode relaxed(next);
  CUdeviceptr retired = DeviceAddress(next, *words, words->retired);
  if (retired == 0) return kXSchedErrorHardware;
  return ToResult(
      next.cuStreamWriteValue64_v2(Of(hwq).stream, retired, number, CU_STREAM_WRITE_VALUE_DEFAULT));
}

// The stream as another thread may ask the driver about it. Not while it captures: that would spoil it.
class QuietStream {
 public:
  explicit QuietStream(const Queue& queue)
      : relaxed_(queue.next),
        current_(queue.next, queue.context),
        quiet_(current_.pushed() && !Captures(queue)) {}
  explicit operator bool() const { return quiet_; }

 private:
  static bool Captures(const Queue& queue) {
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    return queue.next.cuStreamIsCapturing(queue.stream, &capture) != CUDA_SUCCESS ||
           capture != CU_STREAM_CAPTURE_STATUS_NONE;
  }

  RelaxedCaptureMode relaxed_;
  CurrentContext current_;
  preempt::QueryLock no_capture_begins_;
  bool quiet_;
};

bool Finished(void* hwq) {
  ReentrancyGuard guard;
  const Queue& queue = Of(hwq);
  QuietStream quiet(queue);
  if (!quiet) return false;
  // An error is for the program to find: nothing of such a queue will run any more.
  return queue.next.cuStreamQuery(queue.stream) != CUDA_ERROR_NOT_READY;
}

// A stream of higher priority is given the place of each block of another's kernel that ends: it need not
// wait for the end of the kernel, as it must at a gate.
XResult SetUrgency(void* hwq, int steps) {
  ReentrancyGuard guard;
  Queue& queue = Of(hwq);
  const Functions& next = queue.next;
  if (next.cuStreamSetAttribute == nullptr || next.cuCtxGetStreamPriorityRange == nullptr)
    return kXSchedErrorNotSupported;
  QuietStream quiet(queue);
  if (!quiet) return kXSchedErrorNotAllowed;
  int least = 0;
  int greatest = 0;
  next.cuCtxGetStreamPriorityRange(&least, &greatest);
  if (!queue.own_priority.has_value()) {
    int own = least;
    if (next.cuStreamGetPriority(queue.stream, &own) != CUDA_SUCCESS) return kXSchedErrorHardware;
    queue.own_priority = own;
  }
  CUstreamAttrValue value{};
  value.priority = std::clamp(*queue.own_priority - steps, greatest, least);  // less is more urgent
  return ToResult(next.cuStreamSetAttribute(queue.stream, CU_STREAM_ATTRIBUTE_PRIORITY, &value));
}

XResult Synchronize(void* hwq) {
  ReentrancyGuard guard;
  const Queue& queue = Of(hwq);
  CurrentContext current(queue.next, queue.context);
  return ToResult(queue.next.cuStreamSynchronize(queue.stream));
}

XResult Interrupt(void* hwq) { return InterruptQueue(Of(hwq).device); }
XResult Restore(void* hwq) { return RestoreQueue(Of(hwq).device); }

void Destroy(void* hwq) { delete &Of(hwq); }

XHwQueueOps OpsFor(CUstream stream, bool level3) {
  XHwQueueOps ops{};
  ops.size = sizeof ops;
  ops.platform = kPlatformCUDA;
  ops.max_level = level3 ? kPreemptLevelInterrupt : kPreemptLevelDeactivate;
  ops.append_inline_gate = AppendInlineGate;
  ops.append_progress = AppendProgress;
  // "Per thread" means another stream on another thread.
  if (stream != CU_STREAM_PER_THREAD) {
    ops.finished = Finished;
    ops.set_urgency = SetUrgency;
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
  auto* hwq = new (std::nothrow) Queue{*next, context, stream, identity.device, std::nullopt};
  if (hwq == nullptr) return kXSchedErrorUnknown;
  const XHwQueueOps ops = OpsFor(stream, QueueMade(identity.device));
  const XHwQueueInfo info{identity.device, identity.name, key};
  XResult result = HwQueueRegister(&ops, hwq, &info, out);
  if (result != kXSchedSuccess) Destroy(hwq);
  return result;
}

void CudaContextGone(CUcontext context) { xsched::cuda::ForgetSharedMemory(context); }
