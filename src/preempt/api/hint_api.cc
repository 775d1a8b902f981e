// The C API of xsched/hint.h.
#include "xsched/hint.h"

#include "preempt/api/process.h"

using namespace xsched::preempt;

namespace {

bool IsPriority(Priority priority) { return priority >= PRIORITY_NO_EXECUTE && priority <= PRIORITY_MAX; }

template <typename Change>
XResult ChangeHints(XQueueHandle xq, Change&& change) {
  XQueuePin queue = ThisProcess().queues.Pin(xq);
  if (!queue) return kXSchedErrorNotFound;
  xsched::sched::Hints hints = queue->hints();
  change(hints);
  queue->SetHints(hints);
  ThisProcess().HintsChanged(*queue);
  return kXSchedSuccess;
}

}  // namespace

XResult XHintSetScheduler(XSchedulerType scheduler, XPolicyType policy) {
  if (scheduler <= kSchedulerUnknown || scheduler >= kSchedulerMax) return kXSchedErrorInvalidValue;
  if (!ThisProcess().StartAgent()) return kXSchedErrorUnknown;
  return ThisProcess().agent.SetScheduler(scheduler, policy);
}

XResult XHintPriority(XQueueHandle xq, Priority prio) {
  if (!IsPriority(prio)) return kXSchedErrorInvalidValue;
  return ChangeHints(xq, [prio](xsched::sched::Hints& hints) { hints.priority = prio; });
}

XResult XHintUtilization(XQueueHandle xq, Utilization util) {
  if (util < UTILIZATION_MIN || util > UTILIZATION_MAX) return kXSchedErrorInvalidValue;
  return ChangeHints(xq, [util](xsched::sched::Hints& hints) { hints.utilization = util; });
}

XResult XHintTimeslice(Timeslice ts_us) {
  if (ts_us < TIMESLICE_MIN || ts_us > TIMESLICE_MAX) return kXSchedErrorInvalidValue;
  return ThisProcess().agent.SetTimeslice(ts_us);
}

XResult XHintLaxity(XQueueHandle xq, Laxity lax_us, Priority lax_prio, Priority crit_prio) {
  if ((lax_us < 0 && lax_us != NO_LAXITY) || !IsPriority(lax_prio) || !IsPriority(crit_prio)) {
    return kXSchedErrorInvalidValue;
  }
  return ChangeHints(xq, [=](xsched::sched::Hints& hints) {
    hints.laxity_us = lax_us;
    hints.lax_priority = lax_prio;
    hints.critical_priority = crit_prio;
  });
}

XResult XHintDeadline(XQueueHandle xq, Deadline ddl_us) {
  if (ddl_us < 0 && ddl_us != NO_DEADLINE) return kXSchedErrorInvalidValue;
  return ChangeHints(xq, [ddl_us](xsched::sched::Hints& hints) { hints.deadline_us = ddl_us; });
}

XResult XHintKDeadline(size_t k) {
  if (k == 0) return kXSchedErrorInvalidValue;
  // No policy of this build runs k queues by deadline.
  return kXSchedErrorNotSupported;
}
