/* Streams of one program with different priorities: a thread that keeps the GPU busy, and an urgent task
 * beside it.
 *
 *   xsched run --scheduler LCL -- ./hints     the process schedules its streams itself
 *   xsched run -- ./hints                     the server schedules them, with those of other programs
 *   ./hints                                   they are not scheduled
 */
#include <pthread.h>
#include <stdatomic.h>
#include <xsched/cuda/hal.h>

#include "gpu.h"

enum { kBatchUs = 1000, kAhead = 32, kTaskUs = 200, kTaskKernels = 5, kTasks = 50 };

static Gpu gpu;
static atomic_int done;

/* The shim makes a stream's queue with its first command. 1: the stream is not scheduled. */
static int SetPriority(CUstream stream, Priority priority) {
  HwQueueHandle hwq;
  XQueueHandle xq;
  if (CudaQueueGet(&hwq, stream) != kXSchedSuccess || XQueueGet(&xq, hwq) != kXSchedSuccess) return 1;
  CHECK(XHintPriority(xq, priority));
  return 0;
}

static void* Batch(void* unused) {
  CUstream stream;
  CU_CHECK(cuCtxSetCurrent(gpu.context));
  CU_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  while (!atomic_load(&done)) {
    for (int i = 0; i < kAhead; ++i) CU_CHECK(Spin(&gpu, kBatchUs, stream));
    CU_CHECK(cuStreamSynchronize(stream));
  }
  return unused;
}

static double RunTask(CUstream stream) {
  double begin = NowMs();
  for (int i = 0; i < kTaskKernels; ++i) CU_CHECK(Spin(&gpu, kTaskUs, stream));
  CU_CHECK(cuStreamSynchronize(stream));
  return NowMs() - begin;
}

int main(void) {
  CUstream stream;
  pthread_t batch;
  gpu = OpenGpu();
  CU_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  RunTask(stream);
  double alone = RunTask(stream);
  int unscheduled = SetPriority(stream, 10);
  if (pthread_create(&batch, NULL, Batch, NULL) != 0) return 1;
  double sum = 0, worst = 0;
  for (int i = 0; i < kTasks; ++i) {
    SleepMs(10);
    double ms = RunTask(stream);
    sum += ms;
    if (ms > worst) worst = ms;
  }
  atomic_store(&done, 1);
  pthread_join(batch, NULL);
  printf("%s: the task takes %.2f ms alone, %.2f beside the batch job, %.2f at worst\n",
         unscheduled ? "unscheduled" : "scheduled", alone, sum / kTasks, worst);
  return 0;
}
