// A process without agent, scheduler, driver and clock: a table of queues over drivers that a test controls,
// and a record of the queues' requests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/handle.h"
#include "preempt/gates/testing/fake_hw_queue.h"
#include "preempt/queue/urgencies.h"
#include "preempt/queue/xqueue_table.h"

namespace xsched::preempt::testing {

// A hardware queue with its XQueue.
struct FakeDriver : FakeHwQueue {
  using FakeHwQueue::FakeHwQueue;
  XQueue* queue = nullptr;
};

// A test's drivers are members of its fixture, because queues outlive the test's body.
class FakeProcess : public ::testing::Test,
                    public Signals,
                    public DriverRequests,
                    public ProcessLevel,
                    public XQueueTableOwner {
 protected:
  void TearDown() override {
    for (uint32_t next = 0; XQueuePin pin = table.PinNext(&next);) table.Destroy(pin->handle());
    for (HwQueueHandle handle : registered_) hw_queues.Unregister(handle);
  }

  // Signals
  void RingScheduler(uint32_t index) override { rung.push_back(index); }
  void Wake() override { ++wakes; }
  void SomethingIsTaken() override { ++taken_seen; }
  bool GiveBackLater() override {
    ++give_back_later;
    return agent_runs;
  }
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

  void SetPriority(XQueue& queue, Priority priority) {
    sched::Hints hints = queue.hints();
    hints.priority = priority;
    queue.SetHints(hints);
    urgencies.Changed();
  }

  Ref<HwQueue> Register(FakeDriver& driver, XDevice device = 5) {
    XHwQueueInfo info{};
    info.device = device;
    info.key = reinterpret_cast<uint64_t>(&driver);
    HwQueueHandle handle = 0;
    EXPECT_EQ(hw_queues.Register(driver.ops, static_cast<FakeHwQueue*>(&driver), info, &handle),
              kXSchedSuccess);
    registered_.push_back(handle);
    return hw_queues.Get(handle);
  }
  XQueue& Make(FakeDriver& driver, XPreemptLevel level = kPreemptLevelBlock, bool pausable = false,
               XDevice device = 5) {
    XQueueOptions options;
    options.level = level;
    options.pausable = pausable;
    XQueueHandle handle = 0;
    EXPECT_EQ(table.Create(Register(driver, device), options, &handle), kXSchedSuccess);
    driver.queue = &table.At(HandleIndex(handle));
    driver.state = &driver.queue->state();
    return *driver.queue;
  }
  // Launches commands that the driver accepts.
  void Launch(FakeDriver& driver, int count = 1) {
    for (int i = 0; i < count; ++i) {
      const uint64_t number = driver.queue->LaunchBegin();
      driver.items.push_back({FakeDriver::Item::kCommand, number});
      driver.queue->LaunchEnd(number, true);
    }
  }
  // The device runs commands, and reports the markers that it reaches.
  void Run(FakeDriver& driver, int commands = 1000000) {
    driver.Run(commands);
    for (uint64_t ticket : std::exchange(driver.reached, {}))
      driver.queue->state().MarkerReached(Ticket::Unpack(ticket).number);
  }
  void Schedule(XQueue& queue, uint16_t gate, uint32_t flags) {
    state.SetScheduled(true);
    queue.block().flags = flags;
    queue.block().gate = gate;
  }
  void Hold(XQueue& queue) { Schedule(queue, ipc::kGateHold, ipc::kFlagTracked | ipc::kFlagGated); }
  void LetRun(XQueue& queue) { Schedule(queue, ipc::kGateRun, ipc::kFlagTracked | ipc::kFlagGated); }

  // It also counts its bursts, which begin at even times.
  void Report(XQueue& queue, uint32_t flags = 0) {
    fake_now = std::chrono::ceil<std::chrono::seconds>(fake_now);
    Schedule(queue, ipc::kGateRun, ipc::kFlagTracked | ipc::kFlagCounted | flags);
  }

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
  bool agent_runs = true;  // or can be started
  int created = 0;
  int destroyed = 0;
  bool takes_requests = true;
  bool settled = true;

  ProcessState state;
  HwQueues hw_queues;
  HwCommands hw_commands;
  XQueueTable table{
      NewSlots(), *this, {&state, this, &table, this, this, &hw_queues, &hw_commands, &FakeNow, &FakeNow}};
  std::unique_ptr<UrgencySlots> urgency_slots = std::make_unique<UrgencySlots>();
  Urgencies urgencies{*urgency_slots, table, *this, state};

 private:
  // Never freed, as in a process. What the slots have made is not freed either.
  static XQueueSlots& NewSlots() {
    static auto& all = *new std::vector<XQueueSlots*>;
    return *all.emplace_back(new XQueueSlots);
  }

  std::vector<HwQueueHandle> registered_;
};

}  // namespace xsched::preempt::testing
