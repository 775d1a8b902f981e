// Python's global interpreter lock. An extension module may call a driver with the lock held, as Triton's
// launcher does. If such a call waits for other threads, these may need the lock.
#pragma once

namespace xsched {

// Releases the lock for its scope, where the calling thread holds it. Does nothing in a program without
// Python.
class PythonLockReleased {
 public:
  PythonLockReleased();
  ~PythonLockReleased();
  PythonLockReleased(const PythonLockReleased&) = delete;
  PythonLockReleased& operator=(const PythonLockReleased&) = delete;

 private:
  void* const state_;  // the interpreter's, of this thread; null: it does not hold the lock
};

}  // namespace xsched
