// Threads inside foreign processes.
#pragma once

#include <pthread.h>
#include <signal.h>

#include "base/log.h"

namespace xsched {

// Starts a thread that takes none of the program's signals. Returns pthread_create's result. Such a thread
// never reads the environment: the program's setenv, in another thread, frees what getenv looks at.
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

}  // namespace xsched
