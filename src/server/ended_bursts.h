// Which bursts of a queue have ended between two looks, and how long they were, as its client has counted
// them. Their number and the sum of their lengths are exact.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "ipc/bursts.h"
#include "ipc/control_access.h"

namespace xsched::server {

// Whether a burst was seen to end, because all has retired, before its client counted the end.
struct SeenEnd {
  bool any = false;
  uint64_t retired = 0;  // when it was seen
};

struct EndedBursts {
  uint32_t count = 0;
  Duration busy{};  // the sum of their lengths
};

// Without the one that was seen to end before. A client may write anything.
inline EndedBursts EndedSince(const ipc::Bursts& last, const ipc::Bursts& counted, TimePoint last_look,
                              SeenEnd& seen, uint64_t retired) {
  const uint32_t count = counted.ended - last.ended;
  const bool another_began = counted.began != last.began;
  if (count == 0) {
    // Another one began although no end was counted, so none will be.
    if (another_began) seen.any = false;
    return {};
  }
  EndedBursts ended{std::min(count, ipc::kMostBursts), std::max(counted.busy - last.busy, Duration::zero())};
  if (count > ended.count) ended.busy = ended.busy / count * ended.count;
  if (!std::exchange(seen.any, false)) return ended;
  // For a client that had not noticed the end, what it launched afterwards belongs to the same burst, and so
  // does the time between.
  if (!another_began && retired != seen.retired) {
    ended.busy = Duration::zero();
    return ended;
  }
  --ended.count;
  ended.busy = std::max(ended.busy - std::max(last_look - last.began, Duration::zero()), Duration::zero());
  return ended;
}

struct BurstLengths {
  Duration first{};
  Duration other{};  // of each other one, on average
};

// `open_for`: how long the burst that went on at the last look had lasted by then; nullopt: none did.
// `passed`: since that look. If several have ended, all but the first one are shorter than that.
inline BurstLengths LengthsOf(const EndedBursts& ended, std::optional<Duration> open_for, Duration passed) {
  if (ended.count == 0) return {};
  const Duration before = open_for.value_or(Duration::zero());
  // Its client has not counted the beginning of the one that went on.
  const bool is_unknown = open_for && ended.busy == Duration::zero();
  const Duration sum = is_unknown ? before + passed : std::min(ended.busy, before + passed);
  const Duration of_first = std::min(before, sum);
  const Duration each = (sum - of_first) / ended.count;
  return {of_first + each, each};
}

}  // namespace xsched::server
