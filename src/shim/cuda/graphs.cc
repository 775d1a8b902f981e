#include "shim/cuda/graphs.h"

namespace xsched::cuda {
namespace {

// Remembers launches of the graph from now on, if it is not known yet. Null: no memory.
shim::Event* LastLaunchOf(CUgraphExec graph) {
  const uint64_t key = KeyOfLastLaunch(graph);
  shim::Event* known = shim::FindEvent(key);
  if (known != nullptr) return known;
  shim::AddEvent(key);
  return shim::FindEvent(key);
}

}  // namespace

void GraphLaunch::AddDependencyOnLast(const Call& call, CUstream stream, CUgraphExec graph) {
  preempt::XQueue* waiter = launch_.queue();
  shim::Stream* record = shim::RecordOf<Platform>(call, stream, Platform::KeyOf(call, stream));
  last_launch_ = record == nullptr ? nullptr : LastLaunchOf(graph);
  if (last_launch_ == nullptr) return;
  this_launch_ = {record, record->life.load(std::memory_order_acquire), launch_.number()};
  const shim::EventPoint last = last_launch_->Get();
  if (preempt::XQueue* owner = last.AwaitedBy(waiter)) preempt::AddDependency(waiter, owner, last.number);
}

}  // namespace xsched::cuda
