/* Hints: what a program tells the policy, and which scheduler it uses.
 *
 * Thread-safe. A queue keeps all of its hints, and each policy uses those that it knows ("xsched policy list" names them). They
 * survive a change of policy and of server. Unknown handles yield kXSchedErrorNotFound. A value out of its range is no error, as in
 * XSched 1.2: a priority becomes the nearest one, another value is ignored, and one warning says so.
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
 * now; the process runs unscheduled until one does. */
XSCHED_API XResult XHintSetScheduler(XSchedulerType scheduler, XPolicyType policy);

/* PRIORITY_MIN … PRIORITY_MAX, or PRIORITY_NO_EXECUTE: bigger is more urgent. */
XSCHED_API XResult XHintPriority(XQueueHandle xq, Priority prio);

/* Percent, 0 … 100: the queue's share, relative to the values of the other queues. */
XSCHED_API XResult XHintUtilization(XQueueHandle xq, Utilization util);

/* WEIGHT_MIN … WEIGHT_MAX, WEIGHT_DEFAULT unless it is set: the share of the queue, and of its process among other processes, in
 * proportion to the weights of the others that have work. A process has the highest weight of its queues. */
XSCHED_API XResult XHintWeight(XQueueHandle xq, Weight weight);

/* Microseconds, TIMESLICE_MIN … TIMESLICE_MAX: the timeslice of policies that use one, for all queues. With
 * kSchedulerGlobal the server accepts it from root, its own user and its admin group, and ignores it from others.
 * A scheduler that comes later gets it as well. */
XSCHED_API XResult XHintTimeslice(Timeslice ts_us);

/* The queue may be delayed by `lax_us` microseconds (or NO_LAXITY). Until then its priority is `lax_prio`, after that
 * `crit_prio`. */
XSCHED_API XResult XHintLaxity(XQueueHandle xq, Laxity lax_us, Priority lax_prio, Priority crit_prio);

/* The queue's work should be done `ddl_us` microseconds after it became ready (or NO_DEADLINE). */
XSCHED_API XResult XHintDeadline(XQueueHandle xq, Deadline ddl_us);

/* 1 … 64: how many queues policy K-EDF runs at a time, for all queues; 1 unless it is set. With kSchedulerGlobal the server accepts
 * it from those from whom it accepts a timeslice. A scheduler that comes later gets it as well. */
XSCHED_API XResult XHintKDeadline(size_t k);

#ifdef __cplusplus
}
#endif

#endif /* XSCHED_HINT_H_ */
