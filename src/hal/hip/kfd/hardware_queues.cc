#include "hal/hip/kfd/hardware_queues.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/log.h"

namespace xsched::hip::kfd {
namespace {

// ROCr makes a queue for itself before the first one of a program, on each GPU. Its ring is the smallest that
// there is (64 packets); HIP's rings for streams have thousands.
constexpr uint32_t kSmallestRing = 4096;

struct Made {
  int count = 0;
  QueueId last = 0;

  void Add(QueueId queue) {
    ++count;
    last = queue;
  }
};

// The state of this thread between StreamCreating and StreamCreated.
struct Making {
  bool stream = false;
  Made queues;
  Made with_larger_rings;  // these of them
};
// It is small enough for the static thread-local storage of the program's start, so nothing is allocated.
[[gnu::tls_model("initial-exec")]] constinit thread_local Making making{};

// Keeps errno for the program.
class KeepErrno {
 public:
  ~KeepErrno() { errno = saved_; }

 private:
  const int saved_ = errno;
};

}  // namespace

int HardwareQueues::Perform(int fd, unsigned long request, void* argument, IoctlCall next) {
  const Request asked = ReadRequest(request, argument);
  if (asked.kind == Request::Kind::kOther) {
    // Without the lock, because some requests wait for the device.
    const int result = next(fd, request, argument);
    if (result >= 0 && !seen_.load(std::memory_order_relaxed)) seen_.store(true, std::memory_order_relaxed);
    return result;
  }
  MutexLock lock(mutex_);
  call_ = next;
  if (asked.kind == Request::Kind::kUpdate) return PerformUpdate(fd, request, argument, asked);
  const int result = next(fd, request, argument);
  if (result < 0) return result;
  KeepErrno keep;
  seen_.store(true, std::memory_order_relaxed);
  if (asked.kind == Request::Kind::kCreate) {
    Created(fd, ReadRequest(request, argument));
  } else {
    Destroyed(asked.queue);
  }
  return result;
}

int HardwareQueues::PerformUpdate(int fd, unsigned long request, void* argument, const Request& asked) {
  Queue* queue = Find(asked.queue);
  const bool stays_suspended = queue != nullptr && queue->suspended;
  const int result = stays_suspended ? Update(call_, fd, asked.queue, asked.config.Inactive())
                                     : call_(fd, request, argument);
  if (result >= 0 && queue != nullptr) queue->config = asked.config;
  return result;
}

void HardwareQueues::Created(int fd, const Request& request) {
  if (!request.compute) return;
  if (Find(request.queue) != nullptr) {
    Fail(Error::Make("KFD has given queue %u away twice", request.queue));
    Destroyed(request.queue);
  }
  struct stat info {};
  const XDevice address = DeviceOf(sysfs(), request.gpu);
  Device* device = FindDevice(address);
  if (queue_count_ == kMaxQueues || device == nullptr || fstat(fd, &info) != 0) {
    overflowed_ = true;
    return;
  }
  Queue& queue = queues_[queue_count_++];
  queue = {};
  queue.id = request.queue;
  queue.config = request.config;
  queue.file = {.fd = fd, .device = info.st_dev, .inode = info.st_ino};
  queue.device = address;
  queue.saves_waves = request.saves_waves;
  if (making.stream) {
    making.queues.Add(request.queue);
    if (request.config.ring_size > kSmallestRing) making.with_larger_rings.Add(request.queue);
  }
  if (++device->queues >= rules_.queues_until_shared) {
    device->shared = true;
    for (int i = 0; i < queue_count_; ++i) {
      if (queues_[i].device == address) queues_[i].stops = 0;
    }
  }
  ApplyTo([address](const Queue& other) { return other.device == address; });
}

void HardwareQueues::Destroyed(QueueId id) {
  Queue* queue = Find(id);
  if (queue == nullptr) return;
  if (Device* device = FindDevice(queue->device)) --device->queues;
  *queue = queues_[--queue_count_];
}

// ---- streams ----

void HardwareQueues::StreamCreating() { making = {.stream = true}; }

void HardwareQueues::StreamCreated(Stream stream) {
  const Making made = making;
  making = {};
  // Runtimes make queues for themselves as well. If it is not clear which one is the stream's, it has none.
  const Made& candidates = made.queues.count == 1 ? made.queues : made.with_larger_rings;
  if (stream == nullptr || candidates.count != 1) return;
  MutexLock lock(mutex_);
  if (Queue* queue = Find(candidates.last)) queue->stream = stream;
}

void HardwareQueues::StreamDestroying(Stream stream) {
  MutexLock lock(mutex_);
  Queue* queue = FindOf(stream);
  if (queue == nullptr) return;
  KeepErrno keep;
  // The runtime waits until the stream has finished.
  queue->stops = 0;
  ApplyTo([queue](const Queue& other) { return &other == queue; });
  queue->stream = nullptr;
}

void HardwareQueues::UseStreamRules(const StreamRules& rules) {
  MutexLock lock(mutex_);
  rules_ = rules;
}

// ---- queues and devices ----

HardwareQueues::Queue* HardwareQueues::Find(QueueId id) {
  for (int i = 0; i < queue_count_; ++i) {
    if (queues_[i].id == id) return &queues_[i];
  }
  return nullptr;
}

HardwareQueues::Queue* HardwareQueues::FindOf(Stream stream) {
  for (int i = 0; i < queue_count_; ++i) {
    if (stream != nullptr && queues_[i].stream == stream) return &queues_[i];
  }
  return nullptr;
}

HardwareQueues::Device* HardwareQueues::FindDevice(XDevice device) {
  for (int i = 0; i < device_count_; ++i) {
    if (devices_[i].device == device) return &devices_[i];
  }
  if (device_count_ == kMaxDevices) return nullptr;
  Device& added = devices_[device_count_++];
  added = {};
  added.device = device;
  return &added;
}

bool HardwareQueues::OpenFile::StillOpen() const {
  struct stat info {};
  return fstat(fd, &info) == 0 && info.st_dev == device && info.st_ino == inode;
}

// ---- support ----

Result<> HardwareQueues::CanStop(XDevice device) {
  if (failed_) return failure_;
  if (overflowed_) return Error::Make("too many hardware queues to follow them all");
  for (int i = 0; i < queue_count_; ++i) {
    // Guessing could leave queues running, or stop another GPU.
    if (queues_[i].device == 0) return Error::Make("which GPU queue %u is on is not known", queues_[i].id);
    if (queues_[i].device == device && !queues_[i].saves_waves) {
      return Error::Make("queue %u has no memory for what runs when it is taken off", queues_[i].id);
    }
  }
  return {};
}

Result<> HardwareQueues::DeviceSupport(XDevice device) {
  KeepErrno keep;
  if (!seen_.load(std::memory_order_relaxed)) {
    return Error::Make(
        "no request to /dev/kfd has come by: XSched's shim is not preloaded, or came after the runtime");
  }
  if (!SavesWaves(sysfs())) {
    return Error::Make("amdgpu was loaded with cwsr_enable=0: what runs cannot be taken off the GPU");
  }
  if (!HasDevice(sysfs(), device)) {
    return Error::Make("%s/class/kfd/kfd/topology does not name this GPU", sysfs());
  }
  MutexLock lock(mutex_);
  return CanStop(WholeDevice(device));
}

Result<> HardwareQueues::CanStopStream(Stream stream) {
  const Queue* queue = FindOf(stream);
  const Device* device = queue == nullptr ? nullptr : FindDevice(queue->device);
  if (device == nullptr || device->shared || !rules_.keep_their_queues) {
    return Error::Make(
        "the stream may share its hardware queue: give GPU_MAX_HW_QUEUES more than the process uses, and set "
        "DEBUG_HIP_DYNAMIC_QUEUES=0");
  }
  return CanStop(queue->device);
}

Result<> HardwareQueues::StreamSupport(Stream stream) {
  MutexLock lock(mutex_);
  return CanStopStream(stream);
}

// ---- suspending and resuming ----

bool HardwareQueues::WantsSuspended(const Queue& queue) {
  if (failed_) return false;
  const Device* device = FindDevice(queue.device);
  return queue.stops > 0 || (device != nullptr && device->stops > 0);
}

Result<> HardwareQueues::Apply(Queue& queue) {
  const bool suspend = WantsSuspended(queue);
  if (suspend == queue.suspended) return {};
  const char* what = suspend ? "suspending" : "resuming";
  if (!queue.file.StillOpen()) {
    return Error::Make("%s hardware queue %u: the program has closed /dev/kfd", what, queue.id);
  }
  const QueueConfig config = suspend ? queue.config.Inactive() : queue.config;
  if (Update(call_, queue.file.fd, queue.id, config) < 0) {
    // KFD may have kept what was asked for, and may take the queue off the hardware now or later. So the
    // queue counts as suspended until a request to resume it has succeeded.
    queue.suspended = true;
    return Error::FromErrno(errno, "%s hardware queue %u", what, queue.id);
  }
  queue.suspended = suspend;
  return {};
}

// False: a request failed. Then nothing is suspended any more.
template <typename Which>
bool HardwareQueues::ApplyTo(Which&& which) {
  for (int i = 0; i < queue_count_; ++i) {
    if (!which(queues_[i])) continue;
    if (Result<> done = Apply(queues_[i]); !done) {
      Fail(done.error());
      return false;
    }
  }
  return !failed_;
}

void HardwareQueues::Fail(const Error& error) {
  if (!failed_) {
    failed_ = true;
    failure_ = error;
    XSCHED_WARN("%s: HIP runs with preemption level 1 from now on", error.text());
  }
  for (int i = 0; i < queue_count_; ++i) {
    Result<> resumed = Apply(queues_[i]);
    if (resumed || stuck_) continue;
    stuck_ = true;
    XSCHED_ERROR("%s: what is on it may never end", resumed.error().text());
  }
}

bool HardwareQueues::StopDevice(XDevice device) {
  const XDevice whole = WholeDevice(device);
  MutexLock lock(mutex_);
  KeepErrno keep;
  Device* gpu = FindDevice(whole);
  if (gpu == nullptr || !CanStop(whole)) return false;
  ++gpu->stops;
  if (ApplyTo([whole](const Queue& queue) { return queue.device == whole; })) return true;
  --gpu->stops;
  return false;
}

bool HardwareQueues::LetDeviceGo(XDevice device) {
  const XDevice whole = WholeDevice(device);
  MutexLock lock(mutex_);
  KeepErrno keep;
  Device* gpu = FindDevice(whole);
  if (gpu != nullptr && gpu->stops > 0) --gpu->stops;
  // After a failure, what could not be resumed is tried again.
  const bool all = failed_;
  return ApplyTo([all, whole](const Queue& queue) { return all || queue.device == whole; });
}

bool HardwareQueues::StopStream(Stream stream) {
  MutexLock lock(mutex_);
  KeepErrno keep;
  if (!CanStopStream(stream)) return false;
  Queue* queue = FindOf(stream);
  ++queue->stops;
  if (ApplyTo([queue](const Queue& other) { return &other == queue; })) return true;
  --queue->stops;
  return false;
}

bool HardwareQueues::LetStreamGo(Stream stream) {
  MutexLock lock(mutex_);
  KeepErrno keep;
  Queue* queue = FindOf(stream);
  // The stream may have lost its queue meanwhile, and the queue's count of stops with it.
  if (queue != nullptr && queue->stops > 0) --queue->stops;
  const bool all = failed_;
  return ApplyTo([all, queue](const Queue& other) { return all || &other == queue; });
}

void HardwareQueues::ForgetAfterFork() {
  mutex_.ResetAfterFork();
  queue_count_ = device_count_ = 0;
  overflowed_ = failed_ = stuck_ = false;
  seen_.store(false, std::memory_order_relaxed);
  making = {};
}

}  // namespace xsched::hip::kfd
