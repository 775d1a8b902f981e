// The scopes of calls on events (events.h). `Platform`: platform.h of each shim.
#pragma once

#include <cstdint>
#include <optional>

#include "preempt/api/launch.h"
#include "preempt/api/stream_captures.h"
#include "shim/common/events.h"
#include "shim/common/pass_through.h"
#include "shim/common/stream_queues.h"

namespace xsched::shim {

template <typename Handle>
uint64_t KeyOfEvent(Handle event) {
  return reinterpret_cast<uint64_t>(event);
}

template <typename Platform>
class EventCreation {
 public:
  explicit EventCreation(const typename Platform::Call&) {}
  void Finish(typename Platform::Result result, const typename Platform::Event* event) {
    if (result == Platform::kSuccess && event != nullptr) AddEvent(KeyOfEvent(*event));
  }
};

template <typename Platform>
class EventDestruction {
 public:
  EventDestruction(const typename Platform::Call&, typename Platform::Event event) {
    RemoveEvent(KeyOfEvent(event));
  }
  void Finish(typename Platform::Result) {}
};

// Of the flags of a recording, on every platform: in a capture, it makes a node of the graph. Each launch of
// the graph then records the event.
inline constexpr unsigned kExternalRecording = 1;

// A recording inside a capture only orders streams there, unless it makes a node.
template <typename Platform>
class EventRecording {
 public:
  EventRecording(const typename Platform::Call& call, typename Platform::Stream stream,
                 typename Platform::Event event, unsigned flags)
      : event_(FindEvent(KeyOfEvent(event))) {
    if (event_ == nullptr) return;
    if ((flags & kExternalRecording) != 0) {
      event_->IsRecordedUnseen();
      return;
    }
    if (IsCapturing<Platform>(call, stream)) {
      point_ = EventPoint::InCapture();
      return;
    }
    const uint64_t key = Platform::KeyOf(call, stream);
    preempt::XQueue* queue = FindQueue(key);
    Stream* record = queue == nullptr ? nullptr : RecordOf<Platform>(call, stream, key);
    if (record != nullptr) point_ = EventPoint::NewestOn(record, queue);
  }
  void Finish(typename Platform::Result result) {
    if (event_ != nullptr && result == Platform::kSuccess) event_->Set(point_);
  }

 private:
  Event* event_;
  EventPoint point_;
};

// The recording of an event of which nothing is known afterwards.
template <typename Platform>
class UnknownRecording {
 public:
  UnknownRecording(const typename Platform::Call&, typename Platform::Event event)
      : event_(FindEvent(KeyOfEvent(event))) {}
  void Finish(typename Platform::Result result) {
    if (event_ != nullptr && result == Platform::kSuccess) event_->Set(EventPoint());
  }

 private:
  Event* event_;
};

// The scope of a call after which an event may be recorded without a call: by a graph, another process or a
// kernel.
template <typename Platform>
class UnseenRecording {
 public:
  // Before the call, because such a recording may happen at once.
  UnseenRecording(const typename Platform::Call&, typename Platform::Event event) {
    if (Event* known = FindEvent(KeyOfEvent(event))) known->IsRecordedUnseen();
  }
  void Finish(typename Platform::Result) {}
};

// The scope of a call that waits for an event, or asks whether it has happened.
template <typename Platform>
class EventWait {
 public:
  EventWait(const typename Platform::Call&, typename Platform::Event event)
      : point_(PointOf(KeyOfEvent(event))) {}
  void Finish(typename Platform::Result result) const {
    if (point_.stream != nullptr && result == Platform::kSuccess) point_.HasHappened();
  }

 private:
  EventPoint point_;  // of the awaited recording: there may be a later one when the wait ends
};

// The queue for which `waiter` will wait in a wait for `event`, which was recorded at `point`. Null: the
// event has happened, or no scheduler needs to know.
template <typename Platform>
preempt::XQueue* AwaitedQueue(const typename Platform::Call& call, preempt::XQueue* waiter,
                              typename Platform::Event event, const EventPoint& point) {
  preempt::XQueue* owner = point.AwaitedBy(waiter);
  if (owner == nullptr || !Platform::HasHappened(call, event)) return owner;
  point.HasHappened();
  return nullptr;
}

// The scope of a call that makes a stream wait for an event. A wait for an event that has not happened counts
// as a command, if other queues are scheduled against one of the two: the waiter then has work, and the
// awaited queue can inherit its right to run.
template <typename Platform>
class EventOrder {
 public:
  EventOrder(const typename Platform::Call& call, typename Platform::Stream stream,
             typename Platform::Event event) {
    // Also a call that the user has excluded from scheduling may make a stream with an XQueue join a capture.
    const bool passes = PassesThrough(call.site(), call.function());
    const uint64_t key = Platform::KeyOf(call, stream);
    preempt::XQueue* waiter = passes ? FindQueue(key) : QueueForCommand<Platform>(call, stream, key);
    if (waiter == nullptr) return;
    const EventPoint point = PointOf(KeyOfEvent(event));
    if (point.in_capture()) {
      // Such a call puts nothing on the stream, so it does not wait for room there. It only waits for a
      // launch by another thread that waits for room. Queries do not wait for that.
      joins_capture_.emplace(waiter, preempt::NoLaunchUnderWay(waiter));
      return;
    }
    if (passes) return;
    preempt::XQueue* owner = AwaitedQueue<Platform>(call, waiter, event, point);
    if (owner == nullptr) return;
    if constexpr (Platform::kHoldsThreads)
      wait_.emplace(waiter, preempt::Passing());
    else
      wait_.emplace(waiter);
    preempt::AddDependency(waiter, owner, point.number);
  }
  void Finish(typename Platform::Result result) {
    if (wait_.has_value()) wait_->Finish(result == Platform::kSuccess);
  }

 private:
  std::optional<preempt::LaunchScope> wait_;
  std::optional<preempt::StreamCaptures> joins_capture_;  // by this wait
};

}  // namespace xsched::shim
