/* A scheduler within one program: no server, no shim. A batch job and an urgent one share a device, here the
 * software one; with CUDA or OpenCL it is the same, with the HwQueue of a stream or command queue.
 */
#include <xsched/soft/hal.h>

#include "../common/check.h"

enum { kDevice = 0, kCommandUs = 1000, kBatch = 200, kUrgent = 20 };

static HwQueueHandle NewQueue(Priority priority) {
  HwQueueHandle hwq;
  XQueueHandle xq;
  CHECK(SoftQueueCreate(&hwq, kDevice, kPreemptLevelBlock));
  CHECK(XQueueCreate(&xq, hwq, kPreemptLevelBlock, kQueueCreateFlagNone));
  /* At most 2 commands are in flight. An urgent command may have to wait for these. */
  CHECK(XQueueSetLaunchConfig(xq, 2, 1));
  CHECK(XHintPriority(xq, priority));
  return hwq;
}

static void Launch(HwQueueHandle hwq, int count) {
  for (int i = 0; i < count; ++i) CHECK(SoftLaunch(hwq, kCommandUs, NULL, NULL));
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
