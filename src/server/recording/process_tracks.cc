#include "server/recording/process_tracks.h"

#include <new>

#include "ipc/control_access.h"

namespace xsched::server {

void ProcessTracks::See(Queue& queue, const sched::QueueStats& stats, TimePoint now,
                        RecordSink& sink) noexcept try {
  if (queue.on_device == nullptr) {
    queue.on_device = &processes_[{queue.agent->id(), queue.device}];
    ++queue.on_device->queues;
  }
  ProcessTrack& track = queue.on_device->track;
  track.SeeSlice(stats.slice, queue.id, now, sink);
  track.SeeTurn(stats.has_turn, queue.id, now, sink);
  if (!track.IsMemoryDue(now)) return;
  track.SeeMemory(ipc::ReadMemory(*queue.agent->segment.get(), queue.device), queue.id, now, sink);
} catch (const std::bad_alloc&) {
}

void ProcessTracks::Gone(Queue& queue, TimePoint now, RecordSink& sink) noexcept {
  if (queue.on_device == nullptr || --queue.on_device->queues != 0) return;
  queue.on_device->track.Finish(queue.id, now, sink);
  processes_.erase({queue.agent->id(), queue.device});
  queue.on_device = nullptr;
}

void ProcessTracks::Unfinished::Put(const Queue& queue, TimePoint now, RecordSink& sink) {
  if (queue.on_device == nullptr || !done_.insert(queue.on_device).second) return;
  ProcessTrack(queue.on_device->track).Finish(queue.id, now, sink);
}

}  // namespace xsched::server
