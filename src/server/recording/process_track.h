// What a recording knows of one process on one device: which time slice it has, since when it has its turn,
// and how much memory it has taken. What goes on is put when it ends or changes, as a span.
//
// Pure: readings and the time in, messages out. Their times count from TimePoint{}: Since() makes them those
// of a recording.
//
// What bounds the messages: slices and turns change with the scheduler's decisions only, and a process that
// is off the device while another one has its turn keeps its slice here. A slice can still change twice for
// each burst of a more urgent process, if that one is bound by launches. Memory is read at most once in
// 50 ms.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <variant>

#include "base/clock.h"
#include "ipc/control_access.h"
#include "sched/core/scheduler.h"
#include "server/recording/recorded_event.h"

namespace xsched::server {

class ProcessTrack {
 public:
  static constexpr Duration kReadMemoryEvery = std::chrono::milliseconds(50);

  // `queue`: one of the process on the device, by which messages name both.
  void SeeSlice(Duration slice, sched::QueueId queue, TimePoint now, RecordSink& sink);
  void SeeTurn(bool has_turn, sched::QueueId queue, TimePoint now, RecordSink& sink);
  void SeeMemory(const ipc::MemoryWords& memory, sched::QueueId queue, TimePoint now, RecordSink& sink);
  bool IsMemoryDue(TimePoint now) const { return now >= read_memory_at_; }

  // The process is gone, or a recording ends: puts what goes on.
  void Finish(sched::QueueId queue, TimePoint now, RecordSink& sink);

 private:
  Duration slice_ = sched::kDriversSlice;
  TimePoint slice_since_{};
  std::optional<TimePoint> turn_since_;
  ipc::MemoryWords memory_{};
  TimePoint memory_since_{};
  TimePoint read_memory_at_{};
};

// The event in a recording that began at that time: what was before it is left out. `event`: with times since
// TimePoint{}.
template <typename Event>
Event Since(TimePoint began, Event event) {
  const uint64_t began_ns = RecordedTime(TimePoint{}, began);
  const uint64_t before = std::max(began_ns, event.at_ns) - event.at_ns;
  event.at_ns = event.at_ns + before - began_ns;
  event.span_ns -= std::min(before, event.span_ns);
  return event;
}

// Passes on what a track puts, in a recording that began at that time.
class SinceSink final : public RecordSink {
 public:
  SinceSink(TimePoint began, RecordSink& to) : began_(began), to_(to) {}

  void Put(const RecordedEvent& event) override {
    std::visit(
        [&](const auto& known) {
          if constexpr (requires { known.span_ns; }) to_.Put(Since(began_, known));
        },
        event);
  }

 private:
  TimePoint began_;
  RecordSink& to_;
};

}  // namespace xsched::server
