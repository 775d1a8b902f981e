#include "fake_rm.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>

#include "rm_abi.h"
#include "standin.h"

namespace {

using namespace standin::rm;

struct Object {
  uint32_t parent, object_class;
  int device = 0;                // of a device object
  uint64_t timeslice_us = 1024;  // of a group
};

// The faults of one control. Disabling and enabling channels is one command, but counts as two controls.
struct Faults {
  uint64_t refuse = 0, time_out = 0, block_us = 0;
  uint64_t refuse_calls = 0, time_out_calls = 0;

  static bool IsDue(uint64_t every, uint64_t* calls) { return every != 0 && ++*calls % every == 0; }
};
constexpr uint64_t kDisable = uint64_t{kSubdeviceDisableChannels} << 1 | 1;

uint64_t KeyOf(uint32_t command, bool disable) { return uint64_t{command} << 1 | (disable ? 1 : 0); }
uint64_t KeyOf(const Control& control) {
  const bool disable =
      control.command == kSubdeviceDisableChannels &&
      reinterpret_cast<const standin::rm::DisableChannels*>(control.parameters)->disable != 0;
  return KeyOf(control.command, disable);
}
uint64_t KeyOf(const std::string& name) {  // 0: unknown
  if (name == "disable") return kDisable;
  if (name == "enable") return KeyOf(kSubdeviceDisableChannels, false);
  if (name == "set_timeslice") return KeyOf(kGroupSetTimeslice, false);
  if (name == "get_timeslice") return KeyOf(kGroupGetTimeslice, false);
  if (!name.starts_with("0x")) return 0;
  return KeyOf(static_cast<uint32_t>(strtoul(name.c_str(), nullptr, 16)), false);
}

struct Manager {
  std::mutex mutex;
  std::map<uint32_t, Object> objects;
  std::map<uint32_t, uint32_t> answers;
  std::map<uint32_t, uint64_t> controls;
  std::map<uint64_t, Faults> faults;
  uint64_t control_us = 300;
  uint32_t next_client = 0xc1d00001;

  Manager() {
    if (const char* us = getenv("FAKE_RM_TIME_US")) control_us = strtoull(us, nullptr, 10);
    ReadFaults("FAKE_RM_REFUSE", "refuse");
    ReadFaults("FAKE_RM_TIME_OUT", "time_out");
    ReadFaults("FAKE_RM_BLOCK", "block");
  }
  void ReadFaults(const char* variable, const char* fault) {
    const char* list = getenv(variable);
    std::istringstream in(list ? list : "");
    for (std::string item; std::getline(in, item, ',');) {
      const size_t colon = item.find(':');
      if (colon == std::string::npos) continue;
      AddFault(fault, item.substr(0, colon), strtoull(item.c_str() + colon + 1, nullptr, 10));
    }
  }
  bool AddFault(const std::string& fault, const std::string& control, uint64_t n) {
    const uint64_t key = KeyOf(control);
    if (key == 0) return false;
    Faults& its = faults[key];
    if (fault == "refuse") {
      its.refuse = n, its.refuse_calls = 0;
    } else if (fault == "time_out") {
      its.time_out = n, its.time_out_calls = 0;
    } else if (fault == "block") {
      its.block_us = n;
    } else {
      return false;
    }
    return true;
  }
  std::chrono::microseconds TimeOf(const Control& control) {
    return std::chrono::microseconds(control_us + faults[KeyOf(control)].block_us);
  }
  // Returns the status for the caller, and lets the control take effect or not.
  uint32_t ActWithFaults(const Control& control) {
    Faults& its = faults[KeyOf(control)];
    if (Faults::IsDue(its.refuse, &its.refuse_calls)) return ++controls[control.command], kNotSupported;
    const uint32_t status = Act(control);
    return Faults::IsDue(its.time_out, &its.time_out_calls) && status == kOk ? kTimeout : status;
  }

  uint32_t Allocate(uint32_t parent, uint32_t* handle, uint32_t object_class, uint64_t parameters) {
    if (object_class == kClassRootClient) {
      *handle = next_client++;
    } else if (objects.count(parent) == 0 || objects.count(*handle) != 0) {
      return kInvalidObject;
    }
    Object object{parent, object_class};
    if (object_class == kClassDevice && parameters != 0) {
      object.device = static_cast<int>(reinterpret_cast<const DeviceParameters*>(parameters)->device);
    }
    if (object_class == kClassCompute) objects[objects[parent].parent].timeslice_us = 2048;
    objects[*handle] = object;
    return kOk;
  }

  // With everything below it.
  void Remove(uint32_t handle) {
    for (auto i = objects.begin(); i != objects.end();) {
      if (i->second.parent == handle && i->first != handle) {
        const uint32_t child = i->first;
        Remove(child);
        i = objects.begin();
      } else {
        ++i;
      }
    }
    objects.erase(handle);
  }

  bool IsComputeGroup(uint32_t group) const {
    return std::any_of(objects.begin(), objects.end(), [&](const auto& entry) {
      if (entry.second.object_class != kClassCompute) return false;
      const auto channel = objects.find(entry.second.parent);
      return channel != objects.end() && channel->second.parent == group;
    });
  }

