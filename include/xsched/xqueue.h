/* XQueues: preemptible queues over a platform's hardware queues.
 *
 * A program creates a HwQueue with its platform's HAL (for example OclQueueCreate in xsched/opencl/hal.h), creates an XQueue
 * over it, and uses its stream or command queue as before: with a shim its launches are scheduled. Without a shim, the program
 * passes commands to XQueueSubmit.
 *
 * Every function is thread-safe. Handles are checked: a stale or invalid one yields kXSchedErrorNotFound; a null pointer or
 * a level that is none yields kXSchedErrorInvalidValue. Below, only other errors are listed. Unknown flags are ignored.
 */
#ifndef XSCHED_XQUEUE_H_
#define XSCHED_XQUEUE_H_

#include "xsched/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Creates an XQueue over `hwq` with preemption level `level` (XPreemptLevel) and `flags` (XQueueCreateFlag). If the HAL does
 * not have this level for this queue, it gets the best one below it. If `hwq` has an XQueue already, made by the program or
 * by a shim, the program gets this one as it is. *xq is 0 after an error.
 * Defaults: at most 16 commands in flight, released 8 at a time; priority 0; utilization 100.
 * Errors: kXSchedErrorNotAllowed: the process has 1024 XQueues; kXSchedErrorUnknown: out of memory or descriptors (one
 * warning says which). */
XSCHED_API XResult XQueueCreate(XQueueHandle *xq, HwQueueHandle hwq, int64_t level, int64_t flags);

/* The same with the level, the launch config and the hints that the environment says (XSCHED_AUTO_XQUEUE_LEVEL and so on), as of queues that a
 * shim makes. Not in XSched 1.2. */
XSCHED_API XResult XQueueCreateAuto(XQueueHandle *xq, HwQueueHandle hwq);

/* Destroys the XQueue: there is no queue with this handle any more. Held commands run, and submitted commands that are not
 * launched yet are launched, also those with a launch callback. The function waits until other threads have left their calls on
 * this queue and until these launches have returned, at most three seconds. It does not wait until the device has done the
 * commands. After it, the HwQueue and the platform's queue may be destroyed.
 * In a callback that is called within a launch on this queue, it does not wait for launches, and may wait a second in vain for
 * the call that it is in. The HwQueue and the platform's queue must then stay until that launch has returned. */
XSCHED_API XResult XQueueDestroy(XQueueHandle xq);

/* The XQueue over `hwq`. kXSchedErrorNotFound: it has none. */
XSCHED_API XResult XQueueGet(XQueueHandle *xq, HwQueueHandle hwq);

/* The XQueues of this process. Stores the handles of the first `capacity` of them, and in *count how many there are. Not in XSched
 * 1.2. */
XSCHED_API XResult XQueueList(XQueueHandle *xqs, size_t capacity, size_t *count);

/* Changes the preemption level, to the best one that the queue has up to `level`. May be called at any time. */
XSCHED_API XResult XQueueSetPreemptLevel(XQueueHandle xq, XPreemptLevel level);

/* The preemption level that the queue has. (Since 2.0) */
XSCHED_API XResult XQueueGetPreemptLevel(XQueueHandle xq, XPreemptLevel *level);

/* Limits what is in flight on a queue that may be preempted: at most `threshold` commands, released `batch_size` at a time
 * (at most `threshold`). If commands are long, fewer are in flight: they should finish within XSCHED_PREEMPT_LATENCY_US.
 * A value of 0 or less leaves the setting unchanged. kXSchedErrorInvalidValue: the batch size, which may be the unchanged one (8 at
 * first), is above the threshold; nothing has changed. */
XSCHED_API XResult XQueueSetLaunchConfig(XQueueHandle xq, int64_t threshold, int64_t batch_size);

/* Submits a command. A thread of XSched launches submitted commands in order, while the program has not suspended the queue
 * and fewer are in flight than its launch config says. If a scheduler holds the queue, they wait there. The function returns
 * at once; with kQueueCreateFlagBlockingSubmit it returns when the command has been launched. When the command has
 * finished, XSched destroys it (unless HwCommandKeep was called). The program may still wait for it and may destroy it, but
 * need not; it can do nothing else with it.
 * Errors: kXSchedErrorNotAllowed: submitted before; kXSchedErrorInvalidValue: a command of another platform. */
