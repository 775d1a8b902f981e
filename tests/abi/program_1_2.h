/* A program as people wrote it for XSched 1.2: it gives hints to a queue, submits commands, and suspends and
 * resumes the queue. C and C++. The platform's part is passed in. */
#ifndef TESTS_ABI_PROGRAM_1_2_H_
#define TESTS_ABI_PROGRAM_1_2_H_

#include <stdio.h>
#include <xsched/xsched.h>

static int failures = 0;

static void Expect(int is_true, const char* what) {
  if (is_true) return;
  fprintf(stderr, "FAILED: %s\n", what);
  ++failures;
}
#define EXPECT(condition) Expect(condition, #condition)

static XResult CountLaunch(HwQueueHandle hwq, void* launches) {
  (void)hwq;
  ++*(int*)launches;
  return kXSchedSuccess;
}

static void GiveEveryHint(XQueueHandle xq) {
  EXPECT(XHintPriority(xq, PRIORITY_MAX) == kXSchedSuccess);
  EXPECT(XHintPriority(xq, PRIORITY_NO_EXECUTE) == kXSchedSuccess);
  EXPECT(XHintUtilization(xq, UTILIZATION_DEFAULT) == kXSchedSuccess);
  EXPECT(XHintTimeslice(TIMESLICE_DEFAULT) == kXSchedSuccess);
  EXPECT(XHintLaxity(xq, NO_LAXITY, PRIORITY_MIN, PRIORITY_MAX) == kXSchedSuccess);
  EXPECT(XHintDeadline(xq, NO_DEADLINE) == kXSchedSuccess);
  EXPECT(XHintKDeadline(16) == kXSchedSuccess);
}

/* 1.2's functions take an XPreemptLevel: 32 bits. The other half of the register is whatever was in it. */
static void SetLevelAsABinaryOf12(XQueueHandle xq) {
  XResult (*set)(XQueueHandle, uint64_t) =
      (XResult(*)(XQueueHandle, uint64_t))(void (*)(void))XQueueSetPreemptLevel;
  EXPECT(set(xq, UINT64_C(0xdeadbeef00000000) | kPreemptLevelBlock) == kXSchedSuccess);
}

static void Submit(XQueueHandle xq, HwQueueHandle hwq) {
  int launches = 0;
  HwCommandHandle command = 0;
  for (int i = 0; i < 8; ++i) {
    EXPECT(HwCommandCreateCallback(&command, CountLaunch, &launches) == kXSchedSuccess);
    EXPECT(XQueueSubmit(xq, command) == kXSchedSuccess);
  }
  EXPECT(XQueueWaitAll(xq) == kXSchedSuccess);
  EXPECT(HwCommandCreateCallback(&command, CountLaunch, &launches) == kXSchedSuccess);
  EXPECT(HwQueueLaunch(hwq, command) == kXSchedSuccess);
  EXPECT(HwQueueLaunch(hwq, command) == kXSchedErrorNotFound);
  EXPECT(HwQueueSynchronize(hwq) == kXSchedSuccess);
  EXPECT(launches == 9);
}

/* `create`: makes the platform's HwQueue. */
static int RunProgramOf12(XResult (*create)(HwQueueHandle*)) {
  HwQueueHandle hwq = 0, same_hwq = 0;
  XQueueHandle xq = 0, same_xq = 0;
  XQueueState state = kQueueStateUnknown;
  int64_t count = 0;

  EXPECT(create(&hwq) == kXSchedSuccess);
  EXPECT(XQueueCreate(&xq, hwq, kPreemptLevelInterrupt, kQueueCreateFlagNone) == kXSchedSuccess);
  /* llama.cpp's integration creates both anew for every request. */
  EXPECT(create(&same_hwq) == kXSchedSuccess && same_hwq == hwq);
  EXPECT(XQueueCreate(&same_xq, same_hwq, kPreemptLevelBlock, kQueueCreateFlagNone) == kXSchedSuccess);
  EXPECT(same_xq == xq);
  EXPECT(XQueueGet(&same_xq, hwq) == kXSchedSuccess && same_xq == xq);

  GiveEveryHint(xq);
  SetLevelAsABinaryOf12(xq);
  EXPECT(XQueueSetPreemptLevel(xq, kPreemptLevelInterrupt) == kXSchedSuccess);
  EXPECT(XQueueSetLaunchConfig(xq, 4, 2) == kXSchedSuccess);
  EXPECT(XQueueSetLaunchConfig(xq, -1, -1) == kXSchedSuccess);
  Submit(xq, hwq);

  EXPECT(XQueueSuspend(xq, kQueueSuspendFlagMaskAll) == kXSchedSuccess);
  EXPECT(XQueueSuspend(xq, kQueueSuspendFlagNone) == kXSchedSuccess);
  EXPECT(XQueueResume(xq, kQueueResumeFlagMaskAll) == kXSchedSuccess);
  EXPECT(XQueueQuery(xq, &state) == kXSchedSuccess && state == kQueueStateIdle);
  EXPECT(XQueueProfileHwCommandCount(xq, &count) == kXSchedSuccess && count >= 8);
  EXPECT(HwQueueDestroy(hwq) == kXSchedErrorNotAllowed);
  EXPECT(XQueueDestroy(xq) == kXSchedSuccess);
  EXPECT(HwQueueDestroy(hwq) == kXSchedSuccess);
  EXPECT(XQueueDestroy(xq) == kXSchedErrorNotFound);
  return failures;
}

#endif
