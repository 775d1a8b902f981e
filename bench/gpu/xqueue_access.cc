#include "xqueue_access.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include "xsched/hint.h"
#include "xsched/xqueue.h"

namespace xsched::bench {
namespace {

// The shim loads libpreempt and the HAL. This program is not linked to them.
template <typename Function>
Function* Find(const char* name) {
  void* function = dlsym(RTLD_DEFAULT, name);
  if (function == nullptr) throw std::runtime_error(std::string("not under XSched: no ") + name);
  return reinterpret_cast<Function*>(function);
}

void Check(XResult result, const char* what) {
  if (result != kXSchedSuccess) {
    throw std::runtime_error(std::string(what) + ": XResult " + std::to_string(static_cast<int>(result)));
  }
}

}  // namespace

bool UnderXSched() { return dlsym(RTLD_DEFAULT, "CudaQueueGet") != nullptr; }

XQueueHandle QueueOf(CUstream stream) {
  HwQueueHandle hwq = 0;
  XQueueHandle queue = 0;
  Check(Find<XResult(HwQueueHandle*, CUstream)>("CudaQueueGet")(&hwq, stream), "CudaQueueGet");
  Check(Find<decltype(XQueueGet)>("XQueueGet")(&queue, hwq), "XQueueGet");
  return queue;
}

void SetPriority(XQueueHandle queue, Priority priority) {
  Check(Find<decltype(XHintPriority)>("XHintPriority")(queue, priority), "XHintPriority");
}

void SetLevel(XQueueHandle queue, int level) {
  Check(Find<decltype(XQueueSetPreemptLevel)>("XQueueSetPreemptLevel")(queue,
                                                                       static_cast<XPreemptLevel>(level)),
        "XQueueSetPreemptLevel");
}

void Suspend(XQueueHandle queue) {
  Check(Find<decltype(XQueueSuspend)>("XQueueSuspend")(queue, kQueueSuspendFlagNone), "XQueueSuspend");
}

void Resume(XQueueHandle queue) {
  Check(Find<decltype(XQueueResume)>("XQueueResume")(queue, kQueueResumeFlagNone), "XQueueResume");
}

}  // namespace xsched::bench
