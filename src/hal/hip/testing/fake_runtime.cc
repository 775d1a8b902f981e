// A HIP runtime without a device: streams whose commands finish when the test says so. It has the name of
// AMD's and the functions that the HAL calls. It keeps a last error per thread that every call overwrites,
// and has two devices, as AMD's would. Like ROCm 7 it takes another instance's stream for one of its own;
// only hipGetStreamDeviceId and hipStreamDestroy look it up.
#include "hal/hip/testing/fake_runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <utility>

#define EXPORT extern "C" __attribute__((visibility("default")))

struct ihipStream_t {
  int device;
  uint64_t launched = 0;
  uint64_t finished = 0;
  bool capturing = false;
  bool spoiled = false;  // its capture is invalid
};

struct ihipEvent_t {
  int device;
  hipStream_t stream = nullptr;  // null: not recorded
  uint64_t after = 0;
};

namespace {

constexpr int kDevices = 2;

std::mutex mutex;
std::condition_variable changed;
// Never destroyed: a program may end without destroying its own.
auto& streams = *new std::set<hipStream_t>;
auto& events = *new std::set<hipEvent_t>;
ihipStream_t default_streams[kDevices] = {{0}, {1}};
int spoiled = 0;  // captures
bool finish_at_once = false;
std::atomic<uint64_t> calls{0};
int version = 60'443'482;
int null_waits = 0;
int thread_streams = 0;
int orphans = 0;

// As AMD's: the first call of a thread makes it, and it ends before the values of pthread keys.
struct Thread {
  int device = 0;
  hipError_t last_error = hipSuccess;
  hipStream_t own[kDevices] = {};  // its default streams; null: not made yet

  ~Thread();
};
thread_local Thread this_thread;

// As AMD's, it has objects that end with the process. Whoever calls it after that crashes.
struct Lifetime {
  std::atomic<int> last_us{0};
  std::atomic<bool> ended{false};
  ~Lifetime() {
    ended = true;
    usleep(last_us);
  }
} lifetime;

hipError_t Return(hipError_t error) {
  if (lifetime.ended) abort();
  ++calls;
  return this_thread.last_error = error;
}

bool IsValid(hipStream_t stream) { return streams.count(stream) != 0; }
bool IsDefault(hipStream_t stream) { return reinterpret_cast<uintptr_t>(stream) <= 2; }
// REQUIRES: mutex. The handle 0 makes the null stream wait for blocking streams, and these for it.
void CountNullWait(hipStream_t stream) { null_waits += stream == nullptr; }
// REQUIRES: mutex.
hipStream_t Actual(hipStream_t stream) {
  if (stream != kHipStreamPerThread) return IsDefault(stream) ? &default_streams[this_thread.device] : stream;
  hipStream_t& own = this_thread.own[this_thread.device];
  if (own == nullptr) {
    streams.insert(own = new ihipStream_t{this_thread.device});
    ++thread_streams;
  }
  return own;
}
Thread::~Thread() {
  std::lock_guard lock(mutex);
  for (hipStream_t stream : own) {
    for (hipEvent_t event : events) orphans += stream != nullptr && event->stream == stream;
    streams.erase(stream);
    delete stream;
  }
}
void Spoil(hipStream_t stream) {
  stream->spoiled = true;
  ++spoiled;
}

}  // namespace

EXPORT hipError_t hipGetDeviceCount(int* count) {
  *count = kDevices;
  return Return(hipSuccess);
}

EXPORT hipError_t hipGetDevice(int* device) {
  *device = this_thread.device;
  return Return(hipSuccess);
}

EXPORT hipError_t hipSetDevice(int device) {
  if (device < 0 || device >= kDevices) return Return(hipErrorInvalidDevice);
  this_thread.device = device;
  return Return(hipSuccess);
}

EXPORT hipError_t hipRuntimeGetVersion(int* out) {
  std::lock_guard lock(mutex);
  *out = version;
  return Return(hipSuccess);
}

EXPORT hipError_t hipDeviceGetPCIBusId(char* text, int size, int device) {
  if (device < 0 || device >= kDevices) return Return(hipErrorInvalidDevice);
  snprintf(text, size, "0000:%02x:00.0", 0xc1 + device);
  return Return(hipSuccess);
}

EXPORT hipError_t hipDeviceGetName(char* text, int size, hipDevice_t device) {
  snprintf(text, size, "Fake GPU %d", device);
  return Return(hipSuccess);
}

EXPORT hipError_t hipGetLastError() {
  ++calls;
  hipError_t error = this_thread.last_error;
  this_thread.last_error = hipSuccess;
  return error;
}

EXPORT hipError_t hipPeekAtLastError() { return this_thread.last_error; }

EXPORT hipError_t hipStreamCreate(hipStream_t* stream) {
  std::lock_guard lock(mutex);
  *stream = new ihipStream_t{this_thread.device};
  streams.insert(*stream);
  return Return(hipSuccess);
}

EXPORT hipError_t hipStreamDestroy(hipStream_t stream) {
  std::lock_guard lock(mutex);
  if (!IsValid(stream)) return Return(hipErrorContextIsDestroyed);
  streams.erase(stream);
  delete stream;
  return Return(hipSuccess);
}

EXPORT int hipGetStreamDeviceId(hipStream_t stream) {
  std::lock_guard lock(mutex);
  const bool known = IsDefault(stream) || IsValid(stream);
  Return(known ? hipSuccess : hipErrorContextIsDestroyed);
  return known ? Actual(stream)->device : -1;
}

