/* The API alone, on a HIP stream: commands are submitted to an XQueue, and the program suspends and resumes
 * it. Needs neither the shim nor a server.
 *
 *   explicit_hip [MiB]     how much memory each command sets (64)
 */
#include <xsched/hip/hal.h>

#include "hip_check.h"

enum { kCommands = 200 };

typedef struct Work {
  hipStream_t stream;
  void* memory;
  size_t bytes;
} Work;

/* Called on a thread of XSched's. */
static XResult Launch(HwQueueHandle hwq, void* data) {
  (void)hwq;
  const Work* work = data;
  if (hipSetDevice(0) != hipSuccess) return kXSchedErrorHardware;
  return hipMemsetAsync(work->memory, 1, work->bytes, work->stream) == hipSuccess ? kXSchedSuccess
                                                                                  : kXSchedErrorHardware;
}

int main(int argc, char** argv) {
  Work work = {.bytes = (argc > 1 ? strtoul(argv[1], NULL, 10) : 64) << 20};
  HwQueueHandle hwq;
  XQueueHandle xq;
  HwCommandHandle commands[kCommands];
  XQueueState state;
  HIP_CHECK(hipSetDevice(0));
  HIP_CHECK(hipMalloc(&work.memory, work.bytes));
  HIP_CHECK(hipStreamCreateWithFlags(&work.stream, hipStreamNonBlocking));
  /* A stream of any runtime instance that the process has loaded. */
  CHECK(HipQueueCreate(&hwq, work.stream));
  CHECK(XQueueCreate(&xq, hwq, kPreemptLevelBlock, kQueueCreateFlagNone));

  double begin = NowMs();
  CHECK(XQueueSuspend(xq, kQueueSuspendFlagNone));
  for (int i = 0; i < kCommands; ++i) {
    CHECK(HwCommandCreateCallback(&commands[i], Launch, &work));
    CHECK(XQueueSubmit(xq, commands[i]));
  }
  CHECK(XQueueQuery(xq, &state));
  printf("held, with %d commands submitted: the queue is %s\n", kCommands,
         state == kQueueStateReady ? "not finished" : "idle");
  HIP_CHECK(hipStreamQuery(work.stream)); /* Nothing of it has been launched. */
  CHECK(XQueueResume(xq, kQueueResumeFlagNone));
  CHECK(XQueueWaitAll(xq));
  printf("all of it has run after %.0f ms\n", NowMs() - begin);

  for (int i = 0; i < kCommands; ++i) CHECK(HwCommandDestroy(commands[i]));
  CHECK(XQueueDestroy(xq));
  CHECK(HwQueueDestroy(hwq));
  HIP_CHECK(hipStreamDestroy(work.stream));
  HIP_CHECK(hipFree(work.memory));
  return 0;
}
