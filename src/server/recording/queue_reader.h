// Reads what a recording says of a queue.
#pragma once

#include "base/clock.h"
#include "sched/core/scheduler.h"
#include "server/queues.h"
#include "server/recording/queue_track.h"

namespace xsched::server {

class QueueReader {
 public:
  explicit QueueReader(const sched::Scheduler& scheduler) : scheduler_(scheduler) {}

  sched::QueueStats StatsOf(const Queue& queue, TimePoint now) const;
  QueueTrack::Reading Read(const Queue& queue, TimePoint now) const {
    return Read(queue, StatsOf(queue, now), now);
  }
  // The same, with StatsOf(queue, now).
  QueueTrack::Reading Read(const Queue& queue, const sched::QueueStats& stats, TimePoint now) const;
  sched::Hints HintsOf(const Queue& queue) const;
  // `began`: when the recording did.
  ipc::RecordedQueue Describe(const Queue& queue, TimePoint began, TimePoint now) const;

 private:
  const sched::Scheduler& scheduler_;
};

}  // namespace xsched::server
