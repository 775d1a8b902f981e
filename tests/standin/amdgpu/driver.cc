#include "driver.h"

#include <errno.h>
#include <linux/kfd_ioctl.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "clock.h"
#include "events.h"
#include "files.h"
#include "gpus.h"
#include "kernels.h"
#include "memory.h"
#include "newer_kfd.h"
#include "queues.h"
#include "requests.h"

namespace standin_amdgpu {
namespace {

constexpr uint32_t kMajorVersion = 1;
constexpr uint32_t kMinorVersion = 14;  // with kRuntimeEnable and the ages of events

// Where each GPU sees local and private memory: kfd_flat_memory.c, for GFX 9.
constexpr uint64_t kLds = uint64_t{1} << 48, kScratch = uint64_t{2} << 48, kAperture = 0xffffffff;
constexpr uint64_t kLowest = 0x1000000, kHighest = (uint64_t{1} << 47) - 1;

// No request is longer, but for those whose length depends on what they say.
constexpr size_t kLongestArguments = 512;

constexpr unsigned Number(unsigned long request) { return _IOC_NR(request); }

class Driver {
 public:
  int Perform(unsigned number, void* argument);

  std::mutex& mutex() { return mutex_; }
  Queues& queues() { return queues_; }
  Requests& requests() { return requests_; }

 private:
  int PerformOnQueue(unsigned number, void* argument);
  int DoOnQueue(unsigned number, void* argument);
  int CreateEvent(kfd_ioctl_create_event_args& args);
  int EnableRuntime(const RuntimeEnable& args);

