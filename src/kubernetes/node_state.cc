#include "kubernetes/node_state.h"

#include <utility>

#include "base/clock.h"
#include "base/mutex.h"

namespace xsched::kubernetes {
namespace {

// How soon a follower sees that its reader has gone.
constexpr Duration kMoment = std::chrono::milliseconds(500);

}  // namespace

struct NodeState::Guarded {
  Mutex<LockRank::kNodeState> mutex;
  Condition changed;
  std::shared_ptr<const Node> node GUARDED_BY(mutex);
  uint64_t version GUARDED_BY(mutex) = 0;
  int followers GUARDED_BY(mutex) = 0;
  bool has_ended GUARDED_BY(mutex) = false;
};

NodeState::NodeState() : guarded_(std::make_unique<Guarded>()) {}
NodeState::~NodeState() = default;

void NodeState::Set(Node node) {
  auto now = std::make_shared<const Node>(std::move(node));
  const MutexLock lock(guarded_->mutex);
  guarded_->node = std::move(now);
  ++guarded_->version;
  guarded_->changed.NotifyAll();
}

std::shared_ptr<const Node> NodeState::now() const {
  const MutexLock lock(guarded_->mutex);
  return guarded_->node;
}

void NodeState::End() {
  const MutexLock lock(guarded_->mutex);
  guarded_->has_ended = true;
  guarded_->changed.NotifyAll();
}

void NodeState::Begin() {
  const MutexLock lock(guarded_->mutex);
  guarded_->has_ended = false;
}

bool NodeState::IsFollowed() const {
  const MutexLock lock(guarded_->mutex);
  return guarded_->followers != 0;
}

NodeState::Follower::Follower(NodeState& state) : state_(state) {
  const MutexLock lock(state_.guarded_->mutex);
  ++state_.guarded_->followers;
}

NodeState::Follower::~Follower() {
  const MutexLock lock(state_.guarded_->mutex);
  --state_.guarded_->followers;
}

std::shared_ptr<const Node> NodeState::Follower::Next() {
  Guarded& guarded = *state_.guarded_;
  const MutexLock lock(guarded.mutex);
  if (seen_ == guarded.version && !guarded.has_ended)
    guarded.changed.WaitUntil(guarded.mutex, MonotonicClock::now() + kMoment);
  if (guarded.has_ended || seen_ == guarded.version) return nullptr;
  seen_ = guarded.version;
  return guarded.node;
}

bool NodeState::Follower::HasEnded() const {
  const MutexLock lock(state_.guarded_->mutex);
  return state_.guarded_->has_ended;
}

}  // namespace xsched::kubernetes
