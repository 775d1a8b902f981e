// The rules of packets, events and memory: one test for each. And the list of them all.
#include "rules.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "newer_kfd.h"
#include "rule_tests.h"
#include "rules_fixture.h"

namespace standin_amdgpu {
namespace {

using std::chrono::milliseconds;

TEST_F(AmdgpuRules, doorbells) {
  Make();
  Signal first(1), second(1);
  Write(0, HSA_PACKET_TYPE_BARRIER_AND, first);
  Write(1, HSA_PACKET_TYPE_BARRIER_AND, second);
  EXPECT_TRUE(first.StaysAt1());
  Ring(0);
  EXPECT_TRUE(first.Becomes0());
  EXPECT_TRUE(second.StaysAt1());
  Ring(1);
  EXPECT_TRUE(second.Becomes0());
}

TEST_F(AmdgpuRules, packets_in_order) {
  Make();
  Signal gate(1), first(1), second(1);
  Write(0, HSA_PACKET_TYPE_BARRIER_AND, first, {gate.handle()});
  Write(1, HSA_PACKET_TYPE_BARRIER_AND, second);
  Ring(1);
  EXPECT_TRUE(second.StaysAt1());
  EXPECT_EQ(read_index(), 0u);
  gate.Set(0);
  EXPECT_TRUE(second.Becomes0());
  EXPECT_EQ(first.Get(), 0);
  EXPECT_EQ(read_index(), 2u);
  EXPECT_EQ(packets()[0].header, HSA_PACKET_TYPE_INVALID);
}

TEST_F(AmdgpuRules, barriers) {
  Make();
  Signal one(1), other(1), any(1), all(1), none(1);
  Write(0, HSA_PACKET_TYPE_BARRIER_OR, any, {one.handle(), other.handle()});
  Write(1, HSA_PACKET_TYPE_BARRIER_AND, all, {one.handle(), other.handle()});
  Write(2, HSA_PACKET_TYPE_BARRIER_OR, none);
  Ring(2);
  EXPECT_TRUE(any.StaysAt1());
  other.Set(0);
  EXPECT_TRUE(any.Becomes0());
  EXPECT_TRUE(all.StaysAt1());
  one.Set(0);
  EXPECT_TRUE(all.Becomes0());
  EXPECT_TRUE(none.Becomes0());
}

TEST_F(AmdgpuRules, completion) {
  Make();
  uint64_t mailbox = 0;
  Signal done(5);
  done.event_id = NewEvent();
  done.event_mailbox_ptr = reinterpret_cast<uint64_t>(&mailbox);
  Write(0, HSA_PACKET_TYPE_BARRIER_AND, done);
  Ring(0);
  EXPECT_EQ(Wait(done.event_id, 5000).result, uint32_t{KFD_IOC_WAIT_RESULT_COMPLETE});
  EXPECT_EQ(done.Get(), 4);
  EXPECT_EQ(mailbox, done.event_id);
  EXPECT_LE(done.start_ts, done.end_ts);
  DestroyEvent(done.event_id);
}

TEST_F(AmdgpuRules, events_wake_all_waiters) {
  const uint32_t event = NewEvent();
  // Only if both wait already. If not, they try again.
  std::atomic<int> woken{0};
  const auto wait = [&] { woken += Wait(event, 200).result == KFD_IOC_WAIT_RESULT_COMPLETE; };
  for (int i = 0; i < 50 && woken != 2; ++i) {
    woken = 0;
    std::thread first(wait), second(wait);
    std::this_thread::sleep_for(milliseconds(20));
    EXPECT_EQ(SetEvent(event), 0);
    first.join();
    second.join();
  }
  EXPECT_EQ(woken, 2);
  EXPECT_EQ(Wait(event, 1).result, uint32_t{KFD_IOC_WAIT_RESULT_TIMEOUT});
  EXPECT_EQ(SetEvent(event), 0);
  EXPECT_EQ(Wait(event, 1).result, uint32_t{KFD_IOC_WAIT_RESULT_COMPLETE});
  EXPECT_EQ(Wait(event, 1).result, uint32_t{KFD_IOC_WAIT_RESULT_TIMEOUT});
  DestroyEvent(event);
}

TEST_F(AmdgpuRules, events_have_an_age) {
  const uint32_t event = NewEvent();
  SetEvent(event);
  const Waited first = Wait(event, 1, 1);
  EXPECT_EQ(first.result, uint32_t{KFD_IOC_WAIT_RESULT_COMPLETE});
  EXPECT_EQ(first.age, 2u);
  EXPECT_EQ(Wait(event, 1, first.age).result, uint32_t{KFD_IOC_WAIT_RESULT_TIMEOUT});
  EXPECT_EQ(Wait(event, 1, 1).result, uint32_t{KFD_IOC_WAIT_RESULT_COMPLETE}) << "another has it already";
  DestroyEvent(event);
}

TEST_F(AmdgpuRules, destroyed_events_fail) {
  int error = EINVAL;  // it was gone before anybody waited
  for (int i = 0; i < 50 && error == EINVAL; ++i) {
    const uint32_t event = NewEvent();
    std::thread waiter([&] { error = Wait(event, 10'000).error; });
    std::this_thread::sleep_for(milliseconds(20));
    DestroyEvent(event);
    waiter.join();
    EXPECT_EQ(Wait(event, 1).error, EINVAL);
  }
  EXPECT_EQ(error, EIO);
}

TEST_F(AmdgpuRules, buffers) {
  const Buffer buffer = Allocate(2 * kPage);
  static_cast<char*>(buffer.memory)[kPage] = 7;
  EXPECT_EQ(Map(buffer.handle), 0);
  EXPECT_EQ(Free(buffer.handle), EBUSY);
  EXPECT_EQ(Unmap(buffer.handle), 0);
  EXPECT_EQ(Free(buffer.handle), 0);
  EXPECT_EQ(Map(buffer.handle), ENOMEM);
  EXPECT_EQ(static_cast<char*>(Allocate(2 * kPage).memory)[kPage], 0) << "new memory is empty";
}

TEST_F(AmdgpuRules, render_nodes) {
  const int copy = fcntl(render_, F_DUPFD_CLOEXEC, 0);
  kfd_ioctl_acquire_vm_args args{.drm_fd = static_cast<uint32_t>(copy), .gpu_id = kGpu};
  EXPECT_EQ(Do(AMDKFD_IOC_ACQUIRE_VM, args), 0);
  args.gpu_id = kGpu + 1;
  EXPECT_EQ(Do(AMDKFD_IOC_ACQUIRE_VM, args), EINVAL);
  args = {.drm_fd = static_cast<uint32_t>(kfd_), .gpu_id = kGpu};
  EXPECT_EQ(Do(AMDKFD_IOC_ACQUIRE_VM, args), EINVAL);
  close(copy);
  EXPECT_EQ(open("/dev/dri/renderD135", O_RDWR), -1);
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(AmdgpuRules, runtime_before_queues) {
  RuntimeEnable args{.r_debug = 0, .mode_mask = 1, .capabilities_mask = 0};
  const unsigned long request = _IOWR('K', kRuntimeEnable, RuntimeEnable);
  EXPECT_EQ(Do(request, args), 0);
  Make();
  EXPECT_EQ(Do(request, args), EEXIST);
}

TEST(AmdgpuRulesList, has_a_test_for_each) { standin::ExpectATestOfEach(kDriverRules, "AmdgpuRules"); }

}  // namespace
}  // namespace standin_amdgpu
