#include "hal/opencl/queue.h"

#include <new>

#include "hal/opencl/device.h"
#include "preempt/api/launch.h"

namespace xsched::opencl {
namespace {

using preempt::OwnDriverCall;

// It has no reference: the queue must live until `destroy`, unless `retain` is called. The context lives as
// long as its queue.
struct Queue {
  const Functions& next;
  cl_command_queue queue;
  cl_context context;
};

Queue& Of(void* hwq) { return *static_cast<Queue*>(hwq); }

XResult ToResult(cl_int error) { return error == CL_SUCCESS ? kXSchedSuccess : kXSchedErrorHardware; }

// A gate is a user event for which a barrier waits. It holds later commands, also on out-of-order queues.
XResult AppendGate(void* hwq, uint64_t* gate) {
  OwnDriverCall guard;
  const Functions& next = Of(hwq).next;
  cl_int error = CL_SUCCESS;
  cl_event event = next.clCreateUserEvent(Of(hwq).context, &error);
  if (error != CL_SUCCESS) return kXSchedErrorHardware;
  error = next.clEnqueueBarrierWithWaitList(Of(hwq).queue, 1, &event, nullptr);
  if (error != CL_SUCCESS) {
    next.clSetUserEventStatus(event, CL_COMPLETE);
    next.clReleaseEvent(event);
    return kXSchedErrorHardware;
  }
  *gate = reinterpret_cast<uint64_t>(event);
  return kXSchedSuccess;
}

XResult OpenGate(void* hwq, uint64_t gate) {
  OwnDriverCall guard;
  auto event = reinterpret_cast<cl_event>(gate);
  const cl_int error = Of(hwq).next.clSetUserEventStatus(event, CL_COMPLETE);
  // All other errors say that this event cannot be closed.
  if (error == CL_OUT_OF_HOST_MEMORY || error == CL_OUT_OF_RESOURCES) return kXSchedErrorHardware;
  Of(hwq).next.clReleaseEvent(event);
  return kXSchedSuccess;
}

void CL_CALLBACK MarkerReached(cl_event, cl_int, void* ticket) {
  HwQueueRetired(reinterpret_cast<uint64_t>(ticket));
}

// Markers of failed commands count as well: the callback comes with a negative status. Not with PoCL 3.1: it
// calls no callback for CL_COMPLETE then, and ends the process if nobody else keeps the marker's event.
XResult ReportEvent(const Functions& next, cl_event event, uint64_t ticket) {
  cl_int error = next.clSetEventCallback(event, CL_COMPLETE, MarkerReached, reinterpret_cast<void*>(ticket));
  // The driver keeps the event until it has happened.
  next.clReleaseEvent(event);
  return ToResult(error);
}

XResult AppendMarker(void* hwq, uint64_t ticket) {
  OwnDriverCall guard;
  const Functions& next = Of(hwq).next;
  cl_event event = nullptr;
  cl_int error = next.clEnqueueMarkerWithWaitList(Of(hwq).queue, 0, nullptr, &event);
  return error == CL_SUCCESS ? ReportEvent(next, event, ticket) : kXSchedErrorHardware;
}

XResult AppendMarkerOfOpenCL11(void* hwq, uint64_t ticket) {
  OwnDriverCall guard;
  const Functions& next = Of(hwq).next;
  cl_event event = nullptr;
  cl_int error = next.clEnqueueMarker(Of(hwq).queue, &event);
  return error == CL_SUCCESS ? ReportEvent(next, event, ticket) : kXSchedErrorHardware;
}

void Flush(void* hwq) {
  OwnDriverCall guard;
  Of(hwq).next.clFlush(Of(hwq).queue);
}

XResult Synchronize(void* hwq) {
  OwnDriverCall guard;
  return ToResult(Of(hwq).next.clFinish(Of(hwq).queue));
}

void Retain(void* hwq) {
  OwnDriverCall guard;
  Of(hwq).next.clRetainCommandQueue(Of(hwq).queue);
}

void Release(void* hwq) {
  OwnDriverCall guard;
  Of(hwq).next.clReleaseCommandQueue(Of(hwq).queue);
}

void Destroy(void* hwq) { delete &Of(hwq); }

XHwQueueOps OpsFor(const Functions& next, int version) {
  XHwQueueOps ops{};
  ops.size = sizeof ops;
  ops.platform = kPlatformOpenCL;
  ops.max_level = kPreemptLevelBlock;
  ops.gating = kGatingCallerWaits;
  if (version >= 102 && next.clEnqueueBarrierWithWaitList != nullptr) {
    ops.gating = kGatingHostGates;
    ops.append_gate = AppendGate;
    ops.open_gate = OpenGate;
  }
  if (version >= 102 && next.clEnqueueMarkerWithWaitList != nullptr) {
    ops.append_marker = AppendMarker;
  } else if (version >= 101) {
    ops.append_marker = AppendMarkerOfOpenCL11;
  }
  ops.flush = Flush;
  ops.synchronize = Synchronize;
  ops.retain = Retain;
  ops.release = Release;
  ops.destroy = Destroy;
  return ops;
}

template <typename Value>
bool Query(const Functions& next, cl_command_queue queue, cl_command_queue_info what, Value* value) {
  return next.clGetCommandQueueInfo(queue, what, sizeof *value, value, nullptr) == CL_SUCCESS;
}

}  // namespace
}  // namespace xsched::opencl

XResult OclQueueRegister(const xsched::opencl::Functions* next, cl_command_queue queue, HwQueueHandle* out) {
  using namespace xsched::opencl;
  xsched::preempt::ReentrancyGuard guard;
  cl_context context = nullptr;
  cl_device_id device = nullptr;
  cl_command_queue_properties properties = 0;
  if (queue == nullptr || !Query(*next, queue, CL_QUEUE_CONTEXT, &context) ||
      !Query(*next, queue, CL_QUEUE_DEVICE, &device) ||
      !Query(*next, queue, CL_QUEUE_PROPERTIES, &properties) || (properties & CL_QUEUE_ON_DEVICE) != 0) {
    return kXSchedErrorInvalidValue;
  }
  auto* hwq = new (std::nothrow) Queue{*next, queue, context};
  if (hwq == nullptr) return kXSchedErrorUnknown;
  const DeviceIdentity identity = IdentifyDevice(*next, device);
  XHwQueueOps ops = OpsFor(*next, DeviceVersion(*next, device));
  ops.opening_runs_commands = RunsCommandsInCalls(*next, device);
  ops.out_of_order = (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0;
  const XHwQueueInfo info{identity.device, identity.name, reinterpret_cast<uint64_t>(queue), 0};
  XResult result = HwQueueRegister(&ops, hwq, &info, out);
  if (result != kXSchedSuccess) delete hwq;
  return result;
}
