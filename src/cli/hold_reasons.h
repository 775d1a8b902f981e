// Why a queue with work does not run, in words: of recordings and for people.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

#include "sched/core/scheduler.h"

namespace xsched::cli {

struct HoldReason {
  sched::WaitReason reason;
  const char* word;         // in recordings
  const char* phrase;       // what happens to the queue
  const char* preposition;  // before the queue because of which it happens; "": there is none
};

inline constexpr HoldReason kHoldReasons[] = {
    {sched::WaitReason::kHeld, "held", "held", "for"},
    {sched::WaitReason::kTurn, "turn", "waits for its turn", "behind"},
    {sched::WaitReason::kOffDevice, "off device", "process off the device", "for"},
    {sched::WaitReason::kLimited, "limit", "has used up its limit", ""},
    {sched::WaitReason::kAbsent, "suspended", "suspended by the program", ""},
};

// Null: with this reason it runs, or a newer server has given it.
inline const HoldReason* FindHoldReason(sched::WaitReason reason) {
  const auto* found = std::find_if(std::begin(kHoldReasons), std::end(kHoldReasons),
                                   [&](const HoldReason& known) { return known.reason == reason; });
  return found == std::end(kHoldReasons) ? nullptr : found;
}

// An unknown word, and none, mean that it is held.
inline const HoldReason& HoldReasonOf(std::string_view word) {
  const auto* found = std::find_if(std::begin(kHoldReasons), std::end(kHoldReasons),
                                   [&](const HoldReason& known) { return known.word == word; });
  return found == std::end(kHoldReasons) ? kHoldReasons[0] : *found;
}

}  // namespace xsched::cli
