#include "server/recording/queue_reader.h"

#include "server/agent.h"
#include "server/recording/recorded_event.h"

namespace xsched::server {

sched::QueueStats QueueReader::StatsOf(const Queue& queue, TimePoint now) const {
  return scheduler_.Stats(queue.id, now).value_or(sched::QueueStats{});
}

QueueTrack::Reading QueueReader::Read(const Queue& queue, const sched::QueueStats& stats,
                                      TimePoint now) const {
  QueueTrack::Reading reading;
  reading.submitted = stats.submitted;
  reading.retired = stats.retired;
  reading.why = stats.wait_reason;
  reading.because_of = stats.waits_for;
  reading.service = stats.service;
  reading.waiting = stats.waiting;
  reading.counted = queue.CountedBursts();
  reading.reports = queue.words.scheduled();
  if (!queue.has_dependencies) return reading;
  const Agent& agent = *queue.agent;
  ipc::ForEachWait(*agent.segment.get(), queue.index, [&](const ipc::Wait& wait) {
    auto other = agent.queues.find(wait.queue);
    if (reading.waits_for.until != 0 || other == agent.queues.end()) return;
    if (!ipc::MeansQueue(wait, other->second.handle)) return;
    if (wait.until > StatsOf(other->second, now).retired) reading.waits_for = {other->second.id, wait.until};
  });
  return reading;
}

sched::Hints QueueReader::HintsOf(const Queue& queue) const {
  return scheduler_.GetHints(queue.id).value_or(sched::Hints{});
}

ipc::RecordedQueue QueueReader::Describe(const Queue& queue, TimePoint began, TimePoint now) const {
  const Agent& agent = *queue.agent;
  ipc::RecordedQueue description = ipc::RecordedQueueFrom(queue, agent.connection, HintsOf(queue));
  description.at_ns = RecordedTime(began, now);
  description.job = agent.jobs.empty() ? 0 : agent.jobs.front().second;
  return description;
}

}  // namespace xsched::server
