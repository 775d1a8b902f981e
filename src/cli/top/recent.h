// What the server remembers of the last time, as top shows it: for each queue, how long its requests took;
// and since the last look, which process waited for which. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "cli/distribution.h"
#include "cli/explain/process_waits.h"
#include "ipc/client.h"

namespace xsched::cli {

class Recent {
 public:
  // It remembers `parts` parts of time, of which each is `part` long.
  Recent(int parts, Duration part) : parts_(parts), part_(part) {}

  // What is taken next happened in the `span` before `now`. Spans follow each other.
  void BeginLook(TimePoint now, Duration span);
  void Take(const ipc::Packet& packet);
  // All was taken. `covered`: how much of the span the server remembers.
  void EndLook(Duration covered) { covered_ = covered; }

  // Of the last look.
  const ProcessWaits& waits() const { return waits_; }
  Duration span() const { return span_; }
  // False: the server remembers nothing of it, so it is not known who waited.
  bool is_known() const { return covered_ != Duration::zero(); }

  struct Requests {
    Distribution all;
    std::vector<std::optional<Duration>>
        longest;  // of each part, the oldest first; none: no request is known
  };
  Requests RequestsOf(uint64_t queue) const;
  size_t known_queues() const { return queues_.size(); }

 private:
  struct Queue {
    std::map<int64_t, Distribution> requests;  // by the number of the part of time in which they ended
    bool open = false;                         // a request goes on, since `began`
    TimePoint began{};
    bool is_whole = false;  // it began then, and not before
    bool seen = false;      // in the last look
  };

  void TakeBurst(const ipc::RecordedBurst& burst);
  int64_t PartOf(TimePoint time) const { return time.time_since_epoch() / part_; }

  const int parts_;
  const Duration part_;
  TimePoint now_{};
  Duration span_{};
  Duration covered_{};
  ProcessWaits waits_;
  std::map<uint64_t, Queue> queues_;
};

}  // namespace xsched::cli
