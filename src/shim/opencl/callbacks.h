// The program's functions that a driver calls when an event has happened or an object has ended.
//
// A driver calls them on any thread: on its own, or on one that is inside of it at that time. What they call
// is the program's, also if the thread is inside a call that is counted already. If XSched itself has called
// the driver there, perhaps with locks held, they run on a thread of their own instead.
#pragma once

#include <new>
#include <optional>
#include <tuple>

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

// The scope of a call that gives the driver a function to be called once, when an object has ended. The last
// argument of the function is the program's own.
template <typename Function>
class EndCallback {
 public:
  // Replaces the program's function and its argument by ours. Without memory, they stay.
  EndCallback(const Call&, Function& function, void*& data) {
    if (function == nullptr) return;
    programs_ = new (std::nothrow) Programs{function, data};
    if (programs_ == nullptr) return;
    function = &ObjectHasEnded;
    data = programs_;
  }
  void Finish(bool accepted) {
    if (!accepted) delete programs_;
  }

 private:
  struct Programs {
    Function function;
    void* data;
  };

  template <typename... Arguments>
  static void CL_CALLBACK ObjectHasEnded(Arguments... arguments) {
    std::tuple<Arguments...> passed(arguments...);
    void*& data = std::get<sizeof...(Arguments) - 1>(passed);
    auto* programs = static_cast<Programs*>(data);
    const Function function = programs->function;
    data = programs->data;
    delete programs;
    // XSched may have locks that a command of the program needs. Then what the function calls is passed
    // through.
    std::optional<preempt::ProgramsCode> inside;
    if (!preempt::OwnDriverCall::Here()) inside.emplace();
    std::apply(function, passed);
  }

  Programs* programs_ = nullptr;
};

}  // namespace xsched::opencl
