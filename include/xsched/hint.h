/* Hints: what a program tells the policy, and which scheduler it uses.
 *
 * Thread-safe. A queue keeps all of its hints, and each policy uses those that it knows ("xsched policy list" names them). They
 * survive a change of policy and of server. Unknown handles yield kXSchedErrorNotFound. A value out of its range is no error, as in
 * XSched 1.2: a priority becomes the nearest one, another value is ignored. The first
 * such value in a process prints a warning.
 */
#ifndef XSCHED_HINT_H_
#define XSCHED_HINT_H_

#include "xsched/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Chooses the scheduler of this process's queues from now on. `policy` is used with kSchedulerLocal only.
 * Before the first call XSCHED_SCHEDULER and XSCHED_POLICY decide; without them the program manages its queues itself.
 * Errors: kXSchedErrorNotSupported: this build has no such policy; kXSchedErrorNotFound (kSchedulerGlobal): no server answers
 * now; the process runs unscheduled until one does; kXSchedErrorInvalidValue: `scheduler` is none; kXSchedErrorUnknown: the
 * thread that XSched needs cannot be started. */
XSCHED_API XResult XHintSetScheduler(XSchedulerType scheduler, XPolicyType policy);

/* PRIORITY_MIN … PRIORITY_MAX, or PRIORITY_NO_EXECUTE: bigger is more urgent. */
XSCHED_API XResult XHintPriority(XQueueHandle xq, Priority prio);

/* Percent, 0 … 100: the queue's share, relative to the values of the other queues. */
XSCHED_API XResult XHintUtilization(XQueueHandle xq, Utilization util);

/* WEIGHT_MIN … WEIGHT_MAX, WEIGHT_DEFAULT unless it is set: the share of the queue, and of its process among other processes, in
 * proportion to the weights of the others that have work. A process has the highest weight of its queues. */
XSCHED_API XResult XHintWeight(XQueueHandle xq, Weight weight);

/* Microseconds of device time in each period of `period_us` (RESERVATION_PERIOD_MIN … RESERVATION_PERIOD_MAX):
 * - `guarantee_us`, 0 … period_us: the queue gets so much of each period in which it always has work;
 * - `limit_us`, 0 (none), or at least guarantee_us and TIMESLICE_MIN, and at most period_us: it gets no more, even if the device is idle;
 * - `burst_us`, 0 … limit_us: so much of a limit that was not used may be used in later periods.
 * All 0: no reservation, which is so unless it is set. Values that contradict this are ignored. A process has the largest guarantee and
 * the strictest limit of its queues. If the guarantees of all processes on a device would be more than the device, the scheduler leaves
 * the queue's reservation as it was, and this process logs a warning; this function does not wait for that. */
XSCHED_API XResult XHintReservation(XQueueHandle xq, int64_t guarantee_us, int64_t period_us, int64_t limit_us, int64_t burst_us);

/* Microseconds, 1 … LATENCY_TARGET_MAX, or NO_LATENCY_TARGET: how long a request of the queue may take in 99 of 100 cases, from when it
 * came until it has ended. A process has the shortest target of its queues. */
XSCHED_API XResult XHintLatencyTarget(XQueueHandle xq, LatencyTarget target_us);

/* Percent, FLOOR_MIN … FLOOR_MAX, FLOOR_DEFAULT unless it is set: while this queue has work, the queues without a latency target get so
 * much of the device together at least. The highest of theirs counts; that of a queue with a latency target does not. */
XSCHED_API XResult XHintFloor(XQueueHandle xq, Floor percent);

/* Microseconds, TIMESLICE_MIN … TIMESLICE_MAX: the timeslice of policies that use one, for all queues. With
 * kSchedulerGlobal the server accepts it from root, its own user and its admin group, and ignores it from others.
 * A scheduler that comes later gets it as well. */
XSCHED_API XResult XHintTimeslice(Timeslice ts_us);

/* The queue may be delayed by `lax_us` microseconds, 0 … DEADLINE_MAX (or NO_LAXITY). Until then its priority is `lax_prio`, after that
 * `crit_prio`. */
XSCHED_API XResult XHintLaxity(XQueueHandle xq, Laxity lax_us, Priority lax_prio, Priority crit_prio);

/* The queue's work should be done `ddl_us` microseconds, 0 … DEADLINE_MAX, after it became ready (or NO_DEADLINE). */
XSCHED_API XResult XHintDeadline(XQueueHandle xq, Deadline ddl_us);

/* 1 … 64: how many queues policy K-EDF runs at a time, for all queues; 1 unless it is set. With kSchedulerGlobal the server accepts
 * it from those from whom it accepts a timeslice. A scheduler that comes later gets it as well. */
XSCHED_API XResult XHintKDeadline(size_t k);

/* The hints that the queue has now: those that were set last, by the program, by its environment, or by the server for `xsched hint`.
 * Errors: kXSchedErrorInvalidValue: a pointer is null. Not in XSched 1.2. */
XSCHED_API XResult XHintGetPriority(XQueueHandle xq, Priority *prio);
XSCHED_API XResult XHintGetUtilization(XQueueHandle xq, Utilization *util);
XSCHED_API XResult XHintGetWeight(XQueueHandle xq, Weight *weight);
XSCHED_API XResult XHintGetReservation(XQueueHandle xq, int64_t *guarantee_us, int64_t *period_us, int64_t *limit_us, int64_t *burst_us);
XSCHED_API XResult XHintGetLatencyTarget(XQueueHandle xq, LatencyTarget *target_us);
XSCHED_API XResult XHintGetFloor(XQueueHandle xq, Floor *percent);
XSCHED_API XResult XHintGetLaxity(XQueueHandle xq, Laxity *lax_us, Priority *lax_prio, Priority *crit_prio);
XSCHED_API XResult XHintGetDeadline(XQueueHandle xq, Deadline *ddl_us);

#ifdef __cplusplus
}
#endif

#endif /* XSCHED_HINT_H_ */
