/* What all examples in C share: a failed call of XSched ends them with a message, and they measure time. */
#ifndef XSCHED_EXAMPLES_COMMON_CHECK_H_
#define XSCHED_EXAMPLES_COMMON_CHECK_H_

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <xsched/xsched.h>

#define CHECK(call)                                            \
  do {                                                         \
    XResult result = (call);                                   \
    if (result != kXSchedSuccess) {                            \
      fprintf(stderr, "%s: XResult %d\n", #call, (int)result); \
      exit(1);                                                 \
    }                                                          \
  } while (0)

static inline double NowMs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static inline void SleepMs(long ms) {
  struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);
}

#endif /* XSCHED_EXAMPLES_COMMON_CHECK_H_ */
