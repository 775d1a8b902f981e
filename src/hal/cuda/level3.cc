#include "hal/cuda/level3.h"

#include <pthread.h>
#include <stdio.h>

#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "hal/cuda/channel_groups/channel_groups.h"
#include "hal/cuda/device.h"
#include "hal/cuda/runtime.h"
#include "preempt/launch.h"

namespace xsched::cuda {
namespace {

using std::chrono::microseconds;

constexpr int kMaxDevices = 64;
// What drivers have of themselves, should it not be known (H200, driver 580).
constexpr microseconds kDriversSlice{2048};

struct DeviceState {
  XDevice device;
  int interrupted;  // queues of this process that want it stopped
  bool taken_off;   // by the scheduler: another process has its turn
  uint64_t slice_us;
  microseconds drivers_slice;
  uint64_t seen_changes;
  bool told;
};

constinit Mutex mutex;  // control calls are made under it, so that they come in order
constinit int device_count = 0;
constinit DeviceState devices[kMaxDevices] = {};

// REQUIRES: mutex. Null: too many.
DeviceState* Of(XDevice device) {
  for (int i = 0; i < device_count; ++i) {
    if (devices[i].device == device) return &devices[i];
  }
  if (device_count == kMaxDevices) return nullptr;
  DeviceState& state = devices[device_count++];
  state = DeviceState{};
  state.device = device;
  state.drivers_slice = kDriversSlice;
  return &state;
}

// Calls `act` for each of the process's compute groups on the device. False: one failed; the first failure is
// logged.
template <typename Act>
bool ForEachGroup(XDevice device, const char* what, Act&& act) {
  Result<Array<ChannelGroup>> groups = OwnChannelGroups().OfDevice(device);
  if (!groups) {
    XSCHED_WARN("%s: %s", what, groups.error().text());
    return false;
  }
  bool ok = true;
  for (const ChannelGroup& group : *groups) {
    Result<> done = act(group);
    if (!done && ok) XSCHED_WARN("%s: %s", what, done.error().text());
    ok &= static_cast<bool>(done);
  }
  return ok;
}

// REQUIRES: mutex.
bool SetSlices(DeviceState& state) {
  // Before the calls: what changes meanwhile is done again.
  state.seen_changes = OwnChannelGroups().changes();
  microseconds slice = state.slice_us == 0 ? state.drivers_slice : microseconds(state.slice_us);
  return ForEachGroup(state.device, "cannot set the GPU's time slices", [slice](const ChannelGroup& group) {
    return OwnChannelGroups().SetTimeslice(group, slice);
  });
}

// REQUIRES: mutex.
bool Stop(const DeviceState& state) {
  return ForEachGroup(state.device, "cannot stop what runs on the GPU",
                      [](const ChannelGroup& group) { return OwnChannelGroups().SetRunning(group, false); });
}

// REQUIRES: mutex.
bool GoOn(const DeviceState& state) {
  // Whoever else wants it stopped has the last word.
  if (state.interrupted != 0 || state.taken_off) return true;
  return ForEachGroup(state.device, "cannot let the GPU go on",
                      [](const ChannelGroup& group) { return OwnChannelGroups().SetRunning(group, true); });
}

XResult TakeOff(DeviceState& state) {
  if (!state.taken_off) state.taken_off = Stop(state);
  return state.taken_off ? kXSchedSuccess : kXSchedErrorHardware;
}

XResult SetSlice(XDevice device, uint64_t slice_us) {
  MutexLock lock(mutex);
  DeviceState* state = Of(device);
  if (state == nullptr) return kXSchedErrorNotSupported;
  if (slice_us == kSliceNone) return TakeOff(*state);
  if (std::exchange(state->taken_off, false)) {
    GoOn(*state);
    // Off and on again is what happens often; the slice is still there.
    if (slice_us == state->slice_us) return kXSchedSuccess;
  }
  if (state->slice_us == 0) {
    // To be able to give it back.
    Result<Array<ChannelGroup>> groups = OwnChannelGroups().OfDevice(device);
    if (groups && !groups->empty()) {
      Result<microseconds> drivers = OwnChannelGroups().GetTimeslice((*groups)[0]);
      if (drivers && drivers->count() > 0) state->drivers_slice = *drivers;
    }
  }
  state->slice_us = slice_us;
  return SetSlices(*state) ? kXSchedSuccess : kXSchedErrorHardware;
}

// A driver may set its own slices later in a context's making, and new contexts have groups of their own.
void Refresh() {
  MutexLock lock(mutex);
  const uint64_t changes = OwnChannelGroups().changes();
  for (int i = 0; i < device_count; ++i) {
    if (devices[i].slice_us != 0 && devices[i].seen_changes != changes) SetSlices(devices[i]);
  }
}

void InstallOnce() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] {
    pthread_atfork(nullptr, nullptr, [] {
      mutex.ResetAfterFork();
      device_count = 0;
    });
    XProcessOps ops{};
    ops.size = sizeof ops;
    ops.set_slice = SetSlice;
    ops.refresh = Refresh;
    ProcessOpsRegister(&ops);
  });
}

}  // namespace

bool QueueMade(XDevice device) {
  InstallOnce();
  Result<> support = OwnChannelGroups().Level3Support(device);
  MutexLock lock(mutex);
  DeviceState* state = Of(device);
  if (state == nullptr) return false;
  if (!support && !state->told) {
    XSCHED_INFO("CUDA runs with preemption level 2 at most: %s", support.error().text());
    state->told = true;
  }
  return static_cast<bool>(support);
}

XResult InterruptQueue(XDevice device) {
  MutexLock lock(mutex);
  DeviceState* state = Of(device);
  if (state == nullptr) return kXSchedErrorNotSupported;
  if (++state->interrupted > 1 || Stop(*state)) return kXSchedSuccess;
  --state->interrupted;
  GoOn(*state);
  return kXSchedErrorHardware;
}

XResult RestoreQueue(XDevice device) {
  MutexLock lock(mutex);
  DeviceState* state = Of(device);
  if (state == nullptr) return kXSchedErrorNotSupported;
  if (--state->interrupted > 0 || GoOn(*state)) return kXSchedSuccess;
  return kXSchedErrorHardware;
}

}  // namespace xsched::cuda

void CudaExplainLevel3(char* text, size_t size) {
  using namespace xsched::cuda;
  xsched::preempt::ReentrancyGuard guard;
  const Functions* next = FindRuntime();
  DeviceIdentity identity;
  if (next == nullptr || !IdentifyCurrentDevice(*next, &identity)) {
    snprintf(text, size, "no CUDA context is current");
    return;
  }
  xsched::Result<> support = OwnChannelGroups().Level3Support(identity.device);
  snprintf(text, size, "%s", support ? "" : support.error().text());
}
