/* A typical program that uses the library: a queue of the software device, scheduled by the program itself.
 */
#include <stdio.h>
#include <xsched/soft/hal.h>
#include <xsched/xsched.h>

#define CHECK(call)                                     \
  do {                                                  \
    XResult result = (call);                            \
    if (result != kXSchedSuccess) {                     \
      fprintf(stderr, "%s: error %d\n", #call, result); \
      return 1;                                         \
    }                                                   \
  } while (0)

int main(void) {
  enum { kCommands = 5, kCommandUs = 1000 };
  HwQueueHandle hwq;
  XQueueHandle xq;
  CHECK(SoftQueueCreate(&hwq, 0, kPreemptLevelBlock));
  CHECK(XQueueCreate(&xq, hwq, kPreemptLevelBlock, kQueueCreateFlagNone));
  CHECK(XHintPriority(xq, PRIORITY_MAX));

  CHECK(XQueueSuspend(xq, kQueueSuspendFlagNone));
  HwCommandHandle commands[kCommands];
  for (int i = 0; i < kCommands; ++i) {
    CHECK(SoftCommandCreate(&commands[i], kCommandUs));
    CHECK(XQueueSubmit(xq, commands[i]));
  }
  XQueueState state;
  CHECK(XQueueQuery(xq, &state));
  if (state != kQueueStateReady) {
    fprintf(stderr, "a suspended queue with work is in state %d\n", state);
    return 1;
  }
  CHECK(XQueueResume(xq, kQueueResumeFlagNone));
  CHECK(XQueueWaitAll(xq));

  uint64_t finished, busy_ns;
  CHECK(SoftQueueReport(hwq, &finished, &busy_ns));
  for (int i = 0; i < kCommands; ++i) CHECK(HwCommandDestroy(commands[i]));
  CHECK(XQueueDestroy(xq));
  CHECK(HwQueueDestroy(hwq));
  if (finished != kCommands || busy_ns < kCommands * kCommandUs * 1000ull) {
    fprintf(stderr, "%llu of %d commands finished after %llu ns of work\n", (unsigned long long)finished,
            kCommands, (unsigned long long)busy_ns);
    return 1;
  }
  return 0;
}
