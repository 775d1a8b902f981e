/* Explicit submission: the program passes its commands to an XQueue, which launches them when the queue may
 * run. Needs neither the shim nor a server.
 *
 *   ./submission_<platform>
 */
#include "task.h"

enum { kCommands = 50 };

/* Called on a thread of XSched's. */
static XResult Launch(HwQueueHandle hwq, void* data) {
  (void)hwq;
  UseDevice();
  Enqueue(data);
  return kXSchedSuccess;
}

int main(void) {
  XQueueState state;
  int64_t launched;
  OpenDevice();
  DeviceQueue queue = OpenQueue();
  HwQueueHandle hwq;
  XQueueHandle xq;
  CHECK(CreateHwQueue(&hwq, &queue));
  CHECK(XQueueCreate(&xq, hwq, kPreemptLevelBlock, kQueueCreateFlagNone));
  CHECK(XQueueSuspend(xq, kQueueSuspendFlagNone));
  for (int i = 0; i < kCommands; ++i) {
    HwCommandHandle command; /* XQueueSubmit takes it */
    CHECK(HwCommandCreateCallback(&command, Launch, &queue));
    CHECK(XQueueSubmit(xq, command));
  }
  CHECK(XQueueQuery(xq, &state));
  printf("suspended, with %d commands: the queue is %s\n", kCommands,
         state == kQueueStateReady ? "not finished" : "idle");
  const double begin = NowMs();
  CHECK(XQueueResume(xq, kQueueResumeFlagNone));
  CHECK(XQueueWaitAll(xq));
  CHECK(XQueueProfileHwCommandCount(xq, &launched));
  printf("resumed: %d commands have run in %.2f ms\n", (int)launched, NowMs() - begin);
  CHECK(XQueueDestroy(xq));
  CHECK(HwQueueDestroy(hwq)); /* without the shim, before the device's own queue */
  CloseQueue(&queue);
  return state == kQueueStateReady && launched == kCommands ? 0 : 1;
}
