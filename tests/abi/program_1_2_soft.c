/* The program of 1.2 over a queue that has level 1 only. */
#include <xsched/soft/hal.h>

#include "program_1_2.h"

/* A platform has one HwQueue for each of its queues; the software device has no queues of its own. */
static XResult Create(HwQueueHandle* hwq) {
  static HwQueueHandle queue = 0;
  XResult result = queue == 0 ? SoftQueueCreate(&queue, 0, kPreemptLevelBlock) : kXSchedSuccess;
  *hwq = queue;
  return result;
}

int main(void) { return RunProgramOf12(Create) == 0 ? 0 : 1; }
