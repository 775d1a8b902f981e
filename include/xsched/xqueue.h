/* XQueues: preemptible queues over a platform's hardware queues.
 *
 * A program makes a HwQueue with its platform's HAL (OclQueueCreate in xsched/opencl/hal.h, …), an XQueue over it, and goes
 * on using its stream or command queue as before: under a shim its launches are scheduled. Without a shim, commands are
 * given to XQueueSubmit.
 *
 * Every function is thread-safe. Handles are checked: a stale or made-up one yields kXSchedErrorNotFound; a null pointer or
 * an unknown flag yields kXSchedErrorInvalidValue. Only what else can go wrong is said below.
 */
#ifndef XSCHED_XQUEUE_H_
#define XSCHED_XQUEUE_H_

#include "xsched/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes an XQueue over `hwq` with preemption level `level` (XPreemptLevel) and `flags` (XQueueCreateFlag).
 * Launch config: 16 commands in flight, 8 at a time. Hints: priority 0, utilisation 100.
 * Errors: kXSchedErrorNotSupported: the HAL does not have this level for this queue; kXSchedErrorNotAllowed: `hwq` has an
 * XQueue, or the process has 1024; kXSchedErrorUnknown: out of memory or descriptors (one warning says which). */
XSCHED_API XResult XQueueCreate(XQueueHandle *xq, HwQueueHandle hwq, int64_t level, int64_t flags);

/* Takes the XQueue away: what is held runs on, commands submitted and not launched yet are launched. Calls on the queue
 * that other threads are in go on to their end, and are waited for, but for no longer than a second: then the HwQueue and the
 * platform's queue may be destroyed. */
XSCHED_API XResult XQueueDestroy(XQueueHandle xq);

/* The XQueue over `hwq`. kXSchedErrorNotFound: it has none. */
XSCHED_API XResult XQueueGet(XQueueHandle *xq, HwQueueHandle hwq);

/* Changes the preemption level, at any time. Errors: kXSchedErrorNotSupported. */
XSCHED_API XResult XQueueSetPreemptLevel(XQueueHandle xq, int64_t level);

/* At most `threshold` commands are in flight on a queue that may be preempted; `batch_size` of them (at most `threshold`)
 * are let through at a time. Where commands are long, fewer: what is in flight should finish within
 * XSCHED_PREEMPT_LATENCY_US. A value of 0 or less leaves the setting as it is. */
XSCHED_API XResult XQueueSetLaunchConfig(XQueueHandle xq, int64_t threshold, int64_t batch_size);

/* Hands a command over, to be launched in order, from a thread of XSched's, when the queue may run. Returns at once, or,
 * with kQueueCreateFlagBlockingSubmit, when it has been launched. When it has finished, its memory is given back: it need not
 * be destroyed, but may be, and may be waited for; nothing else can be done with it.
 * Errors: kXSchedErrorNotAllowed: submitted before; kXSchedErrorInvalidValue: a command of another platform. */
XSCHED_API XResult XQueueSubmit(XQueueHandle xq, HwCommandHandle hw_cmd);

/* Returns when `hw_cmd` has finished. Errors: kXSchedErrorNotAllowed: it was not submitted to this queue;
 * kXSchedErrorNotFound, too: it was dropped (XQueueResume). Waits on while the queue is suspended. */
XSCHED_API XResult XQueueWait(XQueueHandle xq, HwCommandHandle hw_cmd);

/* Returns when everything submitted and, under a shim, launched before the call has finished. */
XSCHED_API XResult XQueueWaitAll(XQueueHandle xq);

/* Idle or ready, as far as is known: completion that the program has not synchronised with is learnt a moment later. */
XSCHED_API XResult XQueueQuery(XQueueHandle xq, XQueueState *state);

/* Holds the queue: see XQueueSuspendFlag for what to wait for. Launches are still accepted and do not block. What the
 * preemption level cannot stop (at level 1: what is in flight) runs to its end. Suspending a suspended queue does nothing. */
XSCHED_API XResult XQueueSuspend(XQueueHandle xq, int64_t flags);

/* Lets it go on. kQueueResumeFlagDropCommands forgets submitted commands that were not launched. Resuming a queue that is
 * not suspended does nothing. A scheduler may still hold it. */
XSCHED_API XResult XQueueResume(XQueueHandle xq, int64_t flags);

/* Commands launched on or submitted to the queue since it was made. */
XSCHED_API XResult XQueueProfileHwCommandCount(XQueueHandle xq, int64_t *count);

/* Takes the HwQueue away; the platform's own queue stays. kXSchedErrorNotAllowed: its XQueue must go first. */
XSCHED_API XResult HwQueueDestroy(HwQueueHandle hwq);

/* Launches a command at once, past the XQueue. Errors: those of its launch. */
XSCHED_API XResult HwQueueLaunch(HwQueueHandle hwq, HwCommandHandle hw_cmd);

/* Returns when everything enqueued on the hardware queue has finished. */
XSCHED_API XResult HwQueueSynchronize(HwQueueHandle hwq);

/* A command that calls `launch` with the HwQueue and `data`; `launch` enqueues whatever it likes on the platform's queue. */
XSCHED_API XResult HwCommandCreateCallback(HwCommandHandle *hw_cmd, LaunchCallback launch, void *data);

/* Takes the command away; one that waits to be launched still is. */
XSCHED_API XResult HwCommandDestroy(HwCommandHandle hw_cmd);

#ifdef __cplusplus
}
#endif

#endif /* XSCHED_XQUEUE_H_ */
