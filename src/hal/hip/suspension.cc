#include "hal/hip/suspension.h"

#include <pthread.h>
#include <stdio.h>

#include <atomic>

#include "base/env.h"
#include "base/fork_handler.h"
#include "base/log.h"
#include "base/no_destroy.h"
#include "hal/hip/device.h"
#include "hal/hip/runtime.h"
#include "preempt/api/launch.h"

namespace xsched::hip {
namespace {

// The runtime's default if its variable is not set.
constexpr int kDefaultQueues = 4;

constinit NoDestroy<kfd::HardwareQueues> own_queues;

kfd::StreamRules ReadStreamRules() {
  kfd::StreamRules rules;
  rules.queues_until_shared = static_cast<int>(EnvInt("GPU_MAX_HW_QUEUES", 1, 1024).value_or(kDefaultQueues));
  // Newer runtimes move streams between queues unless this variable forbids it. Older ones do not know the
  // variable, and never move them.
  rules.keep_their_queues = !EnvBool("DEBUG_HIP_DYNAMIC_QUEUES").value_or(true);
  return rules;
}

void Set() {
  static constinit ForkHandler handler = {[] { own_queues->ForgetAfterFork(); }};
  handler.Install();
  own_queues->UseStreamRules(ReadStreamRules());
}

void LogOnce(const Error& error) {
  static std::atomic<bool> told{false};
  if (!told.exchange(true)) XSCHED_INFO("HIP runs with preemption level 1: %s", error.text());
}

Result<> TryToStop(XDevice device) {
  kfd::HardwareQueues& queues = OwnHardwareQueues();
  if (Result<> support = queues.DeviceSupport(device); !support) return support;
  const bool stopped = queues.StopDevice(device);
  return stopped && queues.LetDeviceGo(device) ? Result<>() : queues.DeviceSupport(device);
}

}  // namespace

XPreemptLevel MostLevel() {
  static std::atomic<XPreemptLevel> known{kPreemptLevelUnknown};
  XPreemptLevel level = known.load(std::memory_order_relaxed);
  if (level == kPreemptLevelUnknown) {
    level = static_cast<XPreemptLevel>(
        EnvInt("XSCHED_HIP_LEVEL", kPreemptLevelBlock, kPreemptLevelInterrupt).value_or(kPreemptLevelBlock));
    known.store(level, std::memory_order_relaxed);
  }
  return level;
}

kfd::HardwareQueues& OwnHardwareQueues() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, Set);
  return *own_queues;
}

Suspension SuspensionOf(XDevice device, hipStream_t stream) {
  if (MostLevel() == kPreemptLevelBlock) return Suspension::kNone;
  kfd::HardwareQueues& queues = OwnHardwareQueues();
  Result<> support = queues.DeviceSupport(device);
  if (support) {
    support = queues.StreamSupport(stream);
    if (support) return Suspension::kStream;
    if (MostLevel() == kPreemptLevelInterrupt) return Suspension::kProcess;
  }
  LogOnce(support.error());
  return Suspension::kNone;
}

}  // namespace xsched::hip

int HipTryLevels(char* why_no_more, size_t size) {
  using namespace xsched::hip;
  xsched::preempt::ReentrancyGuard guard;
  why_no_more[0] = '\0';
  if (MostLevel() == kPreemptLevelBlock) {
    snprintf(why_no_more, size,
             "XSCHED_HIP_LEVEL=3 turns levels 2 and 3 on, which have not been run on AMD hardware");
    return kPreemptLevelBlock;
  }
  const Runtime* runtime = DefaultRuntime();
  DeviceIdentity identity;
  int device = 0;
  if (runtime == nullptr || runtime->next().hipGetDevice(&device) != hipSuccess ||
      !IdentifyDevice(runtime->next(), device, &identity)) {
    snprintf(why_no_more, size, "the runtime does not say which GPU this is");
    return kPreemptLevelBlock;
  }
  if (xsched::Result<> tried = TryToStop(identity.device); !tried) {
    snprintf(why_no_more, size, "%s", tried.error().text());
    return kPreemptLevelBlock;
  }
  if (MostLevel() == kPreemptLevelDeactivate) {
    snprintf(why_no_more, size, "XSCHED_HIP_LEVEL=2 is for streams with a hardware queue of their own");
  }
  return MostLevel();
}
