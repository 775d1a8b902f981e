#include "base/python_lock.h"

// CPython's functions, null in a program without Python. Bound when this library is loaded: a search at the
// time of the call would take a lock of the dynamic linker's, which another thread may hold for long.
extern "C" {
#define XSCHED_WEAK __attribute__((weak))
XSCHED_WEAK void* PyGILState_GetThisThreadState();
XSCHED_WEAK void* PyThreadState_GetUnchecked();   // since 3.13
XSCHED_WEAK void* _PyThreadState_UncheckedGet();  // before it
XSCHED_WEAK void* PyEval_SaveThread();
XSCHED_WEAK void PyEval_RestoreThread(void* state);
}

namespace xsched {
namespace {

// The state of the thread that holds the lock; since Python 3.12 null if it is not the calling thread.
void* CurrentState() {
  if (PyThreadState_GetUnchecked != nullptr) return PyThreadState_GetUnchecked();
  return _PyThreadState_UncheckedGet != nullptr ? _PyThreadState_UncheckedGet() : nullptr;
}

// PyGILState_Check is no use: once there has been a second interpreter, it says yes to every thread.
bool HoldsLock() {
  if (PyGILState_GetThisThreadState == nullptr || PyEval_SaveThread == nullptr ||
      PyEval_RestoreThread == nullptr)
    return false;
  void* own = PyGILState_GetThisThreadState();
  return own != nullptr && own == CurrentState();
}

}  // namespace

PythonLockReleased::PythonLockReleased() : state_(HoldsLock() ? PyEval_SaveThread() : nullptr) {}

PythonLockReleased::~PythonLockReleased() {
  if (state_ != nullptr) PyEval_RestoreThread(state_);
}

}  // namespace xsched
