#include "sched/sim/report_model.h"

namespace xsched::sched::sim {
namespace {

// With this many unreported commands, a stream may be full.
constexpr uint64_t kMayBeFull = 600;

}  // namespace

void ReportModel::Track(const QueueModel& queue, uint64_t silent) {
  Retired(queue);
  silent_ = silent;
}

void ReportModel::Ask(const QueueModel& queue) {
  const bool full = queue.launching && queue.submitted - Retired(queue) > kMayBeFull;
  const uint64_t issued = full ? queue.submitted - 1 : 0;
  if (issued_when_full_ != 0 && issued > issued_when_full_) ++moves_;
  issued_when_full_ = issued;
}

uint64_t ReportModel::Retired(const QueueModel& queue) {
  if (queue.retired >= silent_ || queue.retired == queue.submitted) retired_ = queue.retired;
  return retired_;
}

}  // namespace xsched::sched::sim
