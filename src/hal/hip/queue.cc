#include "hal/hip/queue.h"

#include <pthread.h>

#include <new>

#include "hal/hip/capturing.h"
#include "hal/hip/device.h"
#include "hal/hip/last_error.h"
#include "hal/hip/markers.h"
#include "hal/hip/own_calls.h"
#include "hal/hip/suspension.h"
#include "preempt/api/later_runtime.h"
#include "preempt/api/query_lock.h"

namespace xsched::hip {
namespace {

using preempt::ReentrancyGuard;

struct Queue {
  const Functions& next;
  const int device;
  const hipStream_t stream;
  const hipStream_t queried;  // the same stream, by the handle for hipStreamQuery
  const pthread_t thread;     // of a thread's default stream: that thread
  const XDevice address;
  const std::atomic<uint32_t>* const blocking_streams;
  Markers markers;
};

Queue& QueueOf(void* hwq) { return *static_cast<Queue*>(hwq); }

// On another thread, "per thread" means another stream, and a question about it makes that stream.
bool IsAnotherThreads(const Queue& queue) {
  return queue.stream == kHipStreamPerThread && pthread_equal(queue.thread, pthread_self()) == 0;
}

bool IsCapturing(const Queue& queue) { return AskWhetherCapturing(queue.next, queue.stream); }

XResult AppendMarker(void* hwq, uint64_t ticket) {
  Queue& queue = QueueOf(hwq);
  const OwnCallsOn ours(queue.next, queue.device);
  preempt::QueryLock no_capture_begins;
  if (!ours || IsCapturing(queue)) return kXSchedErrorHardware;
  // No other thread may poll now, because the events are reused.
  queue.markers.Poll(queue.next);
  return queue.markers.Append(queue.next, queue.stream, ticket) ? kXSchedSuccess : kXSchedErrorHardware;
}

void PollMarkers(void* hwq) {
  Queue& queue = QueueOf(hwq);
  if (!queue.markers.AnyToPoll()) return;
  const OwnCallsOn ours(queue.next, queue.device);
  preempt::QueryLock no_capture_begins;
  if (!ours || !no_capture_begins) return;
  // From ROCm 6.2 to 7.1, a query of an event invalidates a capture of the stream on which the event was
  // recorded last, even if that was before the capture. The null stream cannot capture. Another thread's
  // stream cannot be asked; before its capture, its markers were put away.
  if (queue.stream != kHipStreamNull && !IsAnotherThreads(queue) && IsCapturing(queue)) return;
  queue.markers.Poll(queue.next);
}

void PutMarkersAway(void* hwq) { QueueOf(hwq).markers.PutAway(); }

// Before the runtime answers about the null stream by its handle 0, it makes that stream wait for all that
// blocking streams have to do, and the next work of these waits for it. Streams that are independent would
// wait for each other, and if the program needs two of them at the same time, for ever. From HIP 6.4 on, a
// query by the handle 1 does without that. Some builds of 6.2 and 6.3 crash then; older ones do not know it.
// Events are not recorded by that handle: also later versions crash when they are asked about.
constexpr int kQueriesHandle1 = 60'400'000;

hipStream_t HandleForQuery(const Functions& next, hipStream_t stream) {
  int version = 0;
  const bool by_1 = stream == kHipStreamNull && next.hipRuntimeGetVersion != nullptr &&
                    next.hipRuntimeGetVersion(&version) == hipSuccess && version >= kQueriesHandle1;
  return by_1 ? kHipStreamLegacy : stream;
}

bool OnlyLauncherAsks(void* hwq) {
  const Queue& queue = QueueOf(hwq);
  return queue.blocking_streams != nullptr && queue.blocking_streams->load(std::memory_order_acquire) != 0;
}

bool Finished(void* hwq) {
  const Queue& queue = QueueOf(hwq);
  const OwnCallsOn ours(queue.next, queue.device);
  preempt::QueryLock no_capture_begins;
  if (!ours || !no_capture_begins || IsCapturing(queue)) return false;
  // The program gets the error itself. Nothing of such a queue will run any more.
  return queue.next.hipStreamQuery(queue.queried) != hipErrorNotReady;
}

XResult Synchronize(void* hwq) {
  const Queue& queue = QueueOf(hwq);
  if (IsAnotherThreads(queue)) return kXSchedErrorNotAllowed;
  const OwnCallsOn ours(queue.next, queue.device);
  if (!ours) return kXSchedErrorHardware;
  if (IsCapturing(queue)) return kXSchedErrorNotAllowed;
  return queue.next.hipStreamSynchronize(queue.stream) == hipSuccess ? kXSchedSuccess : kXSchedErrorHardware;
}

XResult ToResult(bool done) { return done ? kXSchedSuccess : kXSchedErrorHardware; }

// Levels 2 and 3. They call only the kernel's driver: the runtime may wait for suspended work and hold locks
// meanwhile.
XResult Deactivate(void* hwq) { return ToResult(OwnHardwareQueues().StopStream(QueueOf(hwq).stream)); }
XResult Reactivate(void* hwq) { return ToResult(OwnHardwareQueues().LetStreamGo(QueueOf(hwq).stream)); }
XResult Interrupt(void* hwq) { return ToResult(OwnHardwareQueues().StopDevice(QueueOf(hwq).address)); }
XResult Restore(void* hwq) { return ToResult(OwnHardwareQueues().LetDeviceGo(QueueOf(hwq).address)); }

void Destroy(void* hwq) {
  Queue& queue = QueueOf(hwq);
  {
    ReentrancyGuard guard;
    KeepLastError keep(queue.next);
    queue.markers.Drop(queue.next);
  }
  delete &queue;
}

void AddLevels(XHwQueueOps& ops, Suspension suspension) {
  if (suspension == Suspension::kNone) return;
  ops.max_level = MostLevel();
  if (suspension == Suspension::kStream) {
    ops.deactivate = Deactivate;
    ops.reactivate = Reactivate;
    ops.deactivate_interrupts = true;
  } else {
    ops.interrupt = Interrupt;
    ops.restore = Restore;
  }
}

XHwQueueOps OpsFor(const Queue& queue, Suspension suspension) {
  XHwQueueOps ops{};
  ops.size = sizeof ops;
  ops.platform = kPlatformHIP;
  ops.max_level = kPreemptLevelBlock;
  AddLevels(ops, suspension);
  ops.gating = kGatingCallerWaits;
  ops.append_marker = AppendMarker;
  ops.poll_markers = PollMarkers;
  ops.put_markers_away = PutMarkersAway;
  // On another thread, "per thread" means another stream.
  if (queue.stream != kHipStreamPerThread && queue.next.hipStreamQuery != nullptr) ops.finished = Finished;
  if (queue.queried == kHipStreamNull) ops.only_launcher_asks = OnlyLauncherAsks;
  ops.synchronize = Synchronize;
  ops.destroy = Destroy;
  return ops;
}

// The agent starts with the first queue, when the runtime of that queue is there.
void WhenUsed(const Runtime& runtime) {
  static std::atomic<uint32_t> used{0};  // runtimes, by their index
  const uint32_t bit = uint32_t{1} << runtime.index();
  const uint32_t before = used.fetch_or(bit, std::memory_order_relaxed);
  if (before != 0 && (before & bit) == 0) preempt::ShutDownBeforeLaterRuntime();
}

}  // namespace
}  // namespace xsched::hip

XResult HipQueueRegister(const xsched::hip::Runtime* runtime, int device, hipStream_t stream, uint64_t key,
                         const std::atomic<uint32_t>* blocking_streams, HwQueueHandle* out) {
  using namespace xsched::hip;
  ReentrancyGuard guard;
  const Functions& next = runtime->next();
  KeepLastError keep(next);
  DeviceIdentity identity;
  if (!IdentifyDevice(next, device, &identity)) return kXSchedErrorHardware;
  auto* hwq = new (std::nothrow)
      Queue{next,           device,          stream,           HandleForQuery(next, stream),
            pthread_self(), identity.device, blocking_streams, {}};
  if (hwq == nullptr) return kXSchedErrorUnknown;
  WhenUsed(*runtime);
  const XHwQueueOps ops = OpsFor(*hwq, SuspensionOf(identity.device, stream));
  const XHwQueueInfo info{identity.device, identity.name, key};
  XResult result = HwQueueRegister(&ops, hwq, &info, out);
  if (result != kXSchedSuccess) Destroy(hwq);
  return result;
}
