/* The CUDA HAL needs neither CUDA's headers nor its driver. It uses the program's driver, and returns an
 * error if there is none. */
#include <stdio.h>
#include <xsched/cuda/hal.h>
#include <xsched/xsched.h>

int main(void) {
  HwQueueHandle hwq = 0;
  XResult result = CudaQueueCreate(&hwq, NULL);
  if (result != kXSchedErrorNotFound || hwq != 0) {
    fprintf(stderr, "CudaQueueCreate without a driver: %d\n", result);
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
