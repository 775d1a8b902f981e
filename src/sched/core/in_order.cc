#include "sched/core/in_order.h"

#include <algorithm>
#include <utility>

#include "sched/core/process_slices.h"

namespace xsched::sched {
namespace {

using std::chrono::milliseconds;

// Who is served in order may wait for a request of each equal, so requests must not be long.
constexpr Duration kLongestRequest = milliseconds(50);
// The longest request may be so many times as long as the shortest. More, while they are served in order:
// otherwise slices could change back and forth.
constexpr int64_t kSimilar = 2;
constexpr int64_t kStillSimilar = 3;

bool IsEqual(const ProcessRecord& process) { return process.slice == kDriversSlice; }

// Observes one process's requests.
void Observe(OwnRequests& requests, bool ready, Duration never_ends, TimePoint now) {
  if (ready) {
    if (requests.since == kNever) requests = {now, Duration::zero(), true, requests.length};
    if (now - requests.since >= never_ends) requests.length = never_ends;
  } else if (std::exchange(requests.since, kNever) != kNever && requests.measured) {
    const bool first = requests.length == Duration::zero();
    requests.length = first ? requests.served : (3 * requests.length + requests.served) / 4;
  }
}

}  // namespace

// Equals that have work have shared the device, or were served in order.
void InOrder::Serve(std::span<ProcessRecord* const> processes, TimePoint now) {
  const Duration passed = now - std::exchange(observed_at_, now);
  const auto at_work = [](const ProcessRecord* process) { return process->requests.since != kNever; };
  const int64_t count = std::count_if(processes.begin(), processes.end(), at_work);
  for (ProcessRecord* process : processes) {
    if (!at_work(process)) continue;
    process->requests.served += passed / count;
    process->requests.measured &= count == 1 || !holds_;
  }
}

TimePoint InOrder::Observe(std::span<ProcessRecord* const> processes, TimePoint now) {
  int64_t equals = 0;
  int64_t ready = 0;
  for (const ProcessRecord* process : processes) {
    equals += IsEqual(*process);
    ready += IsEqual(*process) && process->ready;
  }
  Serve(processes, now);
  // A request that is served in order ends by then.
  const Duration never_ends = kLongestRequest * (equals + 1);
  TimePoint next = kNever;
  Duration shortest = Duration::max();
  Duration longest{};
  bool known = equals > 1;
  for (ProcessRecord* process : processes) {
    if (!IsEqual(*process)) {
      process->requests.since = kNever;
      continue;
    }
    OwnRequests& requests = process->requests;
    sched::Observe(requests, process->ready, never_ends, now);
    if (requests.length == Duration::zero()) {
      known &= !process->ready;
      continue;
    }
    shortest = std::min(shortest, requests.length);
    longest = std::max(longest, requests.length);
    if (ready > 1 && process->ready && requests.length < never_ends)
      next = std::min(next, requests.since + never_ends);
  }
  holds_ = known && longest > Duration::zero() && longest <= kLongestRequest &&
           longest <= shortest * (holds_ ? kStillSimilar : kSimilar);
  return holds_ ? next : kNever;
}

}  // namespace xsched::sched
