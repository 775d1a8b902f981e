/* The API alone, as programs of XSched 1.2 use it: commands are submitted to an XQueue, and the program
 * suspends and resumes it. Needs neither the shim nor a server.
 */
#include <xsched/cuda/hal.h>

#include "gpu.h"

enum { kCommands = 200, kCommandUs = 500 };

typedef struct Work {
  Gpu gpu;
  CUstream stream;
} Work;

/* Called on a thread of XSched's. */
static XResult Launch(HwQueueHandle hwq, void* data) {
  (void)hwq;
  const Work* work = data;
  if (cuCtxSetCurrent(work->gpu.context) != CUDA_SUCCESS) return kXSchedErrorHardware;
  return Spin(&work->gpu, kCommandUs, work->stream) == CUDA_SUCCESS ? kXSchedSuccess : kXSchedErrorHardware;
}

int main(void) {
  Work work = {.gpu = OpenGpu()};
  HwQueueHandle hwq;
  XQueueHandle xq;
  HwCommandHandle commands[kCommands];
  XQueueState state;
  CU_CHECK(cuStreamCreate(&work.stream, CU_STREAM_NON_BLOCKING));
  CHECK(CudaQueueCreate(&hwq, work.stream));
  /* Without the shim there are levels 1 and 2. */
  CHECK(XQueueCreate(&xq, hwq, kPreemptLevelDeactivate, kQueueCreateFlagNone));

  double begin = NowMs();
  for (int i = 0; i < kCommands; ++i) {
    CHECK(HwCommandCreateCallback(&commands[i], Launch, &work));
    CHECK(XQueueSubmit(xq, commands[i]));
  }
  SleepMs(20);
  CHECK(XQueueSuspend(xq, kQueueSuspendFlagSyncHwQueue));
  printf("suspended after %.0f ms: nothing of it runs now\n", NowMs() - begin);
  SleepMs(50);
  CHECK(XQueueQuery(xq, &state));
  printf("the queue is %s\n", state == kQueueStateReady ? "not finished" : "idle");
  CHECK(XQueueResume(xq, kQueueResumeFlagNone));
  CHECK(XQueueWaitAll(xq));
  printf("all of it has run after %.0f ms\n", NowMs() - begin);

  for (int i = 0; i < kCommands; ++i) CHECK(HwCommandDestroy(commands[i]));
  CHECK(XQueueDestroy(xq));
  CHECK(HwQueueDestroy(hwq));
  CU_CHECK(cuStreamDestroy(work.stream));
  return 0;
}
