// An OpenCL driver that a test controls, below the shim as a layer. Its queues are in order, and commands
// take no time. Like some vendors' drivers, it has no thread: whatever thread is inside of it finds out what
// has finished, and calls the callbacks.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>
#include <dlfcn.h>
#include <string.h>

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

// The driver's objects. Never freed, so that a test may count the references of those that are released.
struct _cl_command_queue {
  int references = 1;
  std::deque<cl_event> commands;  // not finished
};
struct _cl_event {
  cl_command_queue queue = nullptr;  // null: a user event
  int references = 1;
  cl_int status = CL_QUEUED;
  cl_event awaited = nullptr;  // by the command
  std::vector<std::pair<void(CL_CALLBACK*)(cl_event, cl_int, void*), void*>> callbacks;
};

namespace xsched::testing {

class FakeDriver {
 public:
  // The functions of the shim over those of the driver.
  static const cl_icd_dispatch& UnderTheShim() {
    static const cl_icd_dispatch* shims = [] {
      void* shim = dlopen(XSCHED_TEST_SHIM, RTLD_NOW);
      auto init = reinterpret_cast<pfn_clInitLayer>(dlsym(shim, "clInitLayer"));
      const cl_icd_dispatch* layer = nullptr;
      cl_uint entries = 0;
      init(sizeof(cl_icd_dispatch) / sizeof(void*), &Dispatch(), &entries, &layer);
      return layer;
    }();
    return *shims;
  }
  // Called by the next clEnqueueTask, before the driver has the command.
  static std::function<void()>& BeforeNextTask() {
    static std::function<void()> before;
    return before;
  }
  // How often the driver was asked about an event that had no reference any more.
  static int& QuestionsAboutReleasedEvents() {
    static int questions = 0;
    return questions;
  }
  // What the driver answers to clGetExtensionFunctionAddressForPlatform.
  static std::map<std::pair<cl_platform_id, std::string>, void*>& Extensions() {
    static std::map<std::pair<cl_platform_id, std::string>, void*> extensions;
    return extensions;
  }

 private:
  static std::mutex& Lock() {
    static std::mutex mutex;
    return mutex;
  }

  // Calls of the program's functions for objects that have ended. clFinish makes them.
  static std::vector<std::function<void()>>& Ends() {
    static std::vector<std::function<void()>> ends;
    return ends;
  }

  static std::vector<cl_command_queue>& Queues() {
    static std::vector<cl_command_queue> queues;
    return queues;
  }

  static cl_event NewEvent(cl_command_queue queue) {
    auto* event = new _cl_event;
    event->queue = queue;
    return event;
  }

  // Finishes what can finish, and calls the callbacks.
  static void Progress(cl_command_queue queue) {
    std::vector<std::pair<cl_event, std::pair<void(CL_CALLBACK*)(cl_event, cl_int, void*), void*>>> due;
    {
      std::lock_guard lock(Lock());
      auto& commands = queue->commands;
      while (!commands.empty() &&
             (commands.front()->awaited == nullptr || commands.front()->awaited->status == CL_COMPLETE)) {
        cl_event event = commands.front();
        commands.pop_front();
        event->status = CL_COMPLETE;
        for (auto& callback : std::exchange(event->callbacks, {})) due.emplace_back(event, callback);
      }
    }
    for (auto& [event, callback] : due) callback.first(event, CL_COMPLETE, callback.second);
  }

