// The tracks of all processes on all devices (process_track.h). Each belongs to the queues of the process on
// the device, and ends with the last one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "base/clock.h"
#include "sched/core/scheduler.h"
#include "server/agent.h"
#include "server/recording/process_track.h"

namespace xsched::server {

struct ProcessOnDevice {
  ProcessTrack track;
  size_t queues = 0;
};

class ProcessTracks {
 public:
  ProcessTracks() = default;
  ProcessTracks(const ProcessTracks&) = delete;
  ProcessTracks& operator=(const ProcessTracks&) = delete;

  // Something of the queue may have changed. Without memory for it, its process is not followed yet.
  void See(Queue& queue, const sched::QueueStats& stats, TimePoint now, RecordSink& sink) noexcept;
  // The queue is about to be forgotten.
  void Gone(Queue& queue, TimePoint now, RecordSink& sink) noexcept;

  // Puts what goes on of the processes of these queues, once for each, as if it ended now.
  class Unfinished {
   public:
    void Put(const Queue& queue, TimePoint now, RecordSink& sink);

   private:
    std::set<const ProcessOnDevice*> done_;
  };

  size_t size() const { return processes_.size(); }

 private:
  std::map<std::pair<uint64_t, uint64_t>, ProcessOnDevice> processes_;  // by the agent's id, and the device
};

}  // namespace xsched::server
