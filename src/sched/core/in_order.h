// Whether equally urgent processes should be served in the order in which their requests come.
//
// They share the device in the driver's own slices. Two requests of 20 ms that come at the same time then
// take 40 ms both, and the changes between them on top. If each keeps the device until its request is done,
// the first takes 20 ms and the second 40. No host is needed for that: if all of them have a long slice, the
// device goes to the next one when it has nothing more of the present one.
//
// It is better for all only if their requests are of similar length, and end. Otherwise a short request would
// wait for a long one, or for ever. So the lengths are learned: from requests that had the device for
// themselves, and from those that shared it with equals, of which each then has the same part of the time.
// Requests that are served in order say nothing: only the device knows which of them it serves.
//
// Of one device. Pure.
#pragma once

#include <span>

#include "sched/core/types.h"

namespace xsched::sched {

struct ProcessRecord;

// What is known of one process's requests.
struct OwnRequests {
  TimePoint since = kNever;  // it has work since then; kNever: it has none
  Duration served{};         // of the device's time since then, without that which equals have had
  bool measured = false;     // `served` is known
  Duration length{};         // of one, if it has the device for itself; 0: not known
};

class InOrder {
 public:
  // REQUIRES: `processes` with the driver's slice are the equals, and others have shorter ones. Their records
  // say which of them have work (ProcessRecord::ready). Returns when to ask again at the latest.
  TimePoint Observe(std::span<ProcessRecord* const> processes, TimePoint now);
  // True if they should be served in order.
  bool holds() const { return holds_; }
  // There are no such processes any more.
  void Forget() { holds_ = false; }

 private:
  void Serve(std::span<ProcessRecord* const> processes, TimePoint now);

  bool holds_ = false;
  TimePoint observed_at_{};
};

}  // namespace xsched::sched
