// What happened between two looks at the queues. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "ipc/messages.h"

namespace xsched::cli {

struct QueueRates {
  ipc::QueueInfo queue;
  double commands_per_s = 0;
  double device_share = 0;   // 0 … 1: of the device's time
  double waiting_share = 0;  // 0 … 1: of the time, ready and held
};

// `seconds` between the looks; queues that are new since then have rates of 0. In the order of `now`.
inline std::vector<QueueRates> RatesBetween(const std::vector<ipc::QueueInfo>& before,
                                            const std::vector<ipc::QueueInfo>& now, double seconds) {
  std::map<uint64_t, const ipc::QueueInfo*> known;
  for (const ipc::QueueInfo& queue : before) known[queue.queue_id] = &queue;
  auto per_second = [seconds](uint64_t from, uint64_t to) {
    return seconds > 0 && to > from ? static_cast<double>(to - from) / seconds : 0.0;
  };
  std::vector<QueueRates> rates;
  for (const ipc::QueueInfo& queue : now) {
    QueueRates entry{queue};
    if (auto found = known.find(queue.queue_id); found != known.end()) {
      const ipc::QueueInfo& old = *found->second;
      entry.commands_per_s = per_second(old.submitted, queue.submitted);
      // The server's look was not exactly so long after the one before.
      entry.device_share = std::min(per_second(old.service_ns, queue.service_ns) / 1e9, 1.0);
      entry.waiting_share = std::min(per_second(old.waiting_ns, queue.waiting_ns) / 1e9, 1.0);
    }
    rates.push_back(entry);
  }
  return rates;
}

}  // namespace xsched::cli
