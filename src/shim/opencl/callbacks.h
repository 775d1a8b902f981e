// The program's functions that a driver calls when an event has happened.
//
// A driver calls them on any thread: on its own, or on one that is inside of it at that time. What they call
// is the program's, also if the thread is inside a call that is counted already. If XSched itself has called
// the driver there, perhaps with locks held, they run on a thread of their own instead.
#pragma once

#include "shim/opencl/call.h"

namespace xsched::opencl {

struct ProgramsCallback;

// The scope of clSetEventCallback.
class EventCallback {
 public:
  using Function = void(CL_CALLBACK*)(cl_event, cl_int, void*);

  // Replaces the program's function and its argument by ours. Without memory, they stay.
  EventCallback(const Call& call, Function& function, void*& data);
  // Accepted: the driver calls the function once, or has called it already.
  void Finish(bool accepted);

 private:
  ProgramsCallback* callback_ = nullptr;
};

}  // namespace xsched::opencl