  static cl_int CL_API_CALL Enqueue(cl_command_queue queue, cl_uint count, const cl_event* waits,
                                    cl_event* event) {
    cl_event command = NewEvent(queue);
    std::lock_guard lock(Lock());
    if (count != 0) command->awaited = waits[0];
    queue->commands.push_back(command);
    if (event != nullptr) *event = command;
    return CL_SUCCESS;
  }
  static cl_int CL_API_CALL EnqueueTask(cl_command_queue queue, cl_kernel, cl_uint count,
                                        const cl_event* waits, cl_event* event) {
    if (const auto before = std::exchange(BeforeNextTask(), nullptr)) before();
    return Enqueue(queue, count, waits, event);
  }
  static cl_int CL_API_CALL Read(cl_command_queue queue, cl_mem, cl_bool blocking, size_t, size_t, void*,
                                 cl_uint count, const cl_event* waits, cl_event* event) {
    const cl_int result = Enqueue(queue, count, waits, event);
    if (blocking != CL_FALSE) Progress(queue);
    return result;
  }
  static cl_command_queue CL_API_CALL CreateQueue(cl_context, cl_device_id, cl_command_queue_properties,
                                                  cl_int* error) {
    if (error != nullptr) *error = CL_SUCCESS;
    std::lock_guard lock(Lock());
    return Queues().emplace_back(new _cl_command_queue);
  }
  static cl_int CL_API_CALL RetainQueue(cl_command_queue queue) {
    std::lock_guard lock(Lock());
    ++queue->references;
    return CL_SUCCESS;
  }
  static cl_int CL_API_CALL ReleaseQueue(cl_command_queue queue) {
    std::lock_guard lock(Lock());
    --queue->references;
    return CL_SUCCESS;
  }
  static cl_int Answer(const void* value, size_t size, size_t room, void* out, size_t* size_out) {
    if (out != nullptr && room < size) return CL_INVALID_VALUE;
    if (out != nullptr) memcpy(out, value, size);
    if (size_out != nullptr) *size_out = size;
    return CL_SUCCESS;
  }
  static cl_int CL_API_CALL QueueInfo(cl_command_queue queue, cl_command_queue_info what, size_t room,
                                      void* out, size_t* size_out) {
    static int object;
    void* address = &object;
    const cl_command_queue_properties properties = 0;
    if (what == CL_QUEUE_PROPERTIES) return Answer(&properties, sizeof properties, room, out, size_out);
    if (what == CL_QUEUE_CONTEXT || what == CL_QUEUE_DEVICE)
      return Answer(&address, sizeof address, room, out, size_out);
    if (what != CL_QUEUE_REFERENCE_COUNT) return CL_INVALID_VALUE;
    const auto references = static_cast<cl_uint>(queue->references);
    return Answer(&references, sizeof references, room, out, size_out);
  }
  static cl_int CL_API_CALL DeviceInfo(cl_device_id, cl_device_info what, size_t room, void* out,
                                       size_t* size_out) {
    static constexpr char kVersion[] = "OpenCL 1.2 of a test";
    static constexpr char kName[] = "fake";
    if (what == CL_DEVICE_VERSION) return Answer(kVersion, sizeof kVersion, room, out, size_out);
    if (what == CL_DEVICE_NAME) return Answer(kName, sizeof kName, room, out, size_out);
    return CL_INVALID_VALUE;
  }
  static cl_event CL_API_CALL CreateUserEvent(cl_context, cl_int* error) {
    if (error != nullptr) *error = CL_SUCCESS;
    return NewEvent(nullptr);
  }
  static cl_int CL_API_CALL SetUserEventStatus(cl_event event, cl_int status) {
    std::vector<cl_command_queue> concerned;
    {
      std::lock_guard lock(Lock());
      event->status = status;
      concerned = Queues();
    }
    for (cl_command_queue queue : concerned) Progress(queue);
    return CL_SUCCESS;
  }
  static cl_int CL_API_CALL SetEventCallback(cl_event event, cl_int,
                                             void(CL_CALLBACK* function)(cl_event, cl_int, void*),
                                             void* data) {
    {
      std::lock_guard lock(Lock());
      if (event->status != CL_COMPLETE) {
        event->callbacks.emplace_back(function, data);
        return CL_SUCCESS;
      }
    }
    function(event, CL_COMPLETE, data);
    return CL_SUCCESS;
  }
  static cl_int CL_API_CALL RetainEvent(cl_event event) {
    std::lock_guard lock(Lock());
    ++event->references;
    return CL_SUCCESS;
  }
  static cl_int CL_API_CALL ReleaseEvent(cl_event event) {
    std::lock_guard lock(Lock());
    --event->references;
    return CL_SUCCESS;
  }
  static cl_int CL_API_CALL EventInfo(cl_event event, cl_event_info what, size_t room, void* out,
                                      size_t* size_out) {
    std::lock_guard lock(Lock());
    if (event->references <= 0) {
      ++QuestionsAboutReleasedEvents();
      return CL_INVALID_EVENT;
    }
    if (what == CL_EVENT_COMMAND_QUEUE)
      return Answer(&event->queue, sizeof event->queue, room, out, size_out);
    if (what == CL_EVENT_COMMAND_EXECUTION_STATUS)
      return Answer(&event->status, sizeof event->status, room, out, size_out);
    return CL_INVALID_VALUE;
  }
  static cl_int CL_API_CALL WaitForEvents(cl_uint count, const cl_event* events) {
    for (cl_uint i = 0; i < count; ++i) Progress(events[i]->queue);
    return CL_SUCCESS;
  }
  static cl_int CL_API_CALL SetMemoryEnds(cl_mem memory, void(CL_CALLBACK* function)(cl_mem, void*),
                                          void* data) {
    Ends().emplace_back([=] { function(memory, data); });
    return CL_SUCCESS;
  }
  static cl_int CL_API_CALL FreeSvm(cl_command_queue queue, cl_uint count, void** pointers,
                                    void(CL_CALLBACK* function)(cl_command_queue, cl_uint, void**, void*),
                                    void* data, cl_uint, const cl_event*, cl_event*) {
    if (function != nullptr) Ends().emplace_back([=] { function(queue, count, pointers, data); });
    return CL_SUCCESS;
  }
  static cl_int CL_API_CALL Finish(cl_command_queue queue) {
    Progress(queue);
    for (const auto& end : std::exchange(Ends(), {})) end();
    return CL_SUCCESS;
  }
  static cl_int CL_API_CALL Flush(cl_command_queue) { return CL_SUCCESS; }
  static void* CL_API_CALL Extension(cl_platform_id platform, const char* name) {
    const auto found = Extensions().find({platform, name});
    return found == Extensions().end() ? nullptr : found->second;
  }

