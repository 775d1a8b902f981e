/* The HIP HAL needs neither HIP's headers nor its runtime. It uses the program's runtime, and returns an
 * error if there is none. */
#include <stdio.h>
#include <xsched/hip/hal.h>
#include <xsched/xsched.h>

int main(void) {
  HwQueueHandle hwq = 0;
  XResult result = HipQueueCreate(&hwq, NULL);
  if (result != kXSchedErrorNotFound || hwq != 0) {
    fprintf(stderr, "HipQueueCreate without a runtime: %d\n", result);
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
