// A process of its own, beside the one that the API uses.
#include "preempt/api/process.h"

#include <gmock/gmock.h>

#include <vector>

#include "preempt/gates/testing/fake_hw_queue.h"

namespace xsched::preempt::testing {
namespace {

using ::testing::ElementsAre;

class ProcessTest : public ::testing::Test {
 protected:
  XQueue& Make(FakeHwQueue& driver) {
    XHwQueueInfo info{};
    info.device = 5;
    info.key = reinterpret_cast<uint64_t>(&driver);
    HwQueueHandle hwq = 0;
    EXPECT_EQ(process_.hw_queues.Register(driver.ops, &driver, info, &hwq), kXSchedSuccess);
    XQueueHandle handle = 0;
    EXPECT_EQ(process_.CreateQueue(process_.hw_queues.Get(hwq), {}, &handle), kXSchedSuccess);
    return *process_.queues.Pin(handle);
  }

  FakeHwQueue driver_{kGatingHostGates};
  FakeHwQueue other_driver_{kGatingHostGates};
  Process& process_ = New();

 private:
  // Never destroyed, as a process's own.
  static Process& New() {
    static auto& all = *new std::vector<Process*>;
    return *all.emplace_back(new Process(*new XQueueSlots, *new UrgencySlots));
  }
};

TEST_F(ProcessTest, its_parts_know_each_other_and_no_other_process) {
  const XQueue& queue = Make(driver_);
  EXPECT_EQ(process_.queues.Find(kPlatformOpenCL, reinterpret_cast<uint64_t>(&driver_)), &queue);
  EXPECT_EQ(ThisProcess().queues.Find(kPlatformOpenCL, reinterpret_cast<uint64_t>(&driver_)), nullptr);
  EXPECT_EQ(&queue.block(), &process_.memory.segment().blocks[queue.index()]);
  EXPECT_EQ(&queue.state().process(), &process_.state);
  EXPECT_EQ(&queue.state().signals(), &process_.agent);
}

TEST_F(ProcessTest, a_level_that_the_hardware_queue_has_not_is_refused_before_anything_starts) {
  XHwQueueInfo info{};
  info.key = 1;
  HwQueueHandle hwq = 0;
  ASSERT_EQ(process_.hw_queues.Register(driver_.ops, &driver_, info, &hwq), kXSchedSuccess);
  XQueueOptions options;
  options.level = kPreemptLevelInterrupt;
  XQueueHandle handle = 0;
  EXPECT_EQ(process_.CreateQueue(process_.hw_queues.Get(hwq), options, &handle), kXSchedErrorNotSupported);
  EXPECT_FALSE(process_.memory.created());
}

TEST_F(ProcessTest, a_suspended_queue_is_held_until_it_is_resumed) {
  XQueue& queue = Make(driver_);
  process_.Suspend(queue, true);
  EXPECT_TRUE(queue.Held());
  process_.Suspend(queue, false);
  EXPECT_FALSE(queue.Held());
}

TEST_F(ProcessTest, a_wait_is_written_to_the_memory_that_the_scheduler_reads) {
  XQueue& waiter = Make(driver_);
  XQueue& owner = Make(other_driver_);
  owner.LaunchEnd(owner.LaunchBegin(), true);
  process_.memory.UseBellOf(ControlMemory::Scheduler::kServers);
  process_.AddDependency(waiter, owner, 1);
  std::vector<uint32_t> waits_for;
  ipc::ForEachWait(process_.memory.segment(), waiter.index(),
                   [&](const ipc::Wait& wait) { waits_for.push_back(wait.queue); });
  EXPECT_THAT(waits_for, ElementsAre(owner.index()));
  uint64_t rung = 0;
  ipc::ForEachDirty(process_.memory.segment(), [&](uint32_t index) { rung |= uint64_t{1} << index; });
  EXPECT_TRUE((rung & uint64_t{1} << waiter.index()) != 0);
}

}  // namespace
}  // namespace xsched::preempt::testing