  static const cl_icd_dispatch& Dispatch() {
    static const cl_icd_dispatch dispatch = [] {
      cl_icd_dispatch functions{};
      functions.clCreateCommandQueue = CreateQueue;
      functions.clRetainCommandQueue = RetainQueue;
      functions.clReleaseCommandQueue = ReleaseQueue;
      functions.clGetCommandQueueInfo = QueueInfo;
      functions.clGetDeviceInfo = DeviceInfo;
      functions.clCreateUserEvent = CreateUserEvent;
      functions.clSetUserEventStatus = SetUserEventStatus;
      functions.clSetEventCallback = SetEventCallback;
      functions.clRetainEvent = RetainEvent;
      functions.clReleaseEvent = ReleaseEvent;
      functions.clGetEventInfo = EventInfo;
      functions.clEnqueueMarkerWithWaitList = Enqueue;
      functions.clEnqueueBarrierWithWaitList = Enqueue;
      functions.clEnqueueTask = EnqueueTask;
      functions.clEnqueueReadBuffer = Read;
      functions.clSetMemObjectDestructorCallback = SetMemoryEnds;
      functions.clEnqueueSVMFree = reinterpret_cast<void*>(&FreeSvm);
      functions.clWaitForEvents = WaitForEvents;
      functions.clFinish = Finish;
      functions.clFlush = Flush;
      functions.clGetExtensionFunctionAddressForPlatform = Extension;
      return functions;
    }();
    return dispatch;
  }
};

}  // namespace xsched::testing
