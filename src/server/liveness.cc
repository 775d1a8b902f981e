#include "server/liveness.h"

#include <utility>

namespace xsched::server {

bool Liveness::HeardFrom(TimePoint now) {
  heard_at_ = now;
  asked_at_ = kNever;
  return std::exchange(silent_, false) && !stopped_;
}

Liveness::Verdict Liveness::Check(const Signs& signs, TimePoint now) {
  const bool was_running = running();
  Verdict verdict{};
  stopped_ = signs.stopped;
  silent_ = false;
  if (signs.has_read_all || signs.has_progressed) asked_at_ = kNever;
  if (asked_at_ == kNever) {
    verdict.must_ask = !stopped_;
  } else {
    const TimePoint silent_at = asked_at_ + kAnswerWithin;
    silent_ = now >= silent_at;
    if (!silent_) verdict.check_at = silent_at;
  }
  verdict.changed = running() != was_running;
  return verdict;
}

}  // namespace xsched::server
