// Threads inside foreign processes.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace xsched {

// Starts a thread that takes none of the program's signals. Returns pthread_create's result.
inline int StartQuietThread(pthread_t* thread, void* (*main)(void*), void* argument) {
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  int error = pthread_create(thread, nullptr, main, argument);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  return error;
}

}  // namespace xsched
