// Threads inside foreign processes.
#pragma once

#include <pthread.h>

namespace xsched {

// Starts a thread that blocks all signals of the program, but for faults: a driver may run the program's code
// there, and if the program handles a fault, it goes on. Returns pthread_create's result. Our own code on
// such a thread must never read the environment, because the program's setenv, in another thread, frees what
// getenv reads.
//
// The calling thread may be bound to one processor, or have a real-time priority, and wait there for what the
// new thread does. So the new one has neither: it may use the processors that the process had when the
// library was loaded, and has the usual scheduling policy.
int StartQuietThread(pthread_t* thread, void* (*main)(void*), void* argument);

// Starts such a thread that nobody waits for. Returns 0 or an errno value.
inline int StartDetachedThread(const char* name, void* (*main)(void*), void* argument) {
  pthread_t thread;
  if (int error = StartQuietThread(&thread, main, argument)) return error;
  pthread_setname_np(thread, name);
  pthread_detach(thread);
  return 0;
}

// For classes that get the function as a parameter, so that tests run a thread's work themselves.
using ThreadStart = int (*)(const char* name, void* (*main)(void*), void* argument);

}  // namespace xsched
