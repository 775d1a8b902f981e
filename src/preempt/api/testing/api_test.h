// The C API of this process, without a scheduler, over hardware queues that a test controls.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "preempt/api/process.h"
#include "preempt/gates/testing/fake_hw_queue.h"
#include "xsched/xsched.h"

namespace xsched::preempt::testing {

class ApiTest : public ::testing::Test {
 protected:
  void TearDown() override {
    for (XQueueHandle queue : queues_) XQueueDestroy(queue);
    for (HwQueueHandle queue : hw_queues_) HwQueueDestroy(queue);
  }
  // A registered hardware queue.
  HwQueueHandle Register(FakeHwQueue& driver, XDevice device = 5) {
    XHwQueueInfo info{};
    info.device = device;
    info.key = KeyOf(driver);
    HwQueueHandle handle = 0;
    EXPECT_EQ(HwQueueRegister(&driver.ops, &driver, &info, &handle), kXSchedSuccess);
    hw_queues_.push_back(handle);
    return handle;
  }
  // The same with an XQueue.
  XQueueHandle Make(FakeHwQueue& driver, XPreemptLevel level = kPreemptLevelBlock) {
    XQueueHandle handle = 0;
    EXPECT_EQ(XQueueCreate(&handle, Register(driver), level, kQueueCreateFlagNone), kXSchedSuccess);
    driver.state = &QueueOf(driver)->state();
    queues_.push_back(handle);
    return handle;
  }
  static uint64_t KeyOf(const FakeHwQueue& driver) { return reinterpret_cast<uint64_t>(&driver); }
  static XQueue* QueueOf(const FakeHwQueue& driver) {
    return ThisProcess().queues.Find(driver.ops.platform, KeyOf(driver));
  }
  // Launches a command that the driver accepts.
  void Launch(FakeHwQueue& driver) {
    XQueue& queue = *QueueOf(driver);
    const uint64_t number = queue.LaunchBegin();
    driver.items.push_back({FakeHwQueue::Item::kCommand, number});
    queue.LaunchEnd(number, true);
  }
  // The device runs what it may, and reports the markers that it reaches.
  void Run(FakeHwQueue& driver) {
    driver.Run();
    for (uint64_t ticket : std::exchange(driver.reached, {})) HwQueueRetired(ticket);
  }

  FakeHwQueue driver_{kGatingHostGates, kPreemptLevelDeactivate};
  FakeHwQueue other_driver_{kGatingHostGates};

 private:
  std::vector<HwQueueHandle> hw_queues_;
  std::vector<XQueueHandle> queues_;
};

}  // namespace xsched::preempt::testing
