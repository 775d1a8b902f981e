#include "queues.h"

#include <errno.h>
#include <sys/mman.h>

#include <algorithm>

#include "aql_queue.h"
#include "files.h"
#include "gpus.h"
#include "sdma_queue.h"

namespace standin_amdgpu {
namespace {

constexpr uint32_t kMaxQueues = 1024;         // of a process
constexpr uint64_t kDoorbellPage = 8 * 1024;  // of a process, on one GPU: 1024 of 8 bytes
constexpr uint64_t kFirstDoorbellPage = 1 << 20;
// Behind what is saved for each die is the debugger's part: 32 bytes for each of the waves that fit on it.
constexpr uint64_t kDebugSize = 800 * 32;
constexpr uint64_t kPage = 4096;

bool IsAql(const kfd_ioctl_create_queue_args& args) {
  return args.queue_type == KFD_IOC_QUEUE_TYPE_COMPUTE_AQL;
}

bool IsValid(uint32_t percentage, uint32_t priority, uint32_t ring_size) {
  return (percentage & 0xff) <= KFD_MAX_QUEUE_PERCENTAGE && priority <= KFD_MAX_QUEUE_PRIORITY &&
         (ring_size & (ring_size - 1)) == 0;
}

}  // namespace

int Queues::Check(const kfd_ioctl_create_queue_args& args) const {
  if (!IsValid(args.queue_percentage, args.queue_priority, args.ring_size)) return EINVAL;
  if (args.gpu_id - kFirstGpuId >= CountGpus()) return EINVAL;
  if (queues_.size() >= kMaxQueues - 1) return ENOSPC;
  if (!memory_.IsBuffer(args.ring_base_address, args.ring_size) ||
      !memory_.IsBuffer(args.read_pointer_address, kPage) ||
      !memory_.IsBuffer(args.write_pointer_address, kPage)) {
    return EINVAL;
  }
  return IsAql(args) ? CheckSaveArea(args) : 0;
}

int Queues::CheckSaveArea(const kfd_ioctl_create_queue_args& args) const {
  const uint32_t gpu = args.gpu_id - kFirstGpuId;
  if (args.ctl_stack_size != PropertyOf(gpu, "ctl_stack_size") ||
      args.ctx_save_restore_size < PropertyOf(gpu, "cwsr_size")) {
    return EINVAL;
  }
  const uint64_t size = (args.ctx_save_restore_size + kDebugSize) * kXccs;
  const uint64_t address = args.ctx_save_restore_address;
  return memory_.IsBuffer(address, size) || memory_.IsRange(address, size) ? 0 : EINVAL;
}

std::atomic<uint64_t>* Queues::Doorbell(uint32_t gpu, uint32_t id) {
  if (doorbells_ == nullptr) {
    doorbells_ =
        static_cast<std::atomic<uint64_t>*>(mmap(nullptr, kDoorbellPage * kMaxGpus, PROT_READ | PROT_WRITE,
                                                 MAP_SHARED, KfdFile(), off_t{kFirstDoorbellPage}));
  }
  return doorbells_ + gpu * kDoorbellPage / sizeof(uint64_t) + id;
}

int Queues::Create(kfd_ioctl_create_queue_args& args) {
  if (int error = Check(args)) return error;
  // The smallest free number, as in the kernel: numbers are reused.
  uint32_t id = 1;
  while (queues_.count(id) != 0) ++id;
  const uint32_t gpu = args.gpu_id - kFirstGpuId;
  args.queue_id = id;
  args.doorbell_offset = kFirstDoorbellPage + gpu * kDoorbellPage + id * sizeof(uint64_t);
  std::atomic<uint64_t>* doorbell = Doorbell(gpu, id);
  std::unique_ptr<Queue>& queue = queues_[id];
  if (IsAql(args)) {
    doorbell->store(~uint64_t{0});
    queue = std::make_unique<AqlQueue>(args, doorbell, events_);
  } else {
    doorbell->store(0);
    queue = std::make_unique<SdmaQueue>(args, doorbell, events_);
  }
  queue->Start();
  return 0;
}

int Queues::Destroy(uint32_t id) {
  auto found = queues_.find(id);
  if (found == queues_.end()) return EINVAL;
  found->second->Stop();
  queues_.erase(found);
  return 0;
}

int Queues::Update(const kfd_ioctl_update_queue_args& args) {
  if (!IsValid(args.queue_percentage, args.queue_priority, args.ring_size)) return EINVAL;
  auto found = queues_.find(args.queue_id);
  if (found == queues_.end()) return EFAULT;
  if (args.ring_base_address != 0 && !memory_.IsBuffer(args.ring_base_address, args.ring_size)) return EFAULT;
  found->second->Update(args);
  return 0;
}

int Queues::SetMask(const kfd_ioctl_set_cu_mask_args& args) const {
  return args.num_cu_mask == 0 || args.num_cu_mask % 32 != 0 || !Has(args.queue_id) ? EINVAL : 0;
}

bool Queues::IsActive(uint32_t id) const {
  auto found = queues_.find(id);
  return found != queues_.end() && found->second->active();
}

const void* Queues::SavedWave(uint32_t id) const {
  auto found = queues_.find(id);
  return found == queues_.end() || !IsAql(found->second->made()) ? nullptr
                                                                 : Wave::SavedIn(found->second->made());
}

uint32_t Queues::Count() const {
  return static_cast<uint32_t>(
      std::ranges::count_if(queues_, [](const auto& entry) { return IsAql(entry.second->made()); }));
}

uint32_t Queues::CountActive() const {
  return static_cast<uint32_t>(std::ranges::count_if(
      queues_, [](const auto& entry) { return IsAql(entry.second->made()) && entry.second->active(); }));
}

}  // namespace standin_amdgpu
