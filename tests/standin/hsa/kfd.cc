#include "kfd.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/kfd_ioctl.h>
#include <sys/ioctl.h>

#include "fake_kfd.h"

namespace standin_hsa {
namespace {

// As the fake KFD numbers them.
constexpr uint32_t kFirstGpuId = 0x1000;
constexpr uint32_t kNormalPriority = 7;

decltype(&fake_kfd_await_active) AwaitActiveInDriver() {
  static const auto function =
      reinterpret_cast<decltype(&fake_kfd_await_active)>(dlsym(RTLD_DEFAULT, "fake_kfd_await_active"));
  return function;
}

// -1: there is no fake.
int File() {
  static const int file = AwaitActiveInDriver() == nullptr ? -1 : open("/dev/kfd", O_RDWR | O_CLOEXEC);
  return file;
}

}  // namespace

void OpenKfd() {
  kfd_ioctl_get_version_args version{};
  if (File() >= 0) ioctl(File(), AMDKFD_IOC_GET_VERSION, &version);
}

bool KfdQueue::Create(uint32_t gpu, const void* ring, uint32_t bytes) {
  if (File() < 0) return true;
  kfd_ioctl_create_queue_args create{};
  create.ring_base_address = ring_ = reinterpret_cast<uint64_t>(ring);
  create.ring_size = bytes_ = bytes;
  create.gpu_id = kFirstGpuId + gpu;
  create.queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL;
  create.queue_percentage = KFD_MAX_QUEUE_PERCENTAGE;
  create.queue_priority = kNormalPriority;
  create.ctx_save_restore_address = ring_;
  create.ctx_save_restore_size = bytes;
  if (ioctl(File(), AMDKFD_IOC_CREATE_QUEUE, &create) != 0) return false;
  id_ = create.queue_id;
  return true;
}

void KfdQueue::Destroy() {
  kfd_ioctl_destroy_queue_args destroy{.queue_id = id_.exchange(0)};
  if (destroy.queue_id != 0) ioctl(File(), AMDKFD_IOC_DESTROY_QUEUE, &destroy);
}

bool KfdQueue::SetPriority(uint32_t priority) {
  kfd_ioctl_update_queue_args update{ring_, id_.load(), bytes_, KFD_MAX_QUEUE_PERCENTAGE, priority};
  return update.queue_id == 0 || ioctl(File(), AMDKFD_IOC_UPDATE_QUEUE, &update) == 0;
}

bool KfdQueue::AwaitActive() const {
  const uint32_t id = id_.load();
  return id == 0 || AwaitActiveInDriver()(id) != 0;
}

}  // namespace standin_hsa
