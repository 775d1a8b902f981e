// The rules of queues: one test for each.
#include "rules_fixture.h"

namespace standin_amdgpu {
namespace {

TEST_F(AmdgpuRules, queue_settings) {
  EXPECT_EQ(CreateWith([](auto& args) { args.queue_percentage = 101; }), EINVAL);
  EXPECT_EQ(CreateWith([](auto& args) { args.queue_priority = 16; }), EINVAL);
  EXPECT_EQ(CreateWith([](auto& args) { args.ring_size = kPage - 1; }), EINVAL);
  const uint32_t queue = Make();
  EXPECT_EQ(Update(queue, 101), EINVAL);
  EXPECT_EQ(Update(queue, 100, 16), EINVAL);
  EXPECT_EQ(Update(queue, 0x100 | 100), 0) << "what is above the low byte is another setting";
}

TEST_F(AmdgpuRules, queue_buffers) {
  EXPECT_EQ(CreateWith([](auto& args) { args.ring_base_address += kPage; }), EINVAL);
  EXPECT_EQ(CreateWith([](auto& args) { args.ring_size = kPage / 2; }), 0) << "the kernel counts in pages";
  EXPECT_EQ(CreateWith([](auto& args) { args.ring_size = kPage * 2; }), EINVAL);
  EXPECT_EQ(CreateWith([](auto& args) { args.read_pointer_address = args.ctx_save_restore_address; }),
            EINVAL);
  EXPECT_EQ(CreateWith([](auto& args) { args.write_pointer_address = 0; }), EINVAL);
  EXPECT_EQ(Unmap(ring_.handle), 0);
  EXPECT_EQ(CreateWith([](auto&) {}), EINVAL);
}

TEST_F(AmdgpuRules, save_area) {
  EXPECT_EQ(CreateWith([](auto& args) { args.ctl_stack_size += kPage; }), EINVAL);
  EXPECT_EQ(CreateWith([](auto& args) { args.ctx_save_restore_size -= kPage; }), EINVAL);
  EXPECT_EQ(CreateWith([](auto& args) { args.ctx_save_restore_address = 0; }), EINVAL);
  EXPECT_EQ(CreateWith([](auto&) {}), 0);
  // A queue that copies needs none.
  EXPECT_EQ(CreateWith([](auto& args) {
              args.queue_type = KFD_IOC_QUEUE_TYPE_SDMA;
              args.ctx_save_restore_address = args.ctx_save_restore_size = args.ctl_stack_size = 0;
            }),
            0);
}

TEST_F(AmdgpuRules, queue_numbers) {
  EXPECT_EQ(Make(), 1u);
  EXPECT_EQ(Make(), 2u);
  EXPECT_EQ(Destroy(1), 0);
  EXPECT_EQ(Make(), 1u);
  EXPECT_EQ(Destroy(7), EINVAL);
  EXPECT_EQ(Update(7, 100), EFAULT);
}

TEST_F(AmdgpuRules, update_sets_everything) {
  const uint32_t queue = Make();
  EXPECT_EQ(Update(queue, 50, 3), 0);
  kfd_ioctl_update_queue_args other{ring_.address() + kPage, queue, kPage, 100, 7};
  EXPECT_EQ(Do(AMDKFD_IOC_UPDATE_QUEUE, other), EFAULT);
  EXPECT_TRUE(standin_amdgpu_active(queue));
  kfd_ioctl_update_queue_args none{0, queue, 0, 100, 7};
  EXPECT_EQ(Do(AMDKFD_IOC_UPDATE_QUEUE, none), 0);
  EXPECT_FALSE(standin_amdgpu_active(queue));
}

TEST_F(AmdgpuRules, percentage_0_suspends) {
  standin_amdgpu_set_wave("", Count);
  const uint32_t queue = Make();
  Signal done(1);
  Write(0, HSA_PACKET_TYPE_KERNEL_DISPATCH, done);
  Ring(0);
  while (steps < 3) std::this_thread::yield();
  EXPECT_EQ(standin_amdgpu_saved_wave(queue), nullptr);
  EXPECT_EQ(Update(queue, 0), 0);
  const uint64_t stopped_at = steps;
  void* saved = const_cast<void*>(standin_amdgpu_saved_wave(queue));
  ASSERT_EQ(saved, static_cast<char*>(save_area_.memory) + kControlStack);
  EXPECT_EQ(std::memcmp(saved, &stopped_at, sizeof stopped_at), 0);
  EXPECT_TRUE(done.StaysAt1());
  EXPECT_EQ(steps, stopped_at);
  // It is nowhere else: what is changed there is what goes on.
  const uint64_t changed = 1'000'000;
  std::memcpy(saved, &changed, sizeof changed);
  EXPECT_EQ(Update(queue, 100), 0);
  EXPECT_EQ(standin_amdgpu_saved_wave(queue), nullptr);
  may_end = true;
  EXPECT_TRUE(done.Becomes0());
  EXPECT_GT(steps, changed);
}

TEST_F(AmdgpuRules, inactive_queues_run_nothing) {
  const uint32_t queue = Make();
  EXPECT_EQ(Update(queue, 0), 0);
  Signal done(1);
  Write(0, HSA_PACKET_TYPE_BARRIER_AND, done);
  Ring(0);
  EXPECT_TRUE(done.StaysAt1());
  EXPECT_EQ(Update(queue, 1), 0);
  EXPECT_TRUE(done.Becomes0());
}

TEST_F(AmdgpuRules, failed_updates_are_kept) {
  constexpr unsigned kUpdate = _IOC_NR(AMDKFD_IOC_UPDATE_QUEUE);
  const uint32_t queue = Make();
  standin_amdgpu_fail(kUpdate, 1, 1, EBUSY, kStandinAmdgpuRefuse);
  EXPECT_EQ(Update(queue, 0), EBUSY);
  EXPECT_TRUE(standin_amdgpu_active(queue));
  standin_amdgpu_fail(kUpdate, 1, 1, ETIME, kStandinAmdgpuTakesEffect);
  EXPECT_EQ(Update(queue, 0), ETIME);
  EXPECT_FALSE(standin_amdgpu_active(queue));
  EXPECT_EQ(Update(queue, 100), 0);
}

}  // namespace
}  // namespace standin_amdgpu
