#include "sched/sim/report_model.h"

namespace xsched::sched::sim {
namespace {

// With so many unreported commands, a stream may be full.
constexpr uint64_t kMayBeFull = 600;

}  // namespace

void ReportModel::Track(const QueueModel& queue, uint64_t silent) {
  Retired(queue);
  silent_ = silent;
}

void ReportModel::Ask(const QueueModel& queue) {
  const bool full = queue.launching && queue.submitted - Retired(queue) > kMayBeFull;
  const uint64_t settled = full ? queue.submitted - 1 : 0;
  if (settled_when_full_ != 0 && settled > settled_when_full_) ++moves_;
  settled_when_full_ = settled;
}

uint64_t ReportModel::Retired(const QueueModel& queue) {
  if (queue.retired >= silent_ || queue.retired == queue.submitted) retired_ = queue.retired;
  return retired_;
}

}  // namespace xsched::sched::sim
