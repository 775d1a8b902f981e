/* The software device: queues whose commands take a given time, with preemption levels 1 to 3. For tests, and for trying
 * policies without an accelerator.
 *
 * A device runs one command at a time, in the order in which the commands of all its queues arrived, as an accelerator
 * does on its own. Devices are per process; the same id names the same device to the schedulers of all processes, so
 * policies work across processes, while commands of different processes do not slow each other down.
 *
 * Thread-safe. Needs libhalsoft and libpreempt.
 */
#ifndef XSCHED_SOFT_HAL_H_
#define XSCHED_SOFT_HAL_H_

#include "xsched/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a queue on device `device` with preemption levels up to `max_level`. Destroyed by HwQueueDestroy, which waits
 * for what is enqueued.
 * Errors: kXSchedErrorInvalidValue; kXSchedErrorUnknown (no memory, no thread). */
XSCHED_API XResult SoftQueueCreate(HwQueueHandle *hwq, XDeviceId device, XPreemptLevel max_level);

/* Enqueues a command of `duration_us` microseconds, as a program does through a shim: the call never waits for the
 * device, and the XQueue over `hwq`, if there is one, schedules it. `done`, if not null, is called with `data` on the
 * device's thread when the command has finished; it must not block.
 * Errors: kXSchedErrorNotFound: `hwq` is no software queue; kXSchedErrorInvalidValue: a negative duration. */
XSCHED_API XResult SoftLaunch(HwQueueHandle hwq, int64_t duration_us, void (*done)(void *data), void *data);

/* Returns when everything enqueued has finished, as a program's own synchronization does.
 * Errors: kXSchedErrorNotFound: `hwq` is no software queue. */
XSCHED_API XResult SoftSynchronize(HwQueueHandle hwq);

/* A command of `duration_us` microseconds for XQueueSubmit and HwQueueLaunch. Destroyed by HwCommandDestroy.
 * Errors: kXSchedErrorInvalidValue: a null pointer or a negative duration; kXSchedErrorUnknown: out of memory. */
XSCHED_API XResult SoftCommandCreate(HwCommandHandle *hw_cmd, int64_t duration_us);

/* How many commands of the queue have finished, and for how long the device has worked for it.
 * Errors: kXSchedErrorNotFound: `hwq` is no software queue. */
XSCHED_API XResult SoftQueueReport(HwQueueHandle hwq, uint64_t *finished, uint64_t *busy_ns);

#ifdef __cplusplus
}
#endif

#endif /* XSCHED_SOFT_HAL_H_ */
