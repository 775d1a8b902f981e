#include "hal/hip/kfd/requests.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <linux/kfd_ioctl.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <cstring>

namespace xsched::hip::kfd {
namespace {

constexpr kfd_ioctl_create_queue_args kCreated = {.ring_base_address = 0x10000,
                                                  .write_pointer_address = 0x20000,
                                                  .read_pointer_address = 0x30000,
                                                  .doorbell_offset = 0x40000,
                                                  .ring_size = 0x1000,
                                                  .gpu_id = 42,
                                                  .queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
                                                  .queue_percentage = 0x164,
                                                  .queue_priority = 7,
                                                  .queue_id = 3,
                                                  .ctx_save_restore_address = 0x50000,
                                                  .ctx_save_restore_size = 0x2000};

TEST(KfdRequest, a_queues_creation_is_read_as_the_kernels_header_lays_it_out) {
  const Request request = ReadRequest(AMDKFD_IOC_CREATE_QUEUE, &kCreated);
  EXPECT_EQ(request.kind, Request::Kind::kCreate);
  EXPECT_EQ(request.queue, 3u);
  EXPECT_EQ(request.gpu, 42u);
  EXPECT_EQ(request.config, (QueueConfig{0x10000, 0x1000, 0x164, 7}));
  EXPECT_TRUE(request.compute);
  EXPECT_TRUE(request.saves_waves);
}

TEST(KfdRequest, queues_that_copy_are_recognized) {
  for (uint32_t type : {KFD_IOC_QUEUE_TYPE_SDMA, KFD_IOC_QUEUE_TYPE_SDMA_XGMI, 4}) {
    kfd_ioctl_create_queue_args create = kCreated;
    create.queue_type = type;
    EXPECT_FALSE(ReadRequest(AMDKFD_IOC_CREATE_QUEUE, &create).compute) << type;
  }
  kfd_ioctl_create_queue_args create = kCreated;
  create.queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE;
  EXPECT_TRUE(ReadRequest(AMDKFD_IOC_CREATE_QUEUE, &create).compute);
}

TEST(KfdRequest, a_newer_kernels_longer_request_is_read_and_a_shorter_one_is_not) {
  char longer[sizeof kCreated + 8] = {};
  memcpy(longer, &kCreated, sizeof kCreated);
  EXPECT_EQ(ReadRequest(_IOWR('K', 0x02, longer), longer).queue, 3u);
  EXPECT_EQ(ReadRequest(_IOWR('K', 0x02, uint64_t), &kCreated).kind, Request::Kind::kOther);
}

TEST(KfdRequest, other_drivers_requests_are_not_looked_into) {
  EXPECT_FALSE(MayConcern(TCGETS));
  EXPECT_FALSE(MayConcern(0x4B3A)) << "KDSETMODE, of consoles";
  EXPECT_TRUE(MayConcern(AMDKFD_IOC_GET_VERSION));
  EXPECT_EQ(ReadRequest(AMDKFD_IOC_GET_VERSION, nullptr).kind, Request::Kind::kOther);
  EXPECT_EQ(ReadRequest(AMDKFD_IOC_UPDATE_QUEUE, nullptr).kind, Request::Kind::kOther);
}

kfd_ioctl_update_queue_args seen;
int interruptions = 0;

int Take(int fd, unsigned long request, void* argument) {
  EXPECT_EQ(fd, 5);
  EXPECT_EQ(request, AMDKFD_IOC_UPDATE_QUEUE);
  if (interruptions-- > 0) {
    errno = EINTR;
    return -1;
  }
  memcpy(&seen, argument, sizeof seen);
  return 0;
}

TEST(KfdRequest, an_update_is_made_as_the_kernels_header_lays_it_out_and_again_when_interrupted) {
  interruptions = 2;
  EXPECT_EQ(Update(Take, 5, 3, {0x10000, 0x1000, 0x164, 7}), 0);
  EXPECT_EQ(interruptions, -1);
  EXPECT_EQ(seen.ring_base_address, 0x10000u);
  EXPECT_EQ(seen.queue_id, 3u);
  EXPECT_EQ(seen.ring_size, 0x1000u);
  EXPECT_EQ(seen.queue_percentage, 0x164u);
  EXPECT_EQ(seen.queue_priority, 7u);
  EXPECT_EQ(ReadRequest(AMDKFD_IOC_UPDATE_QUEUE, &seen).config, (QueueConfig{0x10000, 0x1000, 0x164, 7}));
}

TEST(KfdRequest, to_make_a_queue_inactive_changes_its_percentage_alone) {
  EXPECT_EQ((QueueConfig{0x10000, 0x1000, 0x164, 7}.Inactive()), (QueueConfig{0x10000, 0x1000, 0x100, 7}));
}

}  // namespace
}  // namespace xsched::hip::kfd
