/* The OpenCL HAL links no OpenCL library. It uses the program's library, and returns an error if there is
 * none. */
#include <stdio.h>
#include <xsched/opencl/hal.h>
#include <xsched/xsched.h>

int main(void) {
  HwQueueHandle hwq = 0;
  XResult result = OclQueueCreate(&hwq, NULL);
  if (result != kXSchedErrorInvalidValue || hwq != 0) {
    fprintf(stderr, "OclQueueCreate of no queue: %d\n", result);
    return 1;
  }
  XQueueHandle xq;
  result = XQueueGet(&xq, 12345);
  if (result != kXSchedErrorNotFound) {
    fprintf(stderr, "XQueueGet of a made-up handle: %d\n", result);
    return 1;
  }
  return 0;
}
