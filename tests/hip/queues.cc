#include "queues.h"

#include "hal/hip/stream_key.h"
#include "preempt/api/launch.h"
#include "xsched/hip/hal.h"

namespace xsched::hip {
namespace {

constexpr int kInstances = 4;
constexpr uint64_t kThreads = 64;

}  // namespace

bool HasQueue(uint64_t key) { return preempt::FindXQueue(kPlatformHIP, key) != nullptr; }

uint64_t Commands(uint64_t key) {
  preempt::XQueue* queue = preempt::FindXQueue(kPlatformHIP, key);
  return queue == nullptr ? 0 : preempt::SubmittedNow(queue);
}

uint64_t NullStreamCommands(int device) {
  uint64_t sum = 0;
  for (int instance = 0; instance < kInstances; ++instance) sum += Commands(NullStreamKey(instance, device));
  return sum;
}

uint64_t PerThreadStreamCommands(int device) {
  uint64_t sum = 0;
  for (int instance = 0; instance < kInstances; ++instance) {
    for (uint64_t thread = 0; thread < kThreads; ++thread)
      sum += Commands(PerThreadStreamKey(instance, device, thread));
  }
  return sum;
}

XQueueHandle QueueOf(void* stream) {
  HwQueueHandle hwq = 0;
  XQueueHandle queue = 0;
  if (HipQueueGet(&hwq, static_cast<hipStream_t>(stream)) != kXSchedSuccess) return 0;
  return XQueueGet(&queue, hwq) == kXSchedSuccess ? queue : 0;
}

}  // namespace xsched::hip
