/* A scheduler within the program: two threads with a queue each, of which one is more urgent.
 *
 *   xsched run --scheduler APP -- ./in_process_<platform>
 *
 * The program chooses the scheduler by itself. The shim, which xsched run loads, makes what the threads
 * launch wait.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "task.h"

enum { kTasks = 20, kCommands = 10 };

static atomic_int urgent_done;

typedef struct Worker {
  Priority priority;
  int tasks;
  double sum;
} Worker;

static void* Work(void* data) {
  Worker* worker = data;
  UseDevice();
  const DeviceQueue queue = OpenQueue();
  const XQueueHandle xq = CreateXQueue(&queue);
  CHECK(XHintPriority(xq, worker->priority));
  /* The urgent one runs its tasks; the other one runs as long as that takes. */
  while (worker->priority > 0 ? worker->tasks < kTasks : !atomic_load(&urgent_done)) {
    worker->sum += RunTask(&queue, kCommands);
    ++worker->tasks;
    if (worker->priority > 0) SleepMs(10);
  }
  if (worker->priority > 0) atomic_store(&urgent_done, 1);
  CloseQueue(&queue);
  return NULL;
}

int main(void) {
  Worker workers[2] = {{.priority = 1}, {.priority = 0}};
  pthread_t threads[2];
  OpenDevice();
  CHECK(XHintSetScheduler(kSchedulerLocal, kPolicyHighestPriorityFirst));
  for (int i = 0; i < 2; ++i) {
    if (pthread_create(&threads[i], NULL, Work, &workers[i]) != 0) return 1;
  }
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < 2; ++i) {
    printf("priority %d: %d tasks, %.2f ms each\n", workers[i].priority, workers[i].tasks,
           workers[i].tasks == 0 ? 0.0 : workers[i].sum / workers[i].tasks);
  }
  return 0;
}
