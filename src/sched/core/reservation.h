// What a queue's reservation means: its ranges, that of a process with several queues, and how much of a
// device it takes.
#pragma once

#include "sched/core/types.h"

namespace xsched::sched {

// The part of a device that is guaranteed by hints, or to a tenant; 0: none.
inline double GuaranteeOf(const auto& hints) {
  if (hints.guarantee_us <= 0 || hints.period_us <= 0) return 0;
  return static_cast<double>(hints.guarantee_us) / static_cast<double>(hints.period_us);
}

// All of them are 0, or the ranges of XHintReservation (include/xsched/hint.h) are kept.
inline bool IsReservation(const Hints& hints) {
  if (hints.guarantee_us == 0 && hints.period_us == 0 && hints.limit_us == 0 && hints.burst_us == 0)
    return true;
  return hints.period_us >= RESERVATION_PERIOD_MIN && hints.period_us <= RESERVATION_PERIOD_MAX &&
         hints.guarantee_us >= 0 && hints.guarantee_us <= hints.period_us && hints.limit_us >= 0 &&
         hints.limit_us <= hints.period_us &&
         (hints.limit_us == 0 || (hints.limit_us >= hints.guarantee_us && hints.limit_us >= TIMESLICE_MIN)) &&
         hints.guarantee_us + hints.limit_us > 0 && hints.burst_us >= 0 && hints.burst_us <= hints.limit_us;
}

inline bool HasReservationOf(const Hints& one, const Hints& other) {
  return one.guarantee_us == other.guarantee_us && one.period_us == other.period_us &&
         one.limit_us == other.limit_us && one.burst_us == other.burst_us;
}

// Gives `hints` the reservation of `other`.
inline void TakeReservation(auto& hints, const auto& other) {
  hints.guarantee_us = other.guarantee_us;
  hints.period_us = other.period_us;
  hints.limit_us = other.limit_us;
  hints.burst_us = other.burst_us;
}

// Sets the reservation of a process whose queues have those of `one` and `other`: the larger guarantee, and
// the stricter limit with its burst. A limit is converted where its period is another one.
inline void CombineReservations(Hints& both, const Hints& one, const Hints& other) {
  const Hints& larger = GuaranteeOf(other) > GuaranteeOf(one) ? other : one;
  auto is_stricter = [](const Hints& a, const Hints& b) {
    return a.limit_us > 0 && (b.limit_us == 0 || a.limit_us * b.period_us < b.limit_us * a.period_us);
  };
  const Hints& stricter = is_stricter(other, one) ? other : one;
  both.guarantee_us = larger.guarantee_us;
  both.period_us = larger.guarantee_us > 0 ? larger.period_us : stricter.period_us;
  both.limit_us = stricter.limit_us;
  both.burst_us = stricter.burst_us;
  if (stricter.limit_us == 0 || stricter.period_us == both.period_us) return;
  both.limit_us = stricter.limit_us * both.period_us / stricter.period_us;
  both.burst_us = stricter.burst_us * both.period_us / stricter.period_us;
}

}  // namespace xsched::sched
