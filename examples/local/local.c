/* A scheduler within one program: no server, no shim. A batch job and an urgent one share a device, here the
 * software one; with CUDA or OpenCL it is the same, with the HwQueue of a stream or command queue.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <xsched/soft/hal.h>
#include <xsched/xsched.h>

#define CHECK(call)                                            \
  do {                                                         \
    XResult result = (call);                                   \
    if (result != kXSchedSuccess) {                            \
      fprintf(stderr, "%s: XResult %d\n", #call, (int)result); \
      exit(1);                                                 \
    }                                                          \
  } while (0)

enum { kDevice = 0, kCommandUs = 1000, kBatch = 200, kUrgent = 20 };

static HwQueueHandle NewQueue(Priority priority) {
  HwQueueHandle hwq;
  XQueueHandle xq;
  CHECK(SoftQueueCreate(&hwq, kDevice, kPreemptLevelBlock));
  CHECK(XQueueCreate(&xq, hwq, kPreemptLevelBlock, kQueueCreateFlagNone));
  /* At most 2 commands in flight, which an urgent one may have to wait for. */
  CHECK(XQueueSetLaunchConfig(xq, 2, 1));
  CHECK(XHintPriority(xq, priority));
  return hwq;
}

static void Launch(HwQueueHandle hwq, int count) {
  for (int i = 0; i < count; ++i) CHECK(SoftLaunch(hwq, kCommandUs, NULL, NULL));
}

static double NowMs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void Run(const char* how, HwQueueHandle batch, HwQueueHandle urgent) {
  Launch(batch, kBatch);
  double begin = NowMs();
  Launch(urgent, kUrgent);
  CHECK(SoftSynchronize(urgent));
  double urgent_ms = NowMs() - begin;
  CHECK(SoftSynchronize(batch));
  printf("%-22s urgent: %3.0f ms for %d commands of 1 ms; all: %3.0f ms\n", how, urgent_ms, kUrgent,
         NowMs() - begin);
}

int main(void) {
  HwQueueHandle batch = NewQueue(PRIORITY_DEFAULT);
  HwQueueHandle urgent = NewQueue(10);
  Run("without a scheduler", batch, urgent);
  CHECK(XHintSetScheduler(kSchedulerLocal, kPolicyHighestPriorityFirst));
  Run("with one", batch, urgent);
  return 0;
}
