// This process's hardware queues for compute, of AMD's GPUs: found by performing the runtime's own requests
// to KFD, and suspended and resumed by requests of our own (levels 2 and 3). What runs on a suspended queue
// is saved and goes on later (CWSR). Queues that copy only are left alone.
//
// Not run on AMD hardware so far: what is here follows KFD's published interface, and tests hold it to that
// over a KFD of their own.
//
//   active --Stop…, while anybody wants it--> suspended --the last Let…Go--> active
//   either --KFD refuses anything--> active for good: nothing is stopped any more
//
// Acts on queues of this process only, and needs no privilege beyond what the runtime has. Thread-safe. A
// request, the program's as well as ours, is made with the lock held: KFD's order is then that of our table.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/mutex.h"
#include "base/result.h"
#include "hal/hip/kfd/requests.h"
#include "hal/hip/kfd/sysfs.h"
#include "xsched/types.h"

namespace xsched::hip::kfd {

// How a runtime gives its streams hardware queues, as the environment tells it.
struct StreamRules {
  // Streams share queues when a device has so many (per priority, and runtime instance).
  int queues_until_shared = 0;
  bool keep_their_queues = false;  // a stream stays where it was made
};

class HardwareQueues {
 public:
  using Stream = const void*;  // a handle: only a name here

  constexpr HardwareQueues() = default;
  explicit HardwareQueues(const char* sysfs) : sysfs_(sysfs) {}  // for tests

  // Performs a program's request that MayConcern, by `next`; our own requests go there, too.
  int Perform(int fd, unsigned long request, void* argument, IoctlCall next);

  // Around the making of a stream on this thread: a queue that is made meanwhile is that stream's.
  void StreamCreating();
  void StreamCreated(Stream stream);
  void StreamDestroying(Stream stream);
  void UseStreamRules(const StreamRules& rules);

  // Can all of the process be stopped on `device`? An error says why not.
  Result<> DeviceSupport(XDevice device);
  // Can `stream` be stopped by itself: has it a hardware queue of its own?
  Result<> StreamSupport(Stream stream);

  // Stops what is of this process on `device`, queues that are still to come included; counted. False:
  // nothing has been stopped.
  bool StopDevice(XDevice device);
  bool LetDeviceGo(XDevice device);
  bool StopStream(Stream stream);
  bool LetStreamGo(Stream stream);

  // A child has no queues, and KFD takes none of its requests for its parent's.
  void ForgetAfterFork();

 private:
  static constexpr int kMaxQueues = 1024;  // KFD's own limit for a process
  static constexpr int kMaxDevices = 64;

  // All of this is zero at first, so that it takes no room in the library's file.
  struct OpenFile {
    int fd = 0;  // the program's
    uint64_t device = 0;
    uint64_t inode = 0;

    bool StillOpen() const;
  };
  struct Queue {
    QueueId id = 0;
    QueueConfig config;  // as the program wants it
    OpenFile file;
    XDevice device = 0;  // 0: not known
    bool saves_waves = false;
    bool suspended = false;   // by us
    Stream stream = nullptr;  // null: of none, or of one that is not known
    int stops = 0;            // of that stream
  };
  struct Device {
    XDevice device = 0;
    int stops = 0;
    int queues = 0;
    bool shared = false;  // streams may have been given the same queue
  };

  // All of these: REQUIRES mutex_.
  Queue* Find(QueueId id);
  Queue* FindOf(Stream stream);
  Device* FindDevice(XDevice device);  // null: too many
  void Created(int fd, const Request& request);
  void Destroyed(QueueId id);
  int PerformUpdate(int fd, unsigned long request, void* argument, const Request& asked);
  Result<> CanStop(XDevice device);
  Result<> CanStopStream(Stream stream);
  bool WantsSuspended(const Queue& queue);
  Result<> Apply(Queue& queue);
  template <typename Which>
  bool ApplyTo(Which&& which);
  void Fail(const Error& error);

  const char* sysfs() const { return sysfs_ == nullptr ? kSysfs : sysfs_; }

  const char* sysfs_ = nullptr;
  Mutex mutex_;
  IoctlCall call_ = nullptr;
  std::atomic<bool> seen_{false};  // requests to KFD come by here
  StreamRules rules_;
  int queue_count_ = 0;
  int device_count_ = 0;
  bool overflowed_ = false;
  bool failed_ = false;
  bool stuck_ = false;  // … and something is still suspended: said so
  Error failure_;
  Queue queues_[kMaxQueues] = {};
  Device devices_[kMaxDevices] = {};
};

}  // namespace xsched::hip::kfd
