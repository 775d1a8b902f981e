// Threads inside foreign processes.
#pragma once

#include <pthread.h>
#include <signal.h>

#include "base/log.h"

namespace xsched {

// Starts a thread that blocks all signals of the program. Returns pthread_create's result. Such a thread must
// never read the environment, because the program's setenv, in another thread, frees what getenv reads.
inline int StartQuietThread(pthread_t* thread, void* (*main)(void*), void* argument) {
  LogEnabled(LogLevel::kError);  // reads XSCHED_LOG
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  int error = pthread_create(thread, nullptr, main, argument);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  return error;
}

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
