// This process's compute queues on AMD's GPUs. They are found by performing the runtime's own requests to
// KFD, and suspended and resumed by our own requests (levels 2 and 3). Running work of a suspended queue is
// saved and continues later (CWSR). Queues that only copy are not touched.
//
// Not run on AMD hardware so far. The code follows KFD's published interface, and tests check it over a fake
// KFD.
//
//   active --the first Stop…--> suspended --the last Let…Go--> active
//   either --KFD refuses a request--> active forever: nothing is stopped any more
//
// Acts only on queues of this process, and needs no privilege beyond the runtime's. Thread-safe. Requests of
// the program and our own are made with the lock held, so that KFD's order is the order of our table.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/mutex.h"
#include "base/pci_device.h"
#include "base/result.h"
#include "hal/hip/kfd/requests.h"
#include "hal/hip/kfd/sysfs.h"
#include "xsched/types.h"

namespace xsched::hip::kfd {

// How a runtime assigns hardware queues to its streams, by the environment.
struct StreamRules {
  // Streams share queues when a device has this many (per priority, and runtime instance).
  int queues_until_shared = 0;
  bool keep_their_queues = false;  // a stream stays on the queue of its creation
};

class HardwareQueues {
 public:
  using Stream = const void*;  // a handle, used only as a name

  constexpr HardwareQueues() = default;
  explicit HardwareQueues(const char* sysfs) : sysfs_(sysfs) {}  // for tests

  // Performs a request of the program by `next`, if MayConcern is true for it. Our own requests use `next` as
  // well.
  int Perform(int fd, unsigned long request, void* argument, IoctlCall next);

  // Call these before and after this thread makes a stream. A queue that is made in between belongs to that
  // stream.
  void StreamCreating();
  void StreamCreated(Stream stream);
  void StreamDestroying(Stream stream);
  void UseStreamRules(const StreamRules& rules);

  // In the following, a part of a divided GPU means the whole GPU: older runtimes do not say which part it
  // is.

  // Ok: all of the process can be stopped on `device`. An error says why not.
  Result<> DeviceSupport(XDevice device);
  // Ok: `stream` can be stopped by itself, because it has its own hardware queue. An error says why not.
  Result<> StreamSupport(Stream stream);

  // Stops this process's queues on `device`, also later ones. Calls are counted. False: nothing was stopped.
  bool StopDevice(XDevice device);
  bool LetDeviceGo(XDevice device);
  bool StopStream(Stream stream);
  bool LetStreamGo(Stream stream);

  // A child has no queues, and KFD accepts no requests of it for its parent's.
  void ForgetAfterFork();

 private:
  static constexpr int kMaxQueues = 1024;  // KFD's own limit for a process
  static constexpr int kMaxDevices = 64;

  // All members are zero at first, so that they take no room in the library's file.
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
    XDevice device = 0;  // a whole GPU; 0: not known
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

  Queue* Find(QueueId id) REQUIRES(mutex_);
  Queue* FindOf(Stream stream) REQUIRES(mutex_);
  Device* FindDevice(XDevice device) REQUIRES(mutex_);  // null: too many
  void Created(int fd, const Request& request) REQUIRES(mutex_);
  void Destroyed(QueueId id) REQUIRES(mutex_);
  int PerformUpdate(int fd, unsigned long request, void* argument, const Request& asked) REQUIRES(mutex_);
  Result<> CanStop(XDevice device) REQUIRES(mutex_);
  Result<> CanStopStream(Stream stream) REQUIRES(mutex_);
  bool WantsSuspended(const Queue& queue) REQUIRES(mutex_);
  Result<> Apply(Queue& queue) REQUIRES(mutex_);
  template <typename Which>
  bool ApplyTo(Which&& which) REQUIRES(mutex_);
  void Fail(const Error& error) REQUIRES(mutex_);

  const char* sysfs() const { return sysfs_ == nullptr ? kSysfs : sysfs_; }

  const char* sysfs_ = nullptr;
  std::atomic<bool> seen_{false};  // requests to KFD pass through here

  Mutex<LockRank::kKfdQueues> mutex_;
  IoctlCall call_ GUARDED_BY(mutex_) = nullptr;
  StreamRules rules_ GUARDED_BY(mutex_);
  int queue_count_ GUARDED_BY(mutex_) = 0;
  int device_count_ GUARDED_BY(mutex_) = 0;
  bool overflowed_ GUARDED_BY(mutex_) = false;
  bool failed_ GUARDED_BY(mutex_) = false;
  bool stuck_ GUARDED_BY(mutex_) = false;  // after a failure, something is still suspended; it was logged
  Error failure_ GUARDED_BY(mutex_);
  Queue queues_[kMaxQueues] GUARDED_BY(mutex_) = {};
  Device devices_[kMaxDevices] GUARDED_BY(mutex_) = {};
};

}  // namespace xsched::hip::kfd
