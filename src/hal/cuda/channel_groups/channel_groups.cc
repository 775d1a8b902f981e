#include "hal/cuda/channel_groups/channel_groups.h"

#include <errno.h>
#include <pthread.h>

#include <algorithm>

#include "base/fork_handler.h"
#include "base/lock_order.h"
#include "base/no_destroy.h"
#include "base/pci_address.h"
#include "hal/cuda/channel_groups/mps.h"

namespace xsched::cuda {
namespace {

// NVA06C_CTRL_CMD_…
constexpr uint32_t kSetTimeslice = 0xA06C0103;
constexpr uint32_t kGetTimeslice = 0xA06C0104;
// NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS
constexpr uint32_t kDisableChannels = 0x2080110B;
// NV2080_CTRL_CMD_GPU_GET_ID, NV0000_CTRL_CMD_GPU_GET_PCI_INFO
constexpr uint32_t kGetGpuId = 0x20800142;
constexpr uint32_t kGetPciInfo = 0x21B;

struct DisableChannelsParams {
  static constexpr uint32_t kMaxChannels = 64;

  uint8_t disable;
  uint32_t count;
  uint8_t only_scheduling;
  uint8_t rewind_put;
  alignas(8) uint64_t preempt_event;
  rm::Handle clients[kMaxChannels];
  rm::Handle channels[kMaxChannels];
};
static_assert(sizeof(DisableChannelsParams) == 536);

struct PciInfoParams {
  uint32_t gpu_id;
  uint32_t domain;
  uint16_t bus;
  uint16_t slot;
};
static_assert(sizeof(PciInfoParams) == 12);

const Object* FindIn(std::span<const Object> objects, rm::Handle client, rm::Handle handle) {
  for (const Object& object : objects) {
    if (object.client == client && object.handle == handle) return &object;
  }
  return nullptr;
}

bool IsChild(const Object& object, const Object& parent) {
  return object.client == parent.client && object.parent == parent.handle;
}

bool HasCompute(std::span<const Object> objects, const Object& channel) {
  return std::any_of(objects.begin(), objects.end(), [&](const Object& object) {
    return IsChild(object, channel) && rm::IsCompute(object.object_class);
  });
}

// The nearest device above `group`; null: none was seen.
const Object* DeviceOf(std::span<const Object> objects, const Object& group) {
  const Object* object = &group;
  // Bounded by the table's length, in case the reported parents form a cycle.
  for (size_t i = 0; i < objects.size(); ++i) {
    object = FindIn(objects, object->client, object->parent);
    if (object == nullptr || object->object_class == rm::kDeviceClass) return object;
  }
  return nullptr;
}

const Object* SubdeviceOf(std::span<const Object> objects, const Object& device) {
  for (const Object& object : objects) {
    if (IsChild(object, device) && object.object_class == rm::kSubdeviceClass) return &object;
  }
  return nullptr;
}

constinit NoDestroy<ChannelGroups> own_groups;

constinit ForkHandler fork_handler = {.in_child = [] { own_groups->AfterForkInChild(); },
                                      .before = [] { own_groups->BeforeFork(); },
                                      .in_parent = [] { own_groups->AfterForkInParent(); }};

// Reads as many of the group's channels as fit into one request, after the first `skip`. Returns the
// subdevice's handle; 0: something is not known.
rm::Handle ReadChannels(std::span<const Object> objects, const ChannelGroup& group, size_t skip,
                        DisableChannelsParams* params) {
  const Object* itself = FindIn(objects, group.client, group.handle);
  const Object* device = itself == nullptr ? nullptr : DeviceOf(objects, *itself);
  const Object* subdevice = device == nullptr ? nullptr : SubdeviceOf(objects, *device);
  if (subdevice == nullptr) return 0;
  params->count = 0;
  for (const Object& channel : objects) {
    if (!IsChild(channel, *itself) || !rm::IsChannel(channel.object_class)) continue;
    if (skip != 0) {
      --skip;
      continue;
    }
    params->clients[params->count] = channel.client;
    params->channels[params->count++] = channel.handle;
    if (params->count == DisableChannelsParams::kMaxChannels) break;
  }
  return subdevice->handle;
}

}  // namespace

struct ChannelGroups::Placed {
  ChannelGroup group;
  rm::Handle device = 0;     // 0: not seen
  rm::Handle subdevice = 0;  // 0: not seen
  XDevice address = 0;       // 0: not asked yet
};

void ChannelGroups::Observe(int fd, unsigned long request, const void* arg, int result) {
  if (result < 0) return;
  const rm::Event event = rm::ReadRequest(request, arg);
  if (event.kind == rm::Event::Kind::kNone) return;
  const int saved = errno;
  // Relaxed: only this thread can have stored its own id.
  if (forking_.load(std::memory_order_relaxed) == pthread_self()) {
    mutex_.AssertHeld();
    Apply(event, fd);
  } else {
    MutexLock lock(mutex_);
    Apply(event, fd);
  }
  errno = saved;
}

void ChannelGroups::Apply(const rm::Event& event, int fd) {
  if (table_.Apply(event, fd)) Changed();
}

// Release: a thread that sees the new number also sees the table as it is now (under the lock).
void ChannelGroups::Changed() { changes_.fetch_add(1, std::memory_order_release); }

bool ChannelGroups::FindGroups(Array<Placed>* out) {
  MutexLock lock(mutex_);
  const std::span<const Object> objects = table_.objects();
  for (const Object& group : objects) {
    if (group.object_class != rm::kChannelGroupClass) continue;
    bool compute = false;
    bool scheduled = group.scheduled;
    for (const Object& channel : objects) {
      if (!IsChild(channel, group) || !rm::IsChannel(channel.object_class)) continue;
      compute = compute || HasCompute(objects, channel);
      scheduled = scheduled || channel.scheduled;
    }
    if (!compute) continue;
    Placed placed{.group = {.client = group.client, .handle = group.handle, .scheduled = scheduled}};
    if (const Object* device = DeviceOf(objects, group)) {
      placed.device = device->handle;
      placed.address = device->address;
      if (const Object* subdevice = SubdeviceOf(objects, *device)) placed.subdevice = subdevice->handle;
    }
    if (!out->Push(placed)) return false;
  }
  return true;
}

Result<XDevice> ChannelGroups::AskAddress(const Placed& placed) {
  if (placed.subdevice == 0) {
    return Error::Make("which GPU a channel group is on: its subdevice was made before XSched could see it");
  }
  const rm::Handle client = placed.group.client;
  uint32_t gpu_id = 0;
  rm::Reply reply = Control(client, placed.subdevice, kGetGpuId, &gpu_id, sizeof gpu_id);
  if (!reply.ok()) return rm::Explain("asking for the GPU's id", reply);
  PciInfoParams pci{.gpu_id = gpu_id};
  reply = Control(client, client, kGetPciInfo, &pci, sizeof pci);
  if (!reply.ok()) return rm::Explain("asking for the GPU's PCI address", reply);
  const XDevice address = MakeDevice(kDeviceTypeGPU, PciAddress(pci.domain, pci.bus, pci.slot, 0));
  MutexLock lock(mutex_);
  if (Object* device = table_.Find(client, placed.device)) device->address = address;
  return address;
}

// All devices of the table are one GPU, by RM's number for it.
bool ChannelGroups::HasOneGpu() {
  MutexLock lock(mutex_);
  uint32_t instance = UINT32_MAX;
  for (const Object& object : table_.objects()) {
    if (object.object_class != rm::kDeviceClass) continue;
    if (object.instance == UINT32_MAX) return false;
    if (instance != UINT32_MAX && object.instance != instance) return false;
    instance = object.instance;
  }
  return instance != UINT32_MAX;
}

Result<Array<ChannelGroup>> ChannelGroups::OfDevice(XDevice instance) {
  // A process uses one instance of a divided GPU at most.
  const XDevice device = WholeDevice(instance);
  Array<Placed> all;
  Array<ChannelGroup> found;
  if (!FindGroups(&all) || !found.Reserve(all.size())) return Error::Make("out of memory");
  for (Placed& placed : all) {
    if (placed.address == 0) {
      Result<XDevice> address = AskAddress(placed);
      if (address) {
        placed.address = *address;
      } else if (HasOneGpu()) {
        placed.address = device;
      } else {
        // Guessing could stop the work of another GPU.
        return address.error();
      }
    }
    if (placed.address == device && !found.Push(placed.group)) return Error::Make("out of memory");
  }
  return found;
}

rm::Reply ChannelGroups::Control(rm::Handle client, rm::Handle object, uint32_t command, void* params,
                                 size_t size) {
  int file = -1;
  {
    MutexLock lock(mutex_);
    file = table_.Use(client);
  }
  if (file < 0) return {.errnum = EBADF};
  lock_order::CheckCall(Calls::kKernel);
  const rm::Reply reply =
      rm::Control(control_call_.load(std::memory_order_acquire), file, client, object, command, params, size);
  MutexLock lock(mutex_);
  table_.Release(file);
  return reply;
}

Result<> ChannelGroups::SetTimeslice(const ChannelGroup& group, std::chrono::microseconds timeslice,
                                     bool* accepted) {
  uint64_t wanted = static_cast<uint64_t>(timeslice.count());
  rm::Reply reply = Control(group.client, group.handle, kSetTimeslice, &wanted, sizeof wanted);
  if (accepted != nullptr) *accepted = reply.ok();
  if (!reply.ok()) return rm::Explain("setting the timeslice", reply);
  Result<std::chrono::microseconds> now = GetTimeslice(group);
  if (!now) return now.error();
  if (*now != timeslice) {
    return Error::Make("setting the timeslice: %lld us were accepted, but it reads back as %lld us",
                       static_cast<long long>(timeslice.count()), static_cast<long long>(now->count()));
  }
  return {};
}

Result<std::chrono::microseconds> ChannelGroups::GetTimeslice(const ChannelGroup& group) {
  uint64_t timeslice = 0;
  rm::Reply reply = Control(group.client, group.handle, kGetTimeslice, &timeslice, sizeof timeslice);
  if (!reply.ok()) return rm::Explain("reading the timeslice", reply);
  return std::chrono::microseconds(timeslice);
}

Result<> ChannelGroups::SetRunning(const ChannelGroup& group, bool run) {
  const char* what = run ? "enabling the channels" : "disabling the channels";
  size_t done = 0;
  Result<> result;
  do {
    DisableChannelsParams params{};
    params.disable = !run;
    rm::Handle subdevice = 0;
    {
      MutexLock lock(mutex_);
      subdevice = ReadChannels(table_.objects(), group, done, &params);
    }
    if (subdevice == 0) return Error::Make("%s: their group or its device is not known", what);
    if (done == 0 && params.count == 0) return Error::Make("%s: the group has none", what);
    if (params.count == 0) break;
    rm::Reply reply = Control(group.client, subdevice, kDisableChannels, &params, sizeof params);
    // Go on: the other channels must change nevertheless.
    if (!reply.ok() && result) result = rm::Explain(what, reply);
    done += params.count;
  } while (done % DisableChannelsParams::kMaxChannels == 0);
  return result;
}

bool ChannelGroups::IsGone(const ChannelGroup& group) {
  {
    MutexLock lock(mutex_);
    if (table_.Find(group.client, group.handle) == nullptr) return true;
  }
  uint64_t timeslice = 0;
  const rm::Reply reply = Control(group.client, group.handle, kGetTimeslice, &timeslice, sizeof timeslice);
  return reply.errnum == 0 && rm::IsGone(reply.status);
}

Result<> ChannelGroups::Level3Support(XDevice device) {
  if (MpsSocket mps = FindMpsSocket(); mps.found) {
    return Error::Make(
        "under MPS (%.120s) all programs share one context, and stopping it would stop them all", mps.path);
  }
  Result<Array<ChannelGroup>> groups = OfDevice(device);
  if (!groups) return groups.error();
  if (groups->empty()) {
    bool complete = true;
    {
      MutexLock lock(mutex_);
      complete = table_.complete();
    }
    if (!complete) return Error::Make("too many objects of the resource manager to follow them all");
    return Error::Make(
        "no channel group seen yet: there is no CUDA context on this GPU, or XSched came after it");
  }
  Result<std::chrono::microseconds> timeslice = GetTimeslice((*groups)[0]);
  if (!timeslice) return timeslice.error();
  return {};
}

void ChannelGroups::BeforeFork() {
  mutex_.Lock();
  forking_.store(pthread_self(), std::memory_order_relaxed);
}

void ChannelGroups::AfterForkInParent() {
  forking_.store(0, std::memory_order_relaxed);
  mutex_.Unlock();
}

void ChannelGroups::AfterForkInChild() {
  mutex_.ResetAfterFork();
  table_.Clear();
  Changed();
  forking_.store(0, std::memory_order_relaxed);
}

ChannelGroups& OwnChannelGroups() { return *own_groups; }

void ObserveRequest(int fd, unsigned long request, const void* arg, int result) {
  fork_handler.Install();
  own_groups->Observe(fd, request, arg, result);
}

}  // namespace xsched::cuda
