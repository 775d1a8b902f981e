// For the child's part of a probe: finds functions of libraries by name, so that the tools need no platform's
// headers, and finds the XQueue that the shim has made over a stream.
#pragma once

#include <dlfcn.h>
#include <fmt/format.h>

#include <string>

#include "xsched/types.h"

namespace xsched::cli {

struct ProbeError {
  std::string text;
};

template <typename Function>
Function* LookUp(void* library, const char* name) {
  auto* function = library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
  if (function == nullptr) throw ProbeError{fmt::format("{} is missing", name)};
  return function;
}

class ProbedQueue {
 public:
  // `hal` and `get` belong to the stream's platform: its HAL, and the function there that gives the HwQueue
  // of a stream.
  ProbedQueue(const char* hal, const char* get, void* stream)
      : hal_(dlopen(hal, RTLD_NOW | RTLD_NOLOAD)),
        preempt_(dlopen("libpreempt.so.2", RTLD_NOW | RTLD_NOLOAD)) {
    HwQueueHandle hwq = 0;
    if (hal_ == nullptr || preempt_ == nullptr) return;
    if (LookUp<XResult(HwQueueHandle*, void*)>(hal_, get)(&hwq, stream) != kXSchedSuccess) return;
    LookUp<XResult(XQueueHandle*, HwQueueHandle)>(preempt_, "XQueueGet")(&queue_, hwq);
  }

  bool exists() const { return queue_ != 0; }
  void* hal() const { return hal_; }

  // False: the queue has got a lower one, or none.
  bool SetLevel(int level) const {
    XPreemptLevel best = kPreemptLevelUnknown;
    LookUp<XResult(XQueueHandle, XPreemptLevel)>(preempt_, "XQueueSetPreemptLevel")(
        queue_, static_cast<XPreemptLevel>(level));
    LookUp<XResult(XQueueHandle, XPreemptLevel*)>(preempt_, "XQueueGetPreemptLevel")(queue_, &best);
    return best == level;
  }
  // Sets the highest level that the queue accepts, and returns it.
  int SetHighestLevel() const {
    int level = kPreemptLevelInterrupt;
    while (level > 0 && !SetLevel(level)) --level;
    return level;
  }
  void Suspend() const {
    LookUp<XResult(XQueueHandle, int64_t)>(preempt_, "XQueueSuspend")(queue_, kQueueSuspendFlagNone);
  }
  void Resume() const {
    LookUp<XResult(XQueueHandle, int64_t)>(preempt_, "XQueueResume")(queue_, kQueueResumeFlagNone);
  }

 private:
  void* hal_;
  void* preempt_;
  XQueueHandle queue_ = 0;
};

}  // namespace xsched::cli
