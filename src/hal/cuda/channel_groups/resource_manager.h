// The protocol of the resource manager (RM) of NVIDIA's kernel module: reads a driver's requests on the
// control device as events, makes control calls, and explains RM's answers.
//
// Numbers and layouts are those of the published modules (nvos.h, nv_escape.h, nv-ioctl.h, ctrla06c.h, …),
// from release 525 on. It has no state, and reads a request only within its declared size.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace xsched::cuda::rm {

using Handle = uint32_t;  // unique within its client

inline constexpr uint32_t kDeviceClass = 0x0080;
inline constexpr uint32_t kSubdeviceClass = 0x2080;
inline constexpr uint32_t kChannelGroupClass = 0xA06C;
constexpr bool IsClient(uint32_t c) { return c == 0x00 || c == 0x01 || c == 0x41; }
// There is one class per GPU generation. The low byte is the kind (0xC86F: Hopper's channel, 0xCBC0: its
// compute object).
constexpr bool IsChannel(uint32_t c) { return (c & 0xff) == 0x6F && c >= 0x906F && c <= 0xFFFF; }
constexpr bool IsCompute(uint32_t c) { return (c & 0xff) == 0xC0 && c >= 0x90C0 && c <= 0xFFFF; }

// A successful request of the program's driver to RM.
struct Event {
  enum class Kind {
    kNone,
    kAllocated,
    kShared,        // the object is another name for `source` of `source_client`
    kFreed,         // with everything below it; object == client: the client itself
    kScheduled,     // a channel or a group was put on the hardware's list, or taken off (!on)
    kTimesliceSet,  // of a group
  };
  Kind kind = Kind::kNone;
  Handle client = 0;
  Handle parent = 0;
  Handle object = 0;
  uint32_t object_class = 0;
  uint32_t instance = UINT32_MAX;  // of a device: RM's number of the GPU; UINT32_MAX: not given
  Handle source_client = 0;
  Handle source = 0;
  bool on = false;
};

// All requests to RM have this letter. Cheap, because it checks every ioctl of the process.
constexpr bool MayConcern(unsigned long request) { return ((request >> 8) & 0xff) == 'F'; }

// REQUIRES: the request has succeeded (the kernel has read `arg` and what it points to).
Event ReadRequest(unsigned long request, const void* arg);

// Performs a request; as ioctl(2).
using ControlCall = int (*)(int fd, unsigned long request, void* arg);
// Makes the system call directly, so that no interposed ioctl sees it.
int SystemCall(int fd, unsigned long request, void* arg);

struct Reply {
  int errnum = 0;       // the kernel refused the ioctl itself
  uint32_t status = 0;  // RM's answer; 0: done

  bool ok() const { return errnum == 0 && status == 0; }
};
inline constexpr uint32_t kInvalidArgument = 0x1F;
// The object of the call does not exist any more.
constexpr bool IsGone(uint32_t status) { return status == 0x31 || status == 0x33 || status == 0x57; }

Reply Control(ControlCall call, int fd, Handle client, Handle object, uint32_t command, void* params,
              size_t size);

// REQUIRES: !reply.ok(). `what` begins the text: "setting the timeslice".
Error Explain(const char* what, const Reply& reply);

}  // namespace xsched::cuda::rm