EXPORT hipError_t hipStreamGetFlags(hipStream_t, unsigned* flags) {
  if (flags == nullptr) return Return(hipErrorInvalidValue);
  *flags = 0;
  return Return(hipSuccess);
}

EXPORT hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus* status) {
  std::lock_guard lock(mutex);
  hipStream_t actual = Actual(stream);
  if (status == nullptr) return Return(hipErrorInvalidValue);
  *status = actual->capturing ? hipStreamCaptureStatusActive : hipStreamCaptureStatusNone;
  return Return(hipSuccess);
}

EXPORT hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode* mode) {
  thread_local hipStreamCaptureMode current = hipStreamCaptureModeGlobal;
  hipStreamCaptureMode before = current;
  current = *mode;
  *mode = before;
  return Return(hipSuccess);
}

EXPORT hipError_t hipStreamQuery(hipStream_t stream) {
  std::lock_guard lock(mutex);
  // As some builds of 6.3.
  if (stream == kHipStreamLegacy && version < 60'400'000) abort();
  CountNullWait(stream);
  hipStream_t actual = Actual(stream);
  if (actual->capturing) {
    Spoil(actual);
    return Return(hipErrorStreamCaptureUnsupported);
  }
  return Return(actual->finished < actual->launched ? hipErrorNotReady : hipSuccess);
}

EXPORT hipError_t hipStreamSynchronize(hipStream_t stream) {
  std::unique_lock lock(mutex);
  hipStream_t actual = Actual(stream);
  if (actual->capturing) {
    Spoil(actual);
    return Return(hipErrorStreamCaptureUnsupported);
  }
  const uint64_t newest = actual->launched;
  changed.wait(lock, [&] { return actual->finished >= newest; });
  return Return(hipSuccess);
}

EXPORT hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned) {
  std::lock_guard lock(mutex);
  *event = new ihipEvent_t{this_thread.device};
  events.insert(*event);
  return Return(hipSuccess);
}

EXPORT hipError_t hipEventDestroy(hipEvent_t event) {
  std::lock_guard lock(mutex);
  if (events.erase(event) == 0) return Return(hipErrorInvalidHandle);
  delete event;
  return Return(hipSuccess);
}

EXPORT hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  std::lock_guard lock(mutex);
  CountNullWait(stream);
  hipStream_t actual = Actual(stream);
  if (events.count(event) == 0 || event->device != actual->device) return Return(hipErrorInvalidHandle);
  if (actual->capturing) Spoil(actual);
  event->stream = actual;
  event->after = actual->launched;
  return Return(hipSuccess);
}

EXPORT hipError_t hipEventQuery(hipEvent_t event) {
  std::lock_guard lock(mutex);
  if (events.count(event) == 0) return Return(hipErrorInvalidHandle);
  // A stream that is gone has finished.
  const hipStream_t stream = event->stream;
  const bool there = stream == &default_streams[event->device] || IsValid(stream);
  // As in ROCm 6.2 to 7.1, also if it was recorded before the capture.
  if (there && stream->capturing) {
    Spoil(stream);
    return Return(hipErrorCapturedEvent);
  }
  return Return(there && stream->finished < event->after ? hipErrorNotReady : hipSuccess);
}

EXPORT hipError_t FakeLaunch(hipStream_t stream) {
  std::lock_guard lock(mutex);
  hipStream_t actual = Actual(stream);
  if (actual->capturing) return Return(hipSuccess);  // recorded, and not run
  ++actual->launched;
  if (finish_at_once) actual->finished = actual->launched;
  return Return(hipSuccess);
}

EXPORT void FakeFinish(hipStream_t stream, uint64_t count) {
  std::lock_guard lock(mutex);
  Actual(stream)->finished += count;
  changed.notify_all();
}

EXPORT void FakeFinishAtOnce() {
  std::lock_guard lock(mutex);
  finish_at_once = true;
}

EXPORT uint64_t FakeLaunched(hipStream_t stream) {
  std::lock_guard lock(mutex);
  return Actual(stream)->launched;
}

EXPORT hipError_t FakeCapture(hipStream_t stream, int capturing) {
  std::lock_guard lock(mutex);
  hipStream_t actual = Actual(stream);
  actual->capturing = capturing != 0;
  const bool valid = !std::exchange(actual->spoiled, false);
  return Return(valid ? hipSuccess : hipErrorStreamCaptureInvalidated);
}

EXPORT int FakeSpoiled() {
  std::lock_guard lock(mutex);
  return spoiled;
}

EXPORT void FakeSetVersion(int of_runtime) {
  std::lock_guard lock(mutex);
  version = of_runtime;
}

EXPORT void FakeEndSlowly() { lifetime.last_us = 50'000; }

EXPORT int FakeThreadStreams() {
  std::lock_guard lock(mutex);
  return thread_streams;
}

EXPORT int FakeNullWaits() {
  std::lock_guard lock(mutex);
  return null_waits;
}

EXPORT int FakeOrphans() {
  std::lock_guard lock(mutex);
  return orphans;
}

EXPORT int FakeEvents() {
  std::lock_guard lock(mutex);
  return static_cast<int>(events.size());
}

EXPORT uint64_t FakeCalls() { return calls; }
