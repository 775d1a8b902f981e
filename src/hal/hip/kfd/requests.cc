#include "hal/hip/kfd/requests.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/lock_order.h"

namespace xsched::hip::kfd {
namespace {

constexpr unsigned kCreateQueue = 0x02;
constexpr unsigned kDestroyQueue = 0x03;
constexpr unsigned kUpdateQueue = 0x07;

constexpr uint32_t kComputeType = 0;     // KFD_IOC_QUEUE_TYPE_COMPUTE
constexpr uint32_t kComputeAqlType = 2;  // …_COMPUTE_AQL: a runtime's; 1, 3 and later ones copy

struct CreateRequest {  // kfd_ioctl_create_queue_args; newer ones are longer
  uint64_t ring;
  uint64_t write_pointer, read_pointer, doorbell;
  uint32_t ring_size;
  uint32_t gpu;
  uint32_t type;
  uint32_t percentage;
  uint32_t priority;
  uint32_t queue;
  uint64_t eop_buffer, eop_buffer_size;
  uint64_t save_area;
  uint32_t save_area_size;
  uint32_t control_stack_size;
};
static_assert(sizeof(CreateRequest) == 88);

struct DestroyRequest {
  uint32_t queue;
  uint32_t padding;
};
static_assert(sizeof(DestroyRequest) == 8);

struct UpdateRequest {
  uint64_t ring;
  uint32_t queue;
  uint32_t ring_size;
  uint32_t percentage;
  uint32_t priority;
};
static_assert(sizeof(UpdateRequest) == 24);

// The program owns `argument`, so it may be unaligned. KFD accepts longer arguments than it knows.
template <typename Arguments>
bool Read(const void* argument, size_t size, Arguments* arguments) {
  if (size < sizeof(Arguments) || argument == nullptr) return false;
  memcpy(arguments, argument, sizeof(Arguments));
  return true;
}

}  // namespace

Request ReadRequest(unsigned long request, const void* argument) {
  if (!MayConcern(request)) return {};
  const size_t size = _IOC_SIZE(request);
  switch (_IOC_NR(request)) {
    case kCreateQueue: {
      CreateRequest create;
      if (!Read(argument, size, &create)) return {};
      return {.kind = Request::Kind::kCreate,
              .queue = create.queue,
              .config = {create.ring, create.ring_size, create.percentage, create.priority},
              .gpu = create.gpu,
              .compute = create.type == kComputeType || create.type == kComputeAqlType,
              .saves_waves = create.save_area != 0 && create.save_area_size != 0};
    }
    case kDestroyQueue: {
      DestroyRequest destroy;
      if (!Read(argument, size, &destroy)) return {};
      return {.kind = Request::Kind::kDestroy, .queue = destroy.queue};
    }
    case kUpdateQueue: {
      UpdateRequest update;
      if (!Read(argument, size, &update)) return {};
      return {.kind = Request::Kind::kUpdate,
              .queue = update.queue,
              .config = {update.ring, update.ring_size, update.percentage, update.priority}};
    }
    default:
      return {};
  }
}

int Update(IoctlCall call, int fd, QueueId queue, const QueueConfig& config) {
  lock_order::CheckCall(Calls::kKernel);
  UpdateRequest update{.ring = config.ring,
                       .queue = queue,
                       .ring_size = config.ring_size,
                       .percentage = config.percentage,
                       .priority = config.priority};
  int result = 0;
  do {
    result = call(fd, _IOW('K', kUpdateQueue, UpdateRequest), &update);
  } while (result < 0 && errno == EINTR);
  return result;
}

}  // namespace xsched::hip::kfd
