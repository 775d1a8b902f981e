// A process without agent, scheduler, driver and clock: a table of queues over drivers that do what a test
// says, and a record of what the queues ask for.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "preempt/queue/urgencies.h"
#include "preempt/queue/xqueue_table.h"

namespace xsched::preempt::testing {

// The time that a test moves.
inline TimePoint fake_now{std::chrono::seconds(1)};
inline TimePoint FakeNow() { return fake_now; }

// An in-order hardware queue that runs what it is told to.
class FakeDriver {
 public:
  struct Item {
    enum Kind { kCommand, kMarker, kGate, kReport } kind;
    uint64_t value;  // a command's number, a marker's ticket, a gate's number, what a report says
  };

  explicit FakeDriver(XGating gating, XPreemptLevel level = kPreemptLevelBlock, bool polls = false) {
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
      ops.open_gate = [](void* self, uint64_t gate) { Of(self).opened = gate; };
    }
    if (gating == kGatingDeviceGates || polls)
      ops.finished = [](void* self) { return Of(self).next == Of(self).items.size(); };
    if (polls) ops.poll_markers = [](void* self) { Of(self).Poll(); };
    if (level >= kPreemptLevelDeactivate && gating != kGatingDeviceGates) {
      ops.deactivate = Control<&FakeDriver::deactivated, true>;
      ops.reactivate = Control<&FakeDriver::deactivated, false>;
    }
    if (level >= kPreemptLevelInterrupt) {
      ops.interrupt = Control<&FakeDriver::interrupted, true>;
      ops.restore = Control<&FakeDriver::interrupted, false>;
    }
  }

  // A hard stop in place of levels 2 and 3 by queue.
  void StopsWholeProcess() {
    ops.deactivate = ops.reactivate = nullptr;
    ops.interrupt = Control<&FakeDriver::interrupted, true>;
    ops.restore = Control<&FakeDriver::interrupted, false>;
  }

  // Runs up to `commands` commands, as far as host gates allow. Markers that are reached are reported, but
  // where they are polled.
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
  std::vector<uint64_t> reached;  // tickets that nobody has heard of
  std::vector<std::string> calls;
  XControlWords words{};
  size_t next = 0;
  uint64_t gates = 0;
  uint64_t opened = 0;
  bool refuses_gates = false;
  bool refuses_control = false;  // levels 2 and 3, both ways
  bool deactivated = false;
  bool interrupted = false;
  void (*on_poll)(FakeDriver&) = nullptr;
  XQueue* queue = nullptr;

 private:
  static FakeDriver& Of(void* self) { return *static_cast<FakeDriver*>(self); }
  void Poll() {
    if (on_poll != nullptr) on_poll(*this);
    for (uint64_t ticket : std::exchange(reached, {})) queue->MarkerReached(QueueState::NumberOf(ticket));
  }
  template <bool FakeDriver::*kFlag, bool kValue>
  static XResult Control(void* self) {
    if (Of(self).refuses_control) return kXSchedErrorHardware;
    Of(self).*kFlag = kValue;
    return kXSchedSuccess;
  }
};

// A test's drivers are members of its fixture: queues outlive the test's body.
class FakeProcess : public ::testing::Test,
                    public Signals,
                    public DriverRequests,
                    public ProcessLevel,
                    public XQueueTableOwner {
 protected:
  void TearDown() override {
    for (uint32_t next = 0; XQueuePin pin = table.PinNext(&next);) table.Destroy(pin->handle());
    for (HwQueueHandle handle : registered_) UnregisterHwQueue(handle);
  }

  // Signals
  void RingScheduler(uint32_t index) override { rung.push_back(index); }
  void Wake() override { ++wakes; }
  void SomethingIsTaken() override { ++taken_seen; }
  void GiveBackLater() override { ++give_back_later; }
  // DriverRequests
  bool Request(uint32_t index, Work work) override {
    requests.push_back({index, work});
    return takes_requests;
  }
  void AwaitUntil(TimePoint) override {}
  // ProcessLevel
  bool AnyTaken() override { return false; }
  bool Settled() override { return settled; }
  // XQueueTableOwner
  ipc::ControlBlock* ResetBlock(uint32_t index) override {
    if (blocks.size() <= index) blocks.resize(index + 1);
    blocks[index] = std::make_unique<ipc::ControlBlock>();
    blocks[index]->gate = ipc::kGateRun;
    return blocks[index].get();
  }
  SharedMemory ControlBlocks() const override { return {nullptr, 0}; }
  void QueueCreated(XQueue&) override { ++created; }
  void QueueDestroyed(XQueue&) override { ++destroyed; }

  Ref<HwQueue> Register(FakeDriver& driver, XDevice device = 5) {
    XHwQueueInfo info{};
    info.device = device;
    info.key = reinterpret_cast<uint64_t>(&driver);
    HwQueueHandle handle = 0;
    EXPECT_EQ(HwQueueRegister(&driver.ops, &driver, &info, &handle), kXSchedSuccess);
    registered_.push_back(handle);
    return HwQueues().Get(handle);
  }
  XQueue& Make(FakeDriver& driver, XPreemptLevel level = kPreemptLevelBlock, bool pausable = false,
               XDevice device = 5) {
    XQueueOptions options;
    options.level = level;
    options.pausable = pausable;
    XQueueHandle handle = 0;
    EXPECT_EQ(table.Create(Register(driver, device), options, &handle), kXSchedSuccess);
    driver.queue = &table.At(XQueueIndex(handle));
    return *driver.queue;
  }
  // A launch that the driver takes.
  void Launch(FakeDriver& driver, int count = 1) {
    for (int i = 0; i < count; ++i) {
      const uint64_t number = driver.queue->LaunchBegin();
      driver.items.push_back({FakeDriver::Item::kCommand, number});
      driver.queue->LaunchEnd(number, true);
    }
  }
  // The device works, and reports what it reaches.
  void Run(FakeDriver& driver, int commands = 1000000) {
    driver.Run(commands);
    for (uint64_t ticket : std::exchange(driver.reached, {}))
      driver.queue->MarkerReached(QueueState::NumberOf(ticket));
  }
  void Schedule(XQueue& queue, uint16_t gate, uint32_t flags) {
    state.SetScheduled(true);
    queue.block().flags = flags;
    queue.block().gate = gate;
  }
  void Hold(XQueue& queue) { Schedule(queue, ipc::kGateHold, ipc::kFlagTracked | ipc::kFlagGated); }
  void LetRun(XQueue& queue) { Schedule(queue, ipc::kGateRun, ipc::kFlagTracked | ipc::kFlagGated); }

  struct Requested {
    uint32_t index;
    Work work;
    bool operator==(const Requested&) const = default;
  };
  std::vector<std::unique_ptr<ipc::ControlBlock>> blocks;
  std::vector<uint32_t> rung;
  std::vector<Requested> requests;
  int wakes = 0;
  int taken_seen = 0;
  int give_back_later = 0;
  int created = 0;
  int destroyed = 0;
  bool takes_requests = true;
  bool settled = true;

  ProcessState state;
  XQueueTable table{NewSlots(), *this, {&state, this, &table, this, this, &FakeNow}};
  Urgencies urgencies{table, *this, state};

 private:
  // As in a process: never freed, and so what they have made is not either.
  static XQueueSlots& NewSlots() {
    static auto& all = *new std::vector<XQueueSlots*>;
    return *all.emplace_back(new XQueueSlots);
  }

  std::vector<HwQueueHandle> registered_;
};

}  // namespace xsched::preempt::testing
