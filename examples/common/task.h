/* What these examples share on every platform. <platform>/device.h has the rest: a device, its queues, and a
 * command that keeps the device busy for about a millisecond. */
#ifndef XSCHED_EXAMPLES_COMMON_TASK_H_
#define XSCHED_EXAMPLES_COMMON_TASK_H_

#include "check.h"

/* How much memory a command of CUDA or HIP sets: most of a millisecond on a small GPU. */
#ifndef TASK_MIB
#define TASK_MIB 256
#endif
enum { kBytes = TASK_MIB << 20 };

#include "device.h"

/* Runs `commands` commands, and returns how many milliseconds they took. */
static inline double RunTask(const DeviceQueue* queue, int commands) {
  double begin = NowMs();
  for (int i = 0; i < commands; ++i) Enqueue(queue);
  Finish(queue);
  return NowMs() - begin;
}

/* The XQueue over a queue: a new one, or the one that the shim has made. */
static inline XQueueHandle CreateXQueue(const DeviceQueue* queue) {
  HwQueueHandle hwq;
  XQueueHandle xq;
  CHECK(CreateHwQueue(&hwq, queue));
  CHECK(XQueueCreate(&xq, hwq, kPreemptLevelBlock, kQueueCreateFlagNone));
  return xq;
}

#endif /* XSCHED_EXAMPLES_COMMON_TASK_H_ */
