// What a queue's reservation means: its ranges, that of a process with several queues, and how much of a
// device it takes.
#pragma once

#include <algorithm>

#include "sched/core/types.h"

namespace xsched::sched {

// The part of a device that is guaranteed by hints, or to a tenant; 0: none.
inline double GuaranteeOf(const auto& hints) {
  if (hints.guarantee_us <= 0 || hints.period_us <= 0) return 0;
  return static_cast<double>(hints.guarantee_us) / static_cast<double>(hints.period_us);
}

// "": all of them are 0, or the ranges of XHintReservation (include/xsched/hint.h) are kept. Otherwise what
// is wrong.
inline const char* ReservationProblem(const Hints& hints) {
  if (hints.guarantee_us == 0 && hints.period_us == 0 && hints.limit_us == 0 && hints.burst_us == 0)
    return "";
  if (hints.guarantee_us < 0 || hints.limit_us < 0 || hints.burst_us < 0)
    return "a part of it is less than 0";
  if (hints.period_us == 0) return "it has no period";
  if (hints.period_us < RESERVATION_PERIOD_MIN || hints.period_us > RESERVATION_PERIOD_MAX)
    return "the period is not from 1000 to 1000000 µs";
  if (hints.guarantee_us == 0 && hints.limit_us == 0) return "it has neither a guarantee nor a limit";
  if (hints.guarantee_us > hints.period_us) return "the guarantee is longer than the period";
  if (hints.limit_us > hints.period_us) return "the limit is longer than the period";
  if (hints.limit_us != 0 && hints.limit_us < hints.guarantee_us)
    return "the limit is less than the guarantee";
  if (hints.limit_us != 0 && hints.limit_us < TIMESLICE_MIN) return "the limit is less than 100 µs";
  if (hints.burst_us > hints.limit_us) return "the burst is longer than the limit";
  return "";
}
static_assert(RESERVATION_PERIOD_MIN == 1000 && RESERVATION_PERIOD_MAX == 1000000 && TIMESLICE_MIN == 100);

inline bool IsReservation(const Hints& hints) { return *ReservationProblem(hints) == '\0'; }

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
// the stricter limit with its burst, in the longer of their periods. In the shorter one, a limit would be
// rounded to a far larger or smaller part of the device.
inline void CombineReservations(Hints& both, const Hints& one, const Hints& other) {
  const Hints& larger = GuaranteeOf(other) > GuaranteeOf(one) ? other : one;
  auto is_stricter = [](const Hints& a, const Hints& b) {
    return a.limit_us > 0 && (b.limit_us == 0 || a.limit_us * b.period_us < b.limit_us * a.period_us);
  };
  const Hints& stricter = is_stricter(other, one) ? other : one;
  const int64_t period_us = std::max(larger.guarantee_us > 0 ? larger.period_us : 0,
                                     stricter.limit_us > 0 ? stricter.period_us : 0);
  auto in_period = [=](int64_t time_us, const Hints& of) {
    return time_us > 0 ? time_us * period_us / of.period_us : 0;
  };
  both.guarantee_us = in_period(larger.guarantee_us, larger);
  both.limit_us = in_period(stricter.limit_us, stricter);
  both.burst_us = in_period(stricter.burst_us, stricter);
  both.period_us = period_us;
}

}  // namespace xsched::sched
