// The hints in a message, and into it. They are in two parts, of which older peers know the first only.
#pragma once

#include "ipc/messages.h"

namespace xsched::ipc {

// The hints that the message has. What its sender is too old to know stays as in `before`.
template <typename Hints>
Hints HintsIn(const auto& message, const Hints& before) {
  const bool is_old = message.more_hints.weight == 0;
  return FromWire<Hints>(message.hints, is_old ? WireMoreHintsFrom(before) : message.more_hints);
}

template <typename Hints>
void SetHintsIn(auto& message, const Hints& hints) {
  message.hints = WireHintsFrom(hints);
  message.more_hints = WireMoreHintsFrom(hints);
}

}  // namespace xsched::ipc
