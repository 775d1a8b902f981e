#include "hal/cuda/channel_groups/resource_manager.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace xsched::cuda::rm {
namespace {

enum Escape : uint32_t {
  kFree = 0x29,
  kControl = 0x2A,
  kAlloc = 0x2B,
  kDupObject = 0x34,
  kTransfer = 211,  // contains another request, whose size may be too large for an ioctl's number
};

struct FreeRequest {  // NVOS00
  Handle client;
  Handle parent;
  Handle object;
  uint32_t status;
};

struct AllocRequest {  // NVOS21
  Handle client;
  Handle parent;
  Handle object;
  uint32_t object_class;
  uint64_t params;
  uint32_t params_size;
  uint32_t status;
};
static_assert(sizeof(AllocRequest) == 32);

struct AllocWithRightsRequest {  // NVOS64
  Handle client;
  Handle parent;
  Handle object;
  uint32_t object_class;
  uint64_t params;
  uint64_t rights;
  uint32_t params_size;
  uint32_t flags;
  uint32_t status;
};
static_assert(sizeof(AllocWithRightsRequest) == 48);
constexpr uint32_t kFlagSerialized = 1;  // the parameters have NVIDIA's own packed format

struct ControlRequest {  // NVOS54
  Handle client;
  Handle object;
  uint32_t command;
  uint32_t flags;
  uint64_t params;
  uint32_t params_size;
  uint32_t status;
};
static_assert(sizeof(ControlRequest) == 32);

struct DupRequest {  // NVOS55
  Handle client;
  Handle parent;
  Handle object;
  Handle source_client;
  Handle source;
  uint32_t flags;
  uint32_t status;
};
static_assert(sizeof(DupRequest) == 28);

struct TransferRequest {  // nv_ioctl_xfer_t
  uint32_t escape;
  uint32_t size;
  uint64_t request;
};
static_assert(sizeof(TransferRequest) == 16);

constexpr uint32_t kGroupSchedule = 0xA06C0101;
constexpr uint32_t kGroupSetTimeslice = 0xA06C0103;
constexpr uint32_t kChannelSchedule = 0xA06F0103;

// The program owns `arg`: it need not be aligned.
template <typename Request>
bool Read(const void* arg, size_t size, Request* request) {
  if (size != sizeof(Request)) return false;
  memcpy(request, arg, sizeof(Request));
  return true;
}

const void* Pointer(uint64_t address) { return reinterpret_cast<const void*>(address); }

template <typename Request>
Event ReadAlloc(const Request& request, bool readable) {
  if (request.status != 0) return {};
  Event event{.kind = Event::Kind::kAllocated,
              .client = request.client,
              .parent = request.parent,
              .object = request.object,
              .object_class = request.object_class};
  const bool told = readable && request.params != 0 && request.params_size >= sizeof event.instance;
  if (request.object_class == kDeviceClass && told) {
    memcpy(&event.instance, Pointer(request.params), sizeof event.instance);
  }
  return event;
}

Event ReadControl(const ControlRequest& request) {
  if (request.status != 0) return {};
  Event event{.client = request.client, .object = request.object};
  switch (request.command) {
    case kGroupSetTimeslice:
      event.kind = Event::Kind::kTimesliceSet;
      return event;
    case kGroupSchedule:
    case kChannelSchedule: {
      if (request.params == 0 || request.params_size == 0) return {};
      uint8_t on = 0;
      memcpy(&on, Pointer(request.params), sizeof on);
      event.kind = Event::Kind::kScheduled;
      event.on = on != 0;
      return event;
    }
    default:
      return {};
  }
}

Event ReadEscape(uint32_t escape, size_t size, const void* arg) {
  switch (escape) {
    case kAlloc: {
      if (AllocRequest request; Read(arg, size, &request)) return ReadAlloc(request, true);
      if (AllocWithRightsRequest request; Read(arg, size, &request)) {
        return ReadAlloc(request, (request.flags & kFlagSerialized) == 0);
      }
      return {};
    }
    case kFree: {
      FreeRequest request;
      if (!Read(arg, size, &request) || request.status != 0) return {};
      return {.kind = Event::Kind::kFreed, .client = request.client, .object = request.object};
    }
    case kDupObject: {
      DupRequest request;
      if (!Read(arg, size, &request) || request.status != 0) return {};
      return {.kind = Event::Kind::kShared,
              .client = request.client,
              .parent = request.parent,
              .object = request.object,
              .source_client = request.source_client,
              .source = request.source};
    }
    case kControl: {
      ControlRequest request;
      return Read(arg, size, &request) ? ReadControl(request) : Event{};
    }
    default:
      return {};
  }
}

const char* Meaning(uint32_t status) {
  switch (status) {
    case 0x0F:
      return "the GPU is lost";
    case 0x1B:
      return "not permitted to this process";
    case 0x1F:
    case 0x3A:
    case 0x3B:
      return "this driver wants other arguments";
    case 0x23:
      return "it does not take this open file for the client's";
    case 0x31:
    case 0x33:
    case 0x57:
      return "the channel group is gone";
    case 0x40:
      return "not in this state of the channel group";
    case 0x55:
    case 0x03:
    case 0x66:
      return "busy; later perhaps";
    case 0x56:
      return "not supported by this driver or GPU";
    case 0x62:
      return "the GPU needs a reset";
    case 0x65:
      return "the GPU did not do it in time";
    default:
      return "see nvstatuscodes.h of the driver";
  }
}

}  // namespace

Event ReadRequest(unsigned long request, const void* arg) {
  // The kernel checks only the number and the size, not the direction.
  const uint32_t escape = _IOC_NR(request);
  const size_t size = _IOC_SIZE(request);
  if (!MayConcern(request) || arg == nullptr) return {};
  if (escape != kTransfer) return ReadEscape(escape, size, arg);
  TransferRequest transfer;
  if (!Read(arg, size, &transfer) || transfer.request == 0) return {};
  return ReadEscape(transfer.escape, transfer.size, Pointer(transfer.request));
}

int SystemCall(int fd, unsigned long request, void* arg) {
  return static_cast<int>(syscall(SYS_ioctl, fd, request, arg));
}

Reply Control(ControlCall call, int fd, Handle client, Handle object, uint32_t command, void* params,
              size_t size) {
  ControlRequest request{.client = client,
                         .object = object,
                         .command = command,
                         .flags = 0,
                         .params = reinterpret_cast<uint64_t>(params),
                         .params_size = static_cast<uint32_t>(size),
                         .status = 0};
  const int saved = errno;
  int result = 0;
  do {
    result = call(fd, _IOWR('F', kControl, ControlRequest), &request);
  } while (result < 0 && errno == EINTR);
  Reply reply{.errnum = result < 0 ? errno : 0, .status = request.status};
  errno = saved;
  return reply;
}

Error Explain(const char* what, const Reply& reply) {
  if (reply.errnum != 0) {
    return Error::FromErrno(reply.errnum, "%s: the resource manager's device refused the call", what);
  }
  return Error::Make("%s: the resource manager answered 0x%x: %s", what, reply.status, Meaning(reply.status));
}

}  // namespace xsched::cuda::rm
