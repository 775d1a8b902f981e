/* A program that knows nothing of XSched. Run it twice at the same time, and give one more than the other:
 *
 *   by priority    xsched run --priority 1 -- ./transparent_<platform>
 *                  xsched run --priority 0 -- ./transparent_<platform>
 *   by shares      xsched run --policy UP --utilization 75 -- ./transparent_<platform>
 *                  xsched run --policy UP --utilization 25 -- ./transparent_<platform>
 *
 *   transparent [tasks]     how many tasks to run (50)
 */
#include "task.h"

enum { kCommands = 10 };

int main(int argc, char** argv) {
  const int tasks = argc > 1 ? atoi(argv[1]) : 50;
  OpenDevice();
  const DeviceQueue queue = OpenQueue();
  double sum = 0;
  for (int i = 0; i < tasks; ++i) {
    const double ms = RunTask(&queue, kCommands);
    sum += ms;
    printf("task %d: %.2f ms\n", i, ms);
  }
  printf("%d tasks, %.2f ms each\n", tasks, sum / tasks);
  CloseQueue(&queue);
  return 0;
}
