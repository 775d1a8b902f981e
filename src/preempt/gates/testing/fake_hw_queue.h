// A hardware queue and a clock that a test controls.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "preempt/gates/flow_state.h"

namespace xsched::preempt::testing {

// The present time, which a test sets.
inline TimePoint fake_now{std::chrono::seconds(1)};
inline TimePoint FakeNow() { return fake_now; }

// An in-order hardware queue that runs as many commands as a test wants.
class FakeHwQueue {
 public:
  struct Item {
    enum Kind { kCommand, kMarker, kGate, kReport } kind;
    uint64_t value;  // a command's number, a marker's ticket, a gate's number, what a report says
  };

  explicit FakeHwQueue(XGating gating, XPreemptLevel level = kPreemptLevelBlock, bool polls = false) {
    ops.size = sizeof ops;
    ops.platform = kPlatformOpenCL;
    ops.max_level = level;
    ops.gating = gating;
    ops.synchronize = [](void* self) {
      Of(self).calls.push_back("synchronize");
      return kXSchedSuccess;
    };
    ops.destroy = [](void* self) { Of(self).calls.push_back("destroy"); };
    if (gating == kGatingDeviceGates) {
      ops.append_device_gate = [](void* self, const XControlWords* gate_words, uint64_t number) {
        Of(self).words = *gate_words;
        Of(self).items.push_back({Item::kGate, number});
        return Of(self).refuses_gates ? kXSchedErrorHardware : kXSchedSuccess;
      };
      ops.append_progress = [](void* self, const XControlWords* gate_words, uint64_t number) {
        Of(self).words = *gate_words;
        Of(self).items.push_back({Item::kReport, number});
        return kXSchedSuccess;
      };
    } else {
      ops.append_marker = [](void* self, uint64_t ticket) {
        Of(self).items.push_back({Item::kMarker, ticket});
        return kXSchedSuccess;
      };
    }
    if (gating == kGatingHostGates) {
      ops.append_gate = [](void* self, uint64_t* gate) {
        *gate = ++Of(self).gates;
        Of(self).items.push_back({Item::kGate, *gate});
        return kXSchedSuccess;
      };
      ops.open_gate = [](void* self, uint64_t gate) {
        if (Of(self).refuses_opening) return kXSchedErrorHardware;
        Of(self).opened = gate;
        return kXSchedSuccess;
      };
    }
    if (gating == kGatingDeviceGates || polls)
      ops.finished = [](void* self) { return Of(self).next == Of(self).items.size(); };
    if (polls) {
      ops.poll_markers = [](void* self) { Of(self).Poll(); };
      ops.put_markers_away = [](void* self) { Of(self).PutMarkersAway(); };
    }
    if (level >= kPreemptLevelDeactivate && gating != kGatingDeviceGates) {
      ops.deactivate = Control<&FakeHwQueue::deactivated, true>;
      ops.reactivate = Control<&FakeHwQueue::deactivated, false>;
    }
    if (level >= kPreemptLevelInterrupt) {
      ops.interrupt = Control<&FakeHwQueue::interrupted, true>;
      ops.restore = Control<&FakeHwQueue::interrupted, false>;
    }
  }

  // Makes hard stops in place of levels 2 and 3 of a single queue.
  void StopsWholeProcess() {
    ops.deactivate = ops.reactivate = nullptr;
    ops.interrupt = Control<&FakeHwQueue::interrupted, true>;
    ops.restore = Control<&FakeHwQueue::interrupted, false>;
  }

  // Runs up to `commands` commands, as far as host gates allow. Reports the markers that are reached, unless
  // they are polled.
  void Run(int commands = 1000000) {
    for (; next < items.size(); ++next) {
      const Item item = items[next];
      if (item.kind == Item::kGate && ops.gating == kGatingHostGates && item.value > opened) return;
      if (item.kind == Item::kCommand && commands-- == 0) return;
      if (item.kind == Item::kCommand) ran.push_back(item.value);
      if (item.kind == Item::kMarker) reached.push_back(item.value);
    }
  }
  size_t Count(Item::Kind kind) const {
    return static_cast<size_t>(
        std::count_if(items.begin(), items.end(), [kind](const Item& item) { return item.kind == kind; }));
  }

  XHwQueueOps ops{};
  std::vector<Item> items;
  std::vector<uint64_t> ran;
  std::vector<uint64_t> reached;  // tickets that were not reported yet
  std::vector<std::string> calls;
  XControlWords words{};
  size_t next = 0;
  uint64_t gates = 0;
  uint64_t opened = 0;
  bool refuses_gates = false;
  bool refuses_opening = false;
  bool refuses_control = false;  // levels 2 and 3, both ways
  bool deactivated = false;
  bool interrupted = false;
  void (*on_poll)(FakeHwQueue&) = nullptr;
  std::function<void()> on_opening;  // for tests that replace open_gate
  FlowState* state = nullptr;        // of the queue, for polled markers

 private:
  static FakeHwQueue& Of(void* self) { return *static_cast<FakeHwQueue*>(self); }
  void Poll() {
    if (on_poll != nullptr) on_poll(*this);
    for (uint64_t ticket : std::exchange(reached, {})) state->MarkerReached(Ticket::Unpack(ticket).number);
  }
  void PutMarkersAway() {
    for (Item& item : items) {
      if (item.kind == Item::kMarker) state->MarkerReached(Ticket::Unpack(item.value).number);
    }
    std::erase_if(items, [](const Item& item) { return item.kind == Item::kMarker; });
  }
  template <bool FakeHwQueue::*kFlag, bool kValue>
  static XResult Control(void* self) {
    if (Of(self).refuses_control) return kXSchedErrorHardware;
    Of(self).*kFlag = kValue;
    return kXSchedSuccess;
  }
};

}  // namespace xsched::preempt::testing
