#include "shim/cuda/capture.h"

#include "base/mutex.h"
#include "base/no_destroy.h"
#include "base/pointer_map.h"
#include "shim/cuda/driver.h"
#include "shim/cuda/fork.h"
#include "shim/cuda/stream_key.h"

namespace xsched::cuda {

constinit std::atomic<uint32_t> captures{0};

namespace {

struct Capture {};
constinit Capture under_way;
// The streams on which a capture was begun, by their keys.
constinit NoDestroy<PointerMap<Capture>> origins;
constinit Mutex mutex;  // makes `captures` the number of `origins`

void Add(uint64_t key) {
  if (key == 0) return;
  static constinit ForkHandler fork_handler = {[] {
    mutex.ResetAfterFork();
    origins->ResetAfterFork();
  }};
  fork_handler.Install();
  MutexLock lock(mutex);
  const bool was_there = origins->Remove(key) != nullptr;
  // Where there is no memory to remember it, it stays counted.
  origins->Insert(key, &under_way);
  if (!was_there) captures.fetch_add(1, std::memory_order_release);
}

void Remove(uint64_t key) {
  if (key == 0) return;
  MutexLock lock(mutex);
  if (origins->Remove(key) != nullptr) captures.fetch_sub(1, std::memory_order_release);
}

}  // namespace

bool AskWhetherCapturing(CUstream stream) {
  const Functions& next = Driver();
  if (next.cuStreamIsCapturing == nullptr) return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  // An error: the legacy stream, while a stream that it waits for is capturing.
  return next.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

// Before the call: no command may slip in between.
CaptureBegin::CaptureBegin(CUstream stream) : key_(KeyOf(stream)) { Add(key_); }

void CaptureBegin::Finish(CUresult result) {
  if (result != CUDA_SUCCESS) Remove(key_);
}

// A capture that went wrong ends with an error; one that another thread must end does not end.
void CaptureEnd::Finish(CUresult result) {
  if (result == CUDA_SUCCESS || !AskWhetherCapturing(stream_)) Remove(KeyOf(stream_));
}

}  // namespace xsched::cuda
