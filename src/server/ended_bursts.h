// How long the bursts were that a client has counted between two looks. Their number and the sum of their
// lengths are exact. If several have ended, all but the first one are shorter than the time between the
// looks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"
#include "ipc/bursts.h"
#include "ipc/control_access.h"

namespace xsched::server {

struct EndedBursts {
  uint32_t count = 0;
  Duration first{};
  Duration other{};  // of each other one, on average
};

// `open_for`: how long the burst that went on at the last look had lasted by then; 0: none did, or it is not
// known. `passed`: since that look. A client that counts nonsense gets no time that there was not.
inline EndedBursts EndedSince(const ipc::Bursts& last, const ipc::Bursts& counted, Duration open_for,
                              Duration passed) {
  const uint32_t count = counted.ended - last.ended;
  if (count == 0) return {};
  const Duration sum = std::clamp(counted.busy - last.busy, Duration::zero(), open_for + passed);
  const Duration before = std::min(open_for, sum);
  const Duration each = (sum - before) / count;
  return {std::min(count, ipc::kMostBursts), before + each, each};
}

}  // namespace xsched::server
