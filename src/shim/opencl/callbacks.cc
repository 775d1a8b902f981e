#include "shim/opencl/callbacks.h"

#include <new>

#include "base/fork_handler.h"
#include "base/mutex.h"
#include "base/thread.h"

namespace xsched::opencl {

struct ProgramsCallback {
  const Functions& driver;
  EventCallback::Function function;
  void* data;
  // Of a callback that is left to the thread.
  cl_event event = nullptr;
  cl_int status = CL_COMPLETE;
  ProgramsCallback* next = nullptr;
};

namespace {

// The callbacks that are left to the thread, in the order in which the driver has made them.
constinit Mutex<LockRank::kOpenClCallbacks> mutex;
constinit Condition left;
constinit ProgramsCallback* first GUARDED_BY(mutex) = nullptr;
constinit ProgramsCallback** end GUARDED_BY(mutex) = &first;
constinit bool running GUARDED_BY(mutex) = false;

void InstallForkHandler() {
  static constinit ForkHandler handler = {[] {
    mutex.ResetAfterFork();
    left.ResetAfterFork();
    first = nullptr;
    end = &first;
    running = false;
  }};
  handler.Install();
}

void CallFunction(const ProgramsCallback& callback, cl_event event, cl_int status) {
  const preempt::ProgramsCode inside;
  callback.function(event, status, callback.data);
}

ProgramsCallback* AwaitNext() {
  MutexLock lock(mutex);
  while (first == nullptr) left.Wait(mutex);
  ProgramsCallback* callback = first;
  first = callback->next;
  if (first == nullptr) end = &first;
  return callback;
}

void* CallThoseLeft(void*) {
  for (;;) {
    ProgramsCallback* callback = AwaitNext();
    CallFunction(*callback, callback->event, callback->status);
    callback->driver.clReleaseEvent(callback->event);
    delete callback;
  }
}

// False: there is no thread, and none can be started.
bool LeaveToThread(ProgramsCallback* callback, cl_event event, cl_int status) {
  MutexLock lock(mutex);
  if (!running) running = StartDetachedThread("xsched-callback", &CallThoseLeft, nullptr) == 0;
  if (!running) return false;
  callback->event = event;
  callback->status = status;
  *end = callback;
  end = &callback->next;
  left.NotifyAll();
  return true;
}

void CL_CALLBACK EventHasHappened(cl_event event, cl_int status, void* data) {
  auto* callback = static_cast<ProgramsCallback*>(data);
  if (preempt::OwnDriverCall::Here()) {
    // The driver keeps the event only for as long as this function runs.
    const bool kept = callback->driver.clRetainEvent(event) == CL_SUCCESS;
    if (kept && LeaveToThread(callback, event, status)) return;
    if (kept) callback->driver.clReleaseEvent(event);
    // XSched may have locks here that a command of the program needs. So what it calls is passed through.
    callback->function(event, status, callback->data);
  } else {
    CallFunction(*callback, event, status);
  }
  delete callback;
}

}  // namespace

EventCallback::EventCallback(const Call& call, Function& function, void*& data) {
  const Functions& driver = call.next();
  if (function == nullptr || driver.clRetainEvent == nullptr || driver.clReleaseEvent == nullptr) return;
  callback_ = new (std::nothrow) ProgramsCallback{driver, function, data};
  if (callback_ == nullptr) return;
  InstallForkHandler();
  function = &EventHasHappened;
  data = callback_;
}

void EventCallback::Finish(bool accepted) {
  if (!accepted) delete callback_;
}

}  // namespace xsched::opencl
