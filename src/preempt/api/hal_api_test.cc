// What HALs call (hal/contract.h).
#include "preempt/api/testing/api_test.h"

namespace xsched::preempt::testing {
namespace {

using HalApiTest = ApiTest;

TEST_F(HalApiTest, a_registered_queue_is_found_by_its_key_and_its_own_platform_alone) {
  const HwQueueHandle handle = Register(driver_);
  EXPECT_EQ(HwQueueFind(kPlatformOpenCL, KeyOf(driver_)), handle);
  EXPECT_EQ(HwQueueFind(kPlatformCUDA, KeyOf(driver_)), 0u);
  EXPECT_EQ(HwQueueImpl(handle, kPlatformOpenCL), &driver_);
  EXPECT_EQ(HwQueueImpl(handle, kPlatformCUDA), nullptr);
  EXPECT_EQ(HwQueueImpl(handle + 1, kPlatformOpenCL), nullptr);
}

TEST_F(HalApiTest, null_pointers_are_invalid) {
  const XHwQueueInfo info{};
  HwQueueHandle queue = 0;
  EXPECT_EQ(HwQueueRegister(nullptr, &driver_, &info, &queue), kXSchedErrorInvalidValue);
  EXPECT_EQ(HwQueueRegister(&driver_.ops, &driver_, nullptr, &queue), kXSchedErrorInvalidValue);
  EXPECT_EQ(HwQueueRegister(&driver_.ops, &driver_, &info, nullptr), kXSchedErrorInvalidValue);
  EXPECT_EQ(HwQueueRegister(&driver_.ops, &driver_, &info, &queue), kXSchedErrorInvalidValue) << "no key";
  HwCommandHandle command = 0;
  const XHwCommandOps ops{};
  EXPECT_EQ(HwCommandRegister(nullptr, nullptr, &command), kXSchedErrorInvalidValue);
  EXPECT_EQ(HwCommandRegister(&ops, nullptr, nullptr), kXSchedErrorInvalidValue);
}

TEST_F(HalApiTest, a_marker_that_is_reached_retires_the_commands_in_front_of_it) {
  Make(driver_);
  Launch(driver_);
  Launch(driver_);
  XQueue& queue = *QueueOf(driver_);
  queue.flow().RequestProgress();
  ASSERT_EQ(driver_.Count(FakeHwQueue::Item::kMarker), 1u);
  HwQueueRetired(driver_.items.back().value);
  EXPECT_EQ(queue.retired(), 2u);
}

TEST_F(HalApiTest, a_ticket_of_no_slot_is_ignored) {
  Make(driver_);
  Launch(driver_);
  HwQueueRetired(Ticket{ipc::kMaxQueues, 1}.Pack());
  HwQueueRetired(UINT64_MAX);
  EXPECT_EQ(QueueOf(driver_)->retired(), 0u);
}

TEST_F(HalApiTest, the_hal_that_registers_sets_the_slices_of_the_process) {
  static uint64_t set_us;
  set_us = 0;
  XProcessOps ops{};
  ops.size = sizeof ops;
  ops.set_slice = [](XDevice, uint64_t slice_us) {
    set_us = slice_us;
    return kXSchedSuccess;
  };
  ops.refresh = [] {};
  ProcessOpsRegister(&ops);
  ProcessSlices& slices = ThisProcess().slices;
  slices.Want(5, 1234);
  slices.Apply(TimePoint{});
  EXPECT_EQ(set_us, 1234u);
  slices.WantDrivers();
  slices.Apply(TimePoint{});
  EXPECT_EQ(set_us, 0u);
}

}  // namespace
}  // namespace xsched::preempt::testing