XSCHED_API XResult XQueueSubmit(XQueueHandle xq, HwCommandHandle hw_cmd);

/* Waits until `hw_cmd` has finished, also while the queue is suspended. Errors: kXSchedErrorNotAllowed: it was not submitted to
 * this queue, or as XQueueWaitAll says; kXSchedErrorNotFound: unknown, or dropped by XQueueResume. */
XSCHED_API XResult XQueueWait(XQueueHandle xq, HwCommandHandle hw_cmd);

/* Waits until everything that was submitted (and, with a shim, launched) before the call has finished.
 * Errors: kXSchedErrorNotAllowed (CUDA, HIP): nobody can know now, because the stream is being captured, or because it is the
 * default stream of another thread; on all platforms: the caller is a command of this queue that is being launched, and would wait
 * for itself. */
XSCHED_API XResult XQueueWaitAll(XQueueHandle xq);

/* Returns whether the queue is idle or ready, as far as XSched knows. If the program has not synchronized with the queue,
 * XSched learns of completion a moment later. */
XSCHED_API XResult XQueueQuery(XQueueHandle xq, XQueueState *state);

/* Suspends the queue. `flags` (XQueueSuspendFlag) say what to wait for. Launches are still accepted and do not block (HIP: they
 * wait, see xsched/hip/hal.h). What the preemption level cannot stop (at level 1: commands in flight) runs to its end.
 * Suspending a suspended queue only waits: for kQueueSuspendFlagSyncHwQueue, as the first time.
 * Errors: kXSchedErrorNotAllowed: it would have to wait, and cannot (XQueueWaitAll); nothing has changed. */
XSCHED_API XResult XQueueSuspend(XQueueHandle xq, int64_t flags);

/* Resumes the queue. kQueueResumeFlagDropCommands drops submitted commands whose launch has not begun. Resuming a queue that is
 * not suspended does nothing. A scheduler may still hold the queue. */
XSCHED_API XResult XQueueResume(XQueueHandle xq, int64_t flags);

/* Returns the number of commands launched on or submitted to the queue since it was created. */
XSCHED_API XResult XQueueProfileHwCommandCount(XQueueHandle xq, int64_t *count);

/* Destroys the HwQueue; the platform's own queue stays. kXSchedErrorNotAllowed: destroy its XQueue first. */
XSCHED_API XResult HwQueueDestroy(HwQueueHandle hwq);

/* Launches a command immediately and bypasses the XQueue. Afterwards XSched destroys the command, unless HwCommandKeep was
 * called. Errors: those of its launch; kXSchedErrorNotAllowed: submitted before; kXSchedErrorInvalidValue: a command of another
 * platform. */
XSCHED_API XResult HwQueueLaunch(HwQueueHandle hwq, HwCommandHandle hw_cmd);

/* Waits until everything enqueued on the hardware queue has finished. */
XSCHED_API XResult HwQueueSynchronize(HwQueueHandle hwq);

/* Creates a command that calls `launch` with the HwQueue and `data`. `launch` may enqueue any work on the platform's queue.
 * kXSchedErrorUnknown: out of memory. */
XSCHED_API XResult HwCommandCreateCallback(HwCommandHandle *hw_cmd, LaunchCallback launch, void *data);

/* Keeps the command after its launch, until HwCommandDestroy. HwQueueLaunch may then launch it any number of times. Without
 * this, a launch consumes the command, as in XSched 1.2. kXSchedErrorNotAllowed: that has happened already. (Since 2.0) */
XSCHED_API XResult HwCommandKeep(HwCommandHandle hw_cmd);

/* Destroys the command. If it still waits to be launched, it will be. */
XSCHED_API XResult HwCommandDestroy(HwCommandHandle hw_cmd);

#ifdef __cplusplus
}
#endif

#endif /* XSCHED_XQUEUE_H_ */
