// OpenCL's HAL: gates are barriers that wait for a user event, markers are markers with a callback.
#include "xsched/opencl/hal.h"

#include <dlfcn.h>

#include <new>

#include "base/env.h"
#include "base/log.h"
#include "base/mutex.h"
#include "hal/opencl/device_id.h"
#include "hal/opencl/driver.h"
#include "preempt/launch.h"

namespace xsched::opencl {
namespace {

struct OclQueue {
  const OclDriver* driver;
  cl_command_queue queue;
  cl_context context;
};

OclQueue& Queue(void* hwq) { return *static_cast<OclQueue*>(hwq); }

XResult AppendGate(void* hwq, uint64_t* gate) {
  const OclQueue& self = Queue(hwq);
  preempt::ReentrancyGuard guard;
  cl_int error;
  cl_event event = self.driver->clCreateUserEvent(self.context, &error);
  if (error != CL_SUCCESS) return kXSchedErrorHardware;
  // Later commands wait for the barrier, on out-of-order queues as well; earlier ones do not.
  if (self.driver->clEnqueueBarrierWithWaitList(self.queue, 1, &event, nullptr) != CL_SUCCESS) {
    self.driver->clReleaseEvent(event);
    return kXSchedErrorHardware;
  }
  *gate = reinterpret_cast<uint64_t>(event);
  return kXSchedSuccess;
}

void OpenGate(void* hwq, uint64_t gate) {
  const OclQueue& self = Queue(hwq);
  preempt::ReentrancyGuard guard;
  auto event = reinterpret_cast<cl_event>(gate);
  self.driver->clSetUserEventStatus(event, CL_COMPLETE);
  self.driver->clReleaseEvent(event);
}

void CL_CALLBACK MarkerDone(cl_event, cl_int, void* ticket) { HwQueueRetired(reinterpret_cast<uint64_t>(ticket)); }

XResult AppendMarker(void* hwq, uint64_t ticket) {
  const OclQueue& self = Queue(hwq);
  preempt::ReentrancyGuard guard;
  cl_event event;
  // With an empty wait list: behind everything enqueued, on out-of-order queues as well.
  if (self.driver->clEnqueueMarkerWithWaitList(self.queue, 0, nullptr, &event) != CL_SUCCESS) return kXSchedErrorHardware;
  // Called for a failed command, too.
  cl_int set = self.driver->clSetEventCallback(event, CL_COMPLETE, MarkerDone, reinterpret_cast<void*>(ticket));
  self.driver->clReleaseEvent(event);
  return set == CL_SUCCESS ? kXSchedSuccess : kXSchedErrorHardware;
}

void Flush(void* hwq) {
  preempt::ReentrancyGuard guard;
  Queue(hwq).driver->clFlush(Queue(hwq).queue);
}

XResult Synchronize(void* hwq) {
  preempt::ReentrancyGuard guard;
  return Queue(hwq).driver->clFinish(Queue(hwq).queue) == CL_SUCCESS ? kXSchedSuccess : kXSchedErrorHardware;
}

void Retain(void* hwq) {
  preempt::ReentrancyGuard guard;
  Queue(hwq).driver->clRetainCommandQueue(Queue(hwq).queue);
}

void Release(void* hwq) {
  preempt::ReentrancyGuard guard;
  Queue(hwq).driver->clReleaseCommandQueue(Queue(hwq).queue);
}

XHwQueueOps MakeOps(const OclDriver& driver) {
  XHwQueueOps ops{};
  ops.size = sizeof ops;
  ops.platform = kPlatformOpenCL;
  ops.max_level = kPreemptLevelBlock;
  bool markers = driver.clEnqueueMarkerWithWaitList != nullptr && driver.clSetEventCallback != nullptr;
  bool gates = markers && driver.clEnqueueBarrierWithWaitList != nullptr && driver.clCreateUserEvent != nullptr &&
               driver.clSetUserEventStatus != nullptr;
  ops.append_gate = gates ? AppendGate : nullptr;
  ops.open_gate = gates ? OpenGate : nullptr;
  ops.append_marker = markers ? AppendMarker : nullptr;
  ops.flush = Flush;
  ops.synchronize = Synchronize;
  ops.retain = Retain;
  ops.release = Release;
  ops.destroy = [](void* hwq) { delete static_cast<OclQueue*>(hwq); };
  return ops;
}

bool IsComplete(const OclDriver& driver) {
  return driver.clFinish != nullptr && driver.clFlush != nullptr && driver.clGetCommandQueueInfo != nullptr &&
         driver.clGetDeviceInfo != nullptr && driver.clGetPlatformInfo != nullptr && driver.clGetDeviceIDs != nullptr;
}

// For queues that no shim saw being made.
const OclDriver* LoadedDriver() {
  static OclDriver driver;
  static Mutex mutex;
  MutexLock lock(mutex);
  if (IsComplete(driver)) return &driver;
  void* library = nullptr;
  if (const char* path = EnvText("XSCHED_OPENCL_LIB")) {
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) XSCHED_WARN("cannot load XSCHED_OPENCL_LIB: %s", dlerror());
  }
  // Never a second copy: only what the program has loaded.
  for (const char* name : {"libOpenCL.so.1", "libOpenCL.so"}) {
    if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
  }
  if (library == nullptr) return nullptr;
  driver = FindDriver([library](const char* name) { return dlsym(library, name); });
  return IsComplete(driver) ? &driver : nullptr;
}

}  // namespace

XResult OclQueueCreateOn(const OclDriver* driver, cl_command_queue queue, HwQueueHandle* hwq) {
  if (hwq == nullptr || queue == nullptr) return kXSchedErrorInvalidValue;
  if (driver == nullptr || !IsComplete(*driver)) return kXSchedErrorNotFound;
  preempt::ReentrancyGuard guard;
  DeviceIdentity identity;
  cl_context context = nullptr;
  if (driver->clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, nullptr) != CL_SUCCESS ||
      !IdentifyDevice(*driver, queue, &identity)) {
    return kXSchedErrorInvalidValue;
  }
  auto* self = new (std::nothrow) OclQueue{driver, queue, context};
  if (self == nullptr) return kXSchedErrorUnknown;
  XHwQueueOps ops = MakeOps(*driver);
  XHwQueueInfo info{identity.device, identity.name, reinterpret_cast<uint64_t>(queue)};
  XResult result = HwQueueRegister(&ops, self, &info, hwq);
  if (result != kXSchedSuccess) delete self;
  return result;
}

}  // namespace xsched::opencl

XResult OclQueueCreate(HwQueueHandle* hwq, cl_command_queue cmdq) {
  return xsched::opencl::OclQueueCreateOn(xsched::opencl::LoadedDriver(), cmdq, hwq);
}