  std::mutex mutex_;
  Memory memory_;
  Events events_;
  Queues queues_{memory_, events_};
  Requests requests_;
};

Driver& TheDriver() {
  static auto* const driver = new Driver;
  return *driver;
}

int TellVersion(kfd_ioctl_get_version_args& args) {
  args = {kMajorVersion, kMinorVersion};
  return 0;
}

int TellClocks(kfd_ioctl_get_clock_counters_args& args) {
  args.gpu_clock_counter = GpuClock();
  args.cpu_clock_counter = Nanoseconds(CLOCK_MONOTONIC_RAW);
  args.system_clock_counter = Nanoseconds(CLOCK_BOOTTIME);
  args.system_clock_freq = 1'000'000'000;
  return 0;
}

int TellApertures(kfd_ioctl_get_process_apertures_new_args& args) {
  auto* apertures = reinterpret_cast<kfd_process_device_apertures*>(args.kfd_process_device_apertures_ptr);
  const uint32_t count = args.num_of_nodes == 0 ? CountGpus() : std::min(args.num_of_nodes, CountGpus());
  for (uint32_t i = 0; args.num_of_nodes != 0 && i < count; ++i) {
    apertures[i] = {.lds_base = kLds,
                    .lds_limit = kLds + kAperture,
                    .scratch_base = kScratch,
                    .scratch_limit = kScratch + kAperture,
                    .gpuvm_base = kLowest,
                    .gpuvm_limit = kHighest,
                    .gpu_id = kFirstGpuId + i,
                    .pad = 0};
  }
  args.num_of_nodes = count;
  return 0;
}

int AcquireVm(const kfd_ioctl_acquire_vm_args& args) {
  const DeviceFile file = Identify(static_cast<int>(args.drm_fd));
  return file.kind == FileKind::kRender && kFirstGpuId + file.index == args.gpu_id ? 0 : EINVAL;
}

int SetXnack(kfd_ioctl_set_xnack_mode_args& args) {
  if (args.xnack_enabled > 0) return EPERM;
  args.xnack_enabled = 0;
  return 0;
}

template <typename Arguments>
Arguments& As(void* argument) {
  return *static_cast<Arguments*>(argument);
}

int Driver::CreateEvent(kfd_ioctl_create_event_args& args) {
  // The first time, the buffer in which ROCr has the slots of its events.
  if (args.event_page_offset != 0 && !memory_.Has(args.event_page_offset)) return EINVAL;
  return events_.Create(args);
}

int Driver::EnableRuntime(const RuntimeEnable& args) {
  constexpr uint32_t kEnable = 1;
  if ((args.mode_mask & kEnable) != 0 && queues_.Count() > 0) return EEXIST;
  UseCodeObjectsOf((args.mode_mask & kEnable) != 0 ? args.r_debug : 0);
  return 0;
}

int Driver::DoOnQueue(unsigned number, void* argument) {
  switch (number) {
    case Number(AMDKFD_IOC_CREATE_QUEUE):
      return queues_.Create(As<kfd_ioctl_create_queue_args>(argument));
    case Number(AMDKFD_IOC_DESTROY_QUEUE):
      return queues_.Destroy(As<kfd_ioctl_destroy_queue_args>(argument).queue_id);
    default:
      return queues_.Update(As<kfd_ioctl_update_queue_args>(argument));
  }
}

int Driver::PerformOnQueue(unsigned number, void* argument) {
  const Requests::Fault fault = requests_.NextFault(number);
  const bool refused = fault.error != 0 && !fault.takes_effect;
  const int done = refused ? 0 : DoOnQueue(number, argument);
  const int error = fault.error != 0 ? fault.error : done;
  requests_.Record(number, argument, error);
  return error;
}

int Driver::Perform(unsigned number, void* argument) {
  // It waits, so it has a lock of its own.
  if (number == Number(AMDKFD_IOC_WAIT_EVENTS)) return events_.Wait(As<kfd_ioctl_wait_events_args>(argument));
  std::lock_guard lock(mutex_);
  switch (number) {
    case Number(AMDKFD_IOC_GET_VERSION):
      return TellVersion(As<kfd_ioctl_get_version_args>(argument));
    case Number(AMDKFD_IOC_GET_CLOCK_COUNTERS):
      return TellClocks(As<kfd_ioctl_get_clock_counters_args>(argument));
    case Number(AMDKFD_IOC_GET_PROCESS_APERTURES_NEW):
      return TellApertures(As<kfd_ioctl_get_process_apertures_new_args>(argument));
    case Number(AMDKFD_IOC_ACQUIRE_VM):
      return AcquireVm(As<kfd_ioctl_acquire_vm_args>(argument));

    case Number(AMDKFD_IOC_ALLOC_MEMORY_OF_GPU):
      return memory_.Allocate(As<kfd_ioctl_alloc_memory_of_gpu_args>(argument));
    case Number(AMDKFD_IOC_FREE_MEMORY_OF_GPU):
      return memory_.Free(As<kfd_ioctl_free_memory_of_gpu_args>(argument));
    case Number(AMDKFD_IOC_MAP_MEMORY_TO_GPU):
      return memory_.Map(As<kfd_ioctl_map_memory_to_gpu_args>(argument));
    case Number(AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU):
      return memory_.Unmap(As<kfd_ioctl_unmap_memory_from_gpu_args>(argument));
    case Number(AMDKFD_IOC_AVAILABLE_MEMORY):
      return memory_.Available(As<kfd_ioctl_get_available_memory_args>(argument));
    case Number(AMDKFD_IOC_SVM):
      return memory_.SetRange(As<kfd_ioctl_svm_args>(argument));

    case Number(AMDKFD_IOC_CREATE_EVENT):
      return CreateEvent(As<kfd_ioctl_create_event_args>(argument));
    case Number(AMDKFD_IOC_DESTROY_EVENT):
      return events_.Destroy(As<kfd_ioctl_destroy_event_args>(argument).event_id);
    case Number(AMDKFD_IOC_SET_EVENT):
      return events_.Set(As<kfd_ioctl_set_event_args>(argument).event_id);
    case Number(AMDKFD_IOC_RESET_EVENT):
      return events_.Reset(As<kfd_ioctl_reset_event_args>(argument).event_id);

    case Number(AMDKFD_IOC_CREATE_QUEUE):
    case Number(AMDKFD_IOC_DESTROY_QUEUE):
    case Number(AMDKFD_IOC_UPDATE_QUEUE):
      return PerformOnQueue(number, argument);
    case Number(AMDKFD_IOC_SET_CU_MASK):
      return queues_.SetMask(As<kfd_ioctl_set_cu_mask_args>(argument));

    case Number(AMDKFD_IOC_SET_XNACK_MODE):
      return SetXnack(As<kfd_ioctl_set_xnack_mode_args>(argument));
    case kRuntimeEnable:
      return EnableRuntime(As<RuntimeEnable>(argument));
    // Settings that change nothing here.
    case Number(AMDKFD_IOC_SET_MEMORY_POLICY):
    case Number(AMDKFD_IOC_SET_SCRATCH_BACKING_VA):
    case Number(AMDKFD_IOC_SET_TRAP_HANDLER):
    case Number(AMDKFD_IOC_ALLOC_QUEUE_GWS):
      return 0;
    default:
      return EINVAL;
  }
}

}  // namespace

int PerformKfd(unsigned long request, void* argument) {
  // As the kernel does: programs may know shorter or longer arguments than the driver. What is missing is 0.
  if (argument == nullptr) return EFAULT;
  const size_t size = _IOC_SIZE(request);
  std::vector<uint64_t> copy(std::max(size, kLongestArguments) / sizeof(uint64_t) + 1);
  std::memcpy(copy.data(), argument, size);
  const int error = TheDriver().Perform(Number(request), copy.data());
  std::memcpy(argument, copy.data(), size);
  return error;
}

}  // namespace standin_amdgpu

using standin_amdgpu::TheDriver;

uint32_t standin_amdgpu_queues() {
  std::lock_guard lock(TheDriver().mutex());
  return TheDriver().queues().Count();
}
uint32_t standin_amdgpu_active_queues() {
  std::lock_guard lock(TheDriver().mutex());
  return TheDriver().queues().CountActive();
}
int standin_amdgpu_active(uint32_t id) {
  std::lock_guard lock(TheDriver().mutex());
  return TheDriver().queues().IsActive(id);
}
const void* standin_amdgpu_saved_wave(uint32_t id) {
  std::lock_guard lock(TheDriver().mutex());
  return TheDriver().queues().SavedWave(id);
}
void standin_amdgpu_fail(unsigned request, int nth, int count, int error, int how) {
  std::lock_guard lock(TheDriver().mutex());
  TheDriver().requests().Fail(request, nth, count, {error, how == kStandinAmdgpuTakesEffect});
}
size_t standin_amdgpu_take_record(char* text, size_t size) {
  std::lock_guard lock(TheDriver().mutex());
  return static_cast<size_t>(std::snprintf(text, size, "%s", TheDriver().requests().TakeRecord().c_str()));
}
