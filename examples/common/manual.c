/* The program decides by itself: it suspends a background queue while something urgent runs, and resumes it
 * afterwards.
 *
 *   xsched run --scheduler APP -- ./manual_<platform>
 */
#include <pthread.h>
#include <stdatomic.h>

#include "task.h"

enum { kCommands = 10, kUrgentTasks = 5 };

static DeviceQueue background;
static atomic_int tasks;
static atomic_int done;

static void* RunBackground(void* unused) {
  UseDevice();
  while (!atomic_load(&done)) {
    RunTask(&background, kCommands);
    atomic_fetch_add(&tasks, 1);
  }
  return unused;
}

int main(void) {
  pthread_t thread;
  OpenDevice();
  background = OpenQueue();
  const DeviceQueue urgent = OpenQueue();
  const XQueueHandle xq = CreateXQueue(&background);
  if (pthread_create(&thread, NULL, RunBackground, NULL) != 0) return 1;
  SleepMs(100);

  CHECK(XQueueSuspend(xq, kQueueSuspendFlagSyncHwQueue));
  SleepMs(20); /* what was in flight has finished, and its thread has seen that */
  const int before = atomic_load(&tasks);
  double sum = 0;
  for (int i = 0; i < kUrgentTasks; ++i) sum += RunTask(&urgent, kCommands);
  const int meanwhile = atomic_load(&tasks) - before;
  CHECK(XQueueResume(xq, kQueueResumeFlagNone));

  while (atomic_load(&tasks) < before + 3) SleepMs(1);
  atomic_store(&done, 1);
  pthread_join(thread, NULL);
  printf("%d background tasks before, %d while it was suspended; urgent: %.2f ms each\n", before, meanwhile,
         sum / kUrgentTasks);
  CloseQueue(&background);
  CloseQueue(&urgent);
  return meanwhile == 0 ? 0 : 1;
}
