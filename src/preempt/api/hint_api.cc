// The C API of xsched/hint.h.
//
// As in XSched 1.2, a value out of its range is no error. Priorities get the nearest value that there is; a
// utilization, a weight, a reservation, a laxity, a deadline, a latency target, a floor or a timeslice
// changes nothing. One warning says so.
#include "xsched/hint.h"

#include <inttypes.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/log.h"
#include "preempt/api/pinned_queue.h"
#include "sched/core/reservation.h"

using namespace xsched::preempt;
using xsched::sched::Hints;

namespace {

void WarnOfRange(const char* hint, int64_t value, const char* effect) {
  static constinit std::atomic<bool> warned{false};
  if (warned.exchange(true, std::memory_order_relaxed)) return;
  XSCHED_WARN("%s: %" PRId64 " is out of its range (xsched/hint.h): %s", hint, value, effect);
}

Priority InRange(Priority priority) {
  if (priority == PRIORITY_NO_EXECUTE) return priority;
  const Priority nearest = std::clamp<Priority>(priority, PRIORITY_MIN, PRIORITY_MAX);
  if (nearest != priority) WarnOfRange("priority", priority, "using the nearest one");
  return nearest;
}

bool IsInRange(const char* hint, int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max) return true;
  WarnOfRange(hint, value, "ignoring it");
  return false;
}

template <typename Change>
XResult ChangeHints(XQueueHandle xq, Change&& change) {
  const PinnedQueue queue(xq);
  if (!queue) return kXSchedErrorNotFound;
  Hints hints = queue->hints();
  change(hints);
  queue->SetHints(hints);
  ThisProcess().HintsChanged(*queue);
  return kXSchedSuccess;
}

// Stores hints of the queue: each as a member of Hints, and where to.
template <typename... Hint>
XResult ReadHints(XQueueHandle xq, Hint... hint) {
  if ((!hint.second || ...)) return kXSchedErrorInvalidValue;
  const PinnedQueue queue(xq);
  if (!queue) return kXSchedErrorNotFound;
  const Hints hints = queue->hints();
  ((*hint.second = hints.*hint.first), ...);
  return kXSchedSuccess;
}

}  // namespace

XResult XHintSetScheduler(XSchedulerType scheduler, XPolicyType policy) {
  if (scheduler <= kSchedulerUnknown || scheduler >= kSchedulerMax) return kXSchedErrorInvalidValue;
  if (!ThisProcess().StartAgent()) return kXSchedErrorUnknown;
  return ThisProcess().agent.SetScheduler(scheduler, policy);
}

XResult XHintPriority(XQueueHandle xq, Priority prio) {
  return ChangeHints(xq, [prio](Hints& hints) { hints.priority = InRange(prio); });
}

XResult XHintUtilization(XQueueHandle xq, Utilization util) {
  return ChangeHints(xq, [util](Hints& hints) {
    if (IsInRange("utilization", util, UTILIZATION_MIN, UTILIZATION_MAX)) hints.utilization = util;
  });
}

XResult XHintWeight(XQueueHandle xq, Weight weight) {
  return ChangeHints(xq, [weight](Hints& hints) {
    if (IsInRange("weight", weight, WEIGHT_MIN, WEIGHT_MAX)) hints.weight = weight;
  });
}

XResult XHintReservation(XQueueHandle xq, int64_t guarantee_us, int64_t period_us, int64_t limit_us,
                         int64_t burst_us) {
  return ChangeHints(xq, [=](Hints& hints) {
    Hints changed = hints;
    changed.guarantee_us = guarantee_us;
    changed.period_us = period_us;
    changed.limit_us = limit_us;
    changed.burst_us = burst_us;
    if (xsched::sched::IsReservation(changed)) {
      hints = changed;
    } else {
      WarnOfRange("reservation, period", period_us, "or another part of it is; ignoring it");
    }
  });
}

XResult XHintLatencyTarget(XQueueHandle xq, LatencyTarget target_us) {
  return ChangeHints(xq, [target_us](Hints& hints) {
    if (IsInRange("latency target", target_us, NO_LATENCY_TARGET, LATENCY_TARGET_MAX))
      hints.latency_target_us = target_us;
  });
}

XResult XHintFloor(XQueueHandle xq, Floor percent) {
  return ChangeHints(xq, [percent](Hints& hints) {
    if (IsInRange("floor", percent, FLOOR_MIN, FLOOR_MAX)) hints.floor = percent;
  });
}

XResult XHintTimeslice(Timeslice ts_us) {
  if (IsInRange("timeslice", ts_us, TIMESLICE_MIN, TIMESLICE_MAX)) ThisProcess().agent.SetTimeslice(ts_us);
  return kXSchedSuccess;
}

XResult XHintLaxity(XQueueHandle xq, Laxity lax_us, Priority lax_prio, Priority crit_prio) {
  lax_us = std::max(lax_us, Laxity{NO_LAXITY});
  return ChangeHints(xq, [=](Hints& hints) {
    if (!IsInRange("laxity", lax_us, NO_LAXITY, DEADLINE_MAX)) return;
    hints.laxity_us = lax_us;
    hints.lax_priority = InRange(lax_prio);
    hints.critical_priority = InRange(crit_prio);
  });
}

XResult XHintDeadline(XQueueHandle xq, Deadline ddl_us) {
  ddl_us = std::max(ddl_us, Deadline{NO_DEADLINE});
  return ChangeHints(xq, [ddl_us](Hints& hints) {
    if (IsInRange("deadline", ddl_us, NO_DEADLINE, DEADLINE_MAX)) hints.deadline_us = ddl_us;
  });
}

XResult XHintKDeadline(size_t k) {
  if (k >= 1 && k <= xsched::sched::kMostAtATime) {
    ThisProcess().agent.SetAtATime(k);
  } else {
    WarnOfRange("k", static_cast<int64_t>(k), "ignoring it");
  }
  return kXSchedSuccess;
}

XResult XHintGetPriority(XQueueHandle xq, Priority* prio) {
  return ReadHints(xq, std::pair{&Hints::priority, prio});
}

XResult XHintGetUtilization(XQueueHandle xq, Utilization* util) {
  return ReadHints(xq, std::pair{&Hints::utilization, util});
}

XResult XHintGetWeight(XQueueHandle xq, Weight* weight) {
  return ReadHints(xq, std::pair{&Hints::weight, weight});
}

XResult XHintGetReservation(XQueueHandle xq, int64_t* guarantee_us, int64_t* period_us, int64_t* limit_us,
                            int64_t* burst_us) {
  return ReadHints(xq, std::pair{&Hints::guarantee_us, guarantee_us}, std::pair{&Hints::period_us, period_us},
                   std::pair{&Hints::limit_us, limit_us}, std::pair{&Hints::burst_us, burst_us});
}

XResult XHintGetLatencyTarget(XQueueHandle xq, LatencyTarget* target_us) {
  return ReadHints(xq, std::pair{&Hints::latency_target_us, target_us});
}

XResult XHintGetFloor(XQueueHandle xq, Floor* percent) {
  return ReadHints(xq, std::pair{&Hints::floor, percent});
}

XResult XHintGetLaxity(XQueueHandle xq, Laxity* lax_us, Priority* lax_prio, Priority* crit_prio) {
  return ReadHints(xq, std::pair{&Hints::laxity_us, lax_us}, std::pair{&Hints::lax_priority, lax_prio},
                   std::pair{&Hints::critical_priority, crit_prio});
}

XResult XHintGetDeadline(XQueueHandle xq, Deadline* ddl_us) {
  return ReadHints(xq, std::pair{&Hints::deadline_us, ddl_us});
}
