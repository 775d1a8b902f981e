#include "rm.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "rm_abi.h"

namespace standin::rm {
namespace {

// The objects of this process. They have their own lock, because code that watches the ioctls may call the
// driver.
struct Objects {
  std::mutex mutex;
  int control = -1;
  uint32_t client = 0;
  uint32_t next_handle = 0x5c000001;
  std::map<int, uint32_t> devices;
  std::map<uint64_t, std::vector<uint32_t>> of_context;  // in the order in which they are freed
  std::map<uint32_t, uint32_t> parents;
};
Objects& TheObjects() {
  static auto* const objects = new Objects;
  return *objects;
}

// Allocates an object, `large`: with the larger request. 0: refused.
uint32_t Allocate(Objects& all, uint32_t parent, uint32_t object_class, bool large,
                  void* parameters = nullptr, uint32_t size = 0) {
  const uint32_t handle = all.next_handle++;
  uint32_t status = 1;
  if (large) {
    Alloc64 a{all.client, parent, handle, object_class, reinterpret_cast<uint64_t>(parameters), 0, size,
              0,          1,      0};
    if (ioctl(all.control, Request<Alloc64>(kAlloc), &a) == 0) status = a.status;
  } else {
    Alloc21 a{all.client, parent, handle, object_class, reinterpret_cast<uint64_t>(parameters), size, 1};
    if (ioctl(all.control, Request<Alloc21>(kAlloc), &a) == 0) status = a.status;
  }
  if (status != kOk) return 0;
  all.parents[handle] = parent;
  return handle;
}

// The control device, and the client on it: once a process.
bool Open(Objects& all) {
  if (all.client != 0) return true;
  const char* file = std::getenv("STANDIN_CUDA_CONTROL");
  if (file == nullptr) return false;
  if (all.control < 0) all.control = open(file, O_RDWR | O_CLOEXEC);
  if (all.control < 0) return false;
  Alloc21 a{0, 0, 0, kClassRootClient, 0, 0, 1};
  if (ioctl(all.control, Request<Alloc21>(kAlloc), &a) != 0 || a.status != kOk) return false;
  all.client = a.object;
  return true;
}

uint32_t DeviceObject(Objects& all, int ordinal) {
  uint32_t& device = all.devices[ordinal];
  if (device == 0) {
    DeviceParameters parameters{static_cast<uint32_t>(ordinal), {}};
    device = Allocate(all, all.client, kClassDevice, false, &parameters, sizeof(parameters));
    Allocate(all, device, kClassSubdevice, false);
  }
  return device;
}

void FreeObject(Objects& all, uint32_t object) {
  Free f{all.client, all.parents[object], object, 1};
  ioctl(all.control, Request<Free>(kFree), &f);
  all.parents.erase(object);
}

}  // namespace

// One group for compute, of eight channels, one of which has a compute object already; three for copies.
void ContextCreated(uint64_t context, int ordinal) {
  Objects& all = TheObjects();
  std::lock_guard lock(all.mutex);
  if (!Open(all)) return;
  const uint32_t device = DeviceObject(all, ordinal);
  std::vector<uint32_t> freed;
  for (int i = 0; i < 3; ++i) {
    const uint32_t group = Allocate(all, device, kClassGroup, true);
    Allocate(all, Allocate(all, group, kClassChannel, true), kClassCopy, false);
    freed.push_back(group);  // everything in it is freed with it
  }
  const uint32_t group = Allocate(all, device, kClassGroup, true);
  for (int i = 0; i < 8; ++i) {
    const uint32_t channel = Allocate(all, group, kClassChannel, true);
    if (i == 0) freed.push_back(Allocate(all, channel, kClassCompute, false));
    freed.push_back(channel);
  }
  freed.push_back(group);
  all.of_context[context] = std::move(freed);
}

void ContextDestroyed(uint64_t context) {
  Objects& all = TheObjects();
  std::lock_guard lock(all.mutex);
  const auto found = all.of_context.find(context);
  if (found == all.of_context.end()) return;
  for (uint32_t object : found->second) FreeObject(all, object);
  all.of_context.erase(found);
}

}  // namespace standin::rm