  // The stand-in has one compute group per device: stopped are all of its channels, or none.
  uint32_t DisableChannels(const Object& subdevice, const Control& control) {
    if (subdevice.object_class != kClassSubdevice) return kNotSupported;
    if (control.parameters_size != sizeof(standin::rm::DisableChannels)) return kInvalidArgument;
    const auto& wanted = *reinterpret_cast<const standin::rm::DisableChannels*>(control.parameters);
    if (wanted.count > std::size(wanted.channels) || wanted.only_scheduling != 0) return kInvalidArgument;
    const int device = objects[subdevice.parent].device;
    bool compute = false;
    for (uint32_t i = 0; i < wanted.count; ++i) {
      const auto channel = objects.find(wanted.channels[i]);
      if (channel == objects.end() || channel->second.object_class != kClassChannel) return kInvalidObject;
      compute |= IsComputeGroup(channel->second.parent);
    }
    if (compute) standin_set_scheduled(device, wanted.disable == 0);
    return kOk;
  }

  // The ids match the driver's PCI addresses (properties.cc).
  static constexpr uint32_t kFirstGpuId = 0x1000;
  uint32_t GetGpuId(const Object& subdevice, const Control& control) {
    if (subdevice.object_class != kClassSubdevice) return kNotSupported;
    if (control.parameters_size != sizeof(uint32_t)) return kInvalidArgument;
    *reinterpret_cast<uint32_t*>(control.parameters) =
        kFirstGpuId + static_cast<uint32_t>(objects[subdevice.parent].device);
    return kOk;
  }
  static uint32_t GetPciInfo(const Control& control) {
    if (control.parameters_size != sizeof(PciInfo)) return kInvalidArgument;
    auto& info = *reinterpret_cast<PciInfo*>(control.parameters);
    info.domain = 0;
    info.bus = static_cast<uint16_t>(0x10 + info.gpu_id - kFirstGpuId);
    info.slot = 0;
    return kOk;
  }

  uint32_t Act(const Control& control) {
    ++controls[control.command];
    if (const auto answer = answers.find(control.command); answer != answers.end()) return answer->second;
    const auto found = objects.find(control.object);
    if (found == objects.end()) return kInvalidObject;
    if (control.command == kSubdeviceDisableChannels) return DisableChannels(found->second, control);
    if (control.command == kSubdeviceGetGpuId) return GetGpuId(found->second, control);
    if (control.command == kClientGetPciInfo) return GetPciInfo(control);
    Object& group = found->second;
    if (group.object_class != kClassGroup) return kNotSupported;
    const bool compute = IsComputeGroup(control.object);
    const int device = objects[group.parent].device;
    switch (control.command) {
      case kGroupSetTimeslice: {
        if (control.parameters_size != sizeof(uint64_t)) return kInvalidArgument;
        group.timeslice_us = *reinterpret_cast<const uint64_t*>(control.parameters);
        if (compute) standin_set_timeslice(device, group.timeslice_us);
        return kOk;
      }
      case kGroupGetTimeslice:
        if (control.parameters_size != sizeof(uint64_t)) return kInvalidArgument;
        *reinterpret_cast<uint64_t*>(control.parameters) = group.timeslice_us;
        return kOk;
      // Accepted and without effect, as in a real one.
      case kGroupSchedule:
        return control.parameters_size < 3 ? kInvalidArgument : kOk;
      case kGroupGetInfo:
        return kOk;
      default:
        return kNotSupported;
    }
  }
};

Manager& TheManager() {
  static auto* const manager = new Manager;
  return *manager;
}

template <typename T>
bool AllocateFor(unsigned long request, void* argument) {
  if (request != Request<T>(kAlloc)) return false;
  auto& a = *static_cast<T*>(argument);
  a.status = TheManager().Allocate(a.parent, &a.object, a.object_class, a.parameters);
  return true;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  if (_IOC_TYPE(request) != kMagic) return static_cast<int>(syscall(SYS_ioctl, fd, request, argument));
  std::unique_lock lock(TheManager().mutex);
  if (AllocateFor<Alloc21>(request, argument) || AllocateFor<Alloc64>(request, argument)) return 0;
  if (request == Request<Free>(kFree)) {
    auto& f = *static_cast<Free*>(argument);
    f.status = TheManager().objects.count(f.object) ? kOk : kInvalidObject;
    TheManager().Remove(f.object);
    return 0;
  }
  if (request == Request<Control>(kControl)) {
    auto& control = *static_cast<Control*>(argument);
    const auto time = TheManager().TimeOf(control);
    lock.unlock();
    std::this_thread::sleep_for(time);
    lock.lock();
    control.status = TheManager().ActWithFaults(control);
    return 0;
  }
  return static_cast<int>(syscall(SYS_ioctl, fd, request, argument));
}

void fake_rm_answer(uint32_t command, uint32_t status) {
  std::lock_guard lock(TheManager().mutex);
  if (status == kOk) {
    TheManager().answers.erase(command);
  } else {
    TheManager().answers[command] = status;
  }
}

bool fake_rm_fault(const char* fault, const char* control, uint64_t n) {
  std::lock_guard lock(TheManager().mutex);
  return TheManager().AddFault(fault, control, n);
}

uint64_t fake_rm_controls(uint32_t command) {
  std::lock_guard lock(TheManager().mutex);
  return TheManager().controls[command];
}

uint64_t fake_rm_objects(uint32_t object_class) {
  std::lock_guard lock(TheManager().mutex);
  return std::count_if(TheManager().objects.begin(), TheManager().objects.end(),
                       [&](const auto& entry) { return entry.second.object_class == object_class; });
}
}
