// The flow control of one queue, over a hardware queue that a test controls, and a record of what it signals.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "preempt/gates/flow_control.h"
#include "preempt/gates/testing/fake_hw_queue.h"

namespace xsched::preempt::testing {

class FlowTest : public ::testing::Test, public Signals {
 protected:
  explicit FlowTest(XGating gating, bool polls = false) : driver(gating, kPreemptLevelBlock, polls) {
    block.gate = ipc::kGateRun;
    driver.state = &state;
  }
  // Begins the queue. After that, a test may change functions of the driver.
  void Begin(LaunchConfig config = {}, XPreemptLevel level = kPreemptLevelBlock) {
    state.Begin({3, &block, &process, this, driver.ops.gating, level, config, &FakeNow, &FakeNow,
                 driver.ops.poll_markers != nullptr});
    if (flow == nullptr) flow = NeverFreed(FlowControl::Make(driver.ops.gating, state));
    flow->Begin({&driver.ops, &driver, std::chrono::microseconds(2000), std::chrono::microseconds(50), &block,
                 sizeof block});
  }
  void Launch(int count = 1) {
    for (int i = 0; i < count; ++i) {
      const uint64_t number = state.CountLaunch();
      if (flow->BeforeLaunch(number, state.flags())) flow->WaitBeforeLaunch(number);
      driver.items.push_back({FakeHwQueue::Item::kCommand, number});
      if (state.flags() != 0) flow->AfterLaunch(number);
      state.CountIssued();
    }
  }
  // The device runs commands, and reports the markers that it reaches.
  void Run(int commands = 1000000) {
    driver.Run(commands);
    for (uint64_t ticket : std::exchange(driver.reached, {}))
      state.MarkerReached(Ticket::Unpack(ticket).number);
  }
  void Schedule(uint16_t gate, uint32_t flags) {
    process.SetScheduled(true);
    block.flags = flags;
    block.gate = gate;
  }
  void Hold() { Schedule(ipc::kGateHold, ipc::kFlagTracked | ipc::kFlagGated); }
  void Record() { Schedule(ipc::kGateRun, ipc::kFlagCounted); }
  void LetRun() { Schedule(ipc::kGateRun, ipc::kFlagTracked | ipc::kFlagGated); }

  // Signals
  void RingScheduler(uint32_t index) override { rung.push_back(index); }
  void Wake() override { ++wakes; }
  void SomethingIsTaken() override {}
  bool GiveBackLater() override {
    ++give_back_later;
    return agent_runs;
  }

  int give_back_later = 0;
  bool agent_runs = true;  // or can be started
  FakeHwQueue driver;
  ipc::ControlBlock block{};
  ProcessState process;
  FlowState state;
  FlowControl* flow = nullptr;
  std::vector<uint32_t> rung;
  int wakes = 0;

 private:
  // As in a process.
  static FlowControl* NeverFreed(FlowControl* made) {
    static auto& all = *new std::vector<FlowControl*>;
    return all.emplace_back(made);
  }
};

}  // namespace xsched::preempt::testing
