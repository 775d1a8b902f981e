// The scopes of calls on executable graphs. The driver orders each launch of a graph behind the graph's last
// launch, on whatever stream that was: as if each launch recorded an event for which the next one waits.
// Uploads wait likewise, and count as launches here.
//
// So the last launch is remembered as an event (shim/common/events.h), if others are scheduled against its
// stream. What is launched on other streams has no gate, and nobody needs to know of it.
#pragma once

#include "shim/common/event_scopes.h"
#include "shim/cuda/commands.h"

namespace xsched::cuda {

// No event's: the handles of events are even.
inline uint64_t KeyOfLastLaunch(CUgraphExec graph) { return shim::KeyOfEvent(graph) | 1; }

class GraphLaunch {
 public:
  [[gnu::always_inline]] GraphLaunch(const Call& call, CUstream stream, CUgraphExec graph)
      : launch_(call, stream) {
    if (launch_.queue() != nullptr && preempt::TracksDependencies(launch_.queue())) [[unlikely]]
      AddDependencyOnLast(call, stream, graph);
  }
  [[gnu::always_inline]] void Finish(CUresult result) {
    launch_.Finish(result, false);
    if (last_launch_ != nullptr && result == CUDA_SUCCESS) [[unlikely]]
      last_launch_->Set(this_launch_);
  }

 private:
  void AddDependencyOnLast(const Call& call, CUstream stream, CUgraphExec graph);

  Launch launch_;
  shim::Event* last_launch_ = nullptr;  // null: nothing is remembered
  shim::EventPoint this_launch_;
};

class GraphDestruction {
 public:
  GraphDestruction(const Call&, CUgraphExec graph) { shim::RemoveEvent(KeyOfLastLaunch(graph)); }
  void Finish(CUresult) {}
};

}  // namespace xsched::cuda
