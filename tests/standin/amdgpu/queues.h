// The process's hardware queues: what KFD accepts and refuses about them (rules.h).
#pragma once

#include <linux/kfd_ioctl.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>

#include "events.h"
#include "memory.h"
#include "queue.h"

namespace standin_amdgpu {

// Not thread-safe: the driver's lock is held.
class Queues {
 public:
  Queues(Memory& memory, Events& events) : memory_(memory), events_(events) {}

  int Create(kfd_ioctl_create_queue_args& args);
  int Destroy(uint32_t id);
  int Update(const kfd_ioctl_update_queue_args& args);
  int SetMask(const kfd_ioctl_set_cu_mask_args& args) const;

  bool Has(uint32_t id) const { return queues_.count(id) != 0; }
  bool empty() const { return queues_.empty(); }
  bool IsActive(uint32_t id) const;
  const void* SavedWave(uint32_t id) const;
  // Without those that copy.
  uint32_t Count() const;
  uint32_t CountActive() const;

 private:
  int Check(const kfd_ioctl_create_queue_args& args) const;
  int CheckSaveArea(const kfd_ioctl_create_queue_args& args) const;
  std::atomic<uint64_t>* Doorbell(uint32_t gpu, uint32_t id);

  Memory& memory_;
  Events& events_;
  std::map<uint32_t, std::unique_ptr<Queue>> queues_;
  std::atomic<uint64_t>* doorbells_ = nullptr;
};

}  // namespace standin_amdgpu
