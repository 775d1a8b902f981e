#include "hal/cuda/level3.h"

#include <pthread.h>
#include <stdio.h>

#include <utility>

#include "base/fork_handler.h"
#include "base/log.h"
#include "base/mutex.h"
#include "hal/cuda/channel_groups/channel_groups.h"
#include "hal/cuda/device.h"
#include "hal/cuda/driver.h"
#include "preempt/api/launch.h"

namespace xsched::cuda {
namespace {

using std::chrono::microseconds;

constexpr int kMaxDevices = 64;
// The driver's own slice, used if it cannot be read (H200, driver 580).
constexpr microseconds kDriversSlice{2048};

enum class Channels : uint8_t { kOn, kOff, kUnknown };

// The wanted and the known state. Only a successful call makes the state known: a call that reports an error,
// above all a time-out, may have taken effect.
struct DeviceState {
  XDevice device;

  int interrupted;    // number of queues of this process that want it stopped
  bool taken_off;     // by the scheduler: another process has its turn
  uint64_t slice_us;  // 0: the driver's own

  Channels channels;  // of the groups at `channels_at_changes`
  uint64_t channels_at_changes;
  bool slices_set;             // the groups at `set_at_changes` have the wanted slices
  uint64_t set_at_changes;     // the count of changes before they were set
  bool ours;                   // a slice of ours may be set
  microseconds drivers_slice;  // to give back

  // The hardware rounds. If the same value reads back twice, it is the nearest possible one.
  microseconds rounded_from;
  microseconds rounded_to;

  bool failure_logged;  // since the last success
  bool support_known;   // the last answer is valid while there are no changes
  bool supported;
  uint64_t support_at_changes;
  bool support_logged;
};

constinit Mutex<LockRank::kCudaDevices> mutex;
constinit int device_count GUARDED_BY(mutex) = 0;
constinit DeviceState devices[kMaxDevices] GUARDED_BY(mutex) = {};

// Null: too many.
DeviceState* Of(XDevice device) REQUIRES(mutex) {
  for (int i = 0; i < device_count; ++i) {
    if (devices[i].device == device) return &devices[i];
  }
  if (device_count == kMaxDevices) return nullptr;
  DeviceState& state = devices[device_count++];
  state = DeviceState{};
  state.device = device;
  state.slices_set = true;
  state.drivers_slice = kDriversSlice;
  return &state;
}

void LogFailure(DeviceState& state, const char* what, const Error& error) {
  if (!std::exchange(state.failure_logged, true)) XSCHED_WARN("%s: %s; trying again", what, error.text());
}

// Calls `act` for each of the process's compute groups on the device. False: one failed that still exists.
template <typename Act>
bool ForEachGroup(DeviceState& state, const char* what, Act&& act) {
  Result<Array<ChannelGroup>> groups = OwnChannelGroups().OfDevice(state.device);
  if (!groups) {
    LogFailure(state, what, groups.error());
    return false;
  }
  bool ok = true;
  for (const ChannelGroup& group : *groups) {
    Result<> done = act(group);
    if (done || OwnChannelGroups().IsGone(group)) continue;
    LogFailure(state, what, done.error());
    ok = false;
  }
  return ok;
}

// True if the group has the slice nevertheless, as near as the hardware can set it.
bool IsRounded(DeviceState& state, const ChannelGroup& group, microseconds slice) {
  Result<microseconds> now = OwnChannelGroups().GetTimeslice(group);
  if (!now || now->count() == 0) return false;
  const bool again = state.rounded_from == slice && state.rounded_to == *now;
  state.rounded_from = slice;
  state.rounded_to = *now;
  return again;
}

// True: the channels are on or off, as wanted. Those of new groups are on. A hard stop leaves them so,
// because it ends with the first launch there.
bool SettleChannels(DeviceState& state) REQUIRES(mutex) {
  const bool off = state.interrupted != 0 || state.taken_off;
  const Channels wanted = off ? Channels::kOff : Channels::kOn;
  // Read before the calls, as in SettleSlices.
  const uint64_t changes = OwnChannelGroups().changes();
  const bool same_groups = !state.taken_off || state.channels_at_changes == changes;
  if (state.channels == wanted && same_groups) return true;
  state.channels = Channels::kUnknown;
  state.channels_at_changes = changes;
  const char* what = off ? "cannot stop what runs on the GPU" : "cannot let the GPU go on";
  if (!ForEachGroup(state, what,
                    [off](const ChannelGroup& group) { return OwnChannelGroups().SetRunning(group, !off); }))
    return false;
  state.channels = wanted;
  return true;
}

// True: the slices are as wanted. While a context is made, the driver may set its own slice later, and new
// contexts have new groups.
bool SettleSlices(DeviceState& state) REQUIRES(mutex) {
  if (!state.ours) return true;
  const uint64_t changes = OwnChannelGroups().changes();
  const bool same_groups = state.slice_us == 0 || state.set_at_changes == changes;
  if (state.slices_set && same_groups) return true;
  // Read before the calls, so that groups that change meanwhile are set again.
  state.set_at_changes = changes;
  const microseconds slice = state.slice_us == 0 ? state.drivers_slice : microseconds(state.slice_us);
  state.slices_set = ForEachGroup(state, "cannot set the GPU's time slices", [&](const ChannelGroup& group) {
    bool accepted = false;
    Result<> set = OwnChannelGroups().SetTimeslice(group, slice, &accepted);
    return !set && accepted && IsRounded(state, group, slice) ? Result<>() : set;
  });
  if (state.slices_set && state.slice_us == 0) state.ours = false;
  return state.slices_set;
}

bool Settle(DeviceState& state) REQUIRES(mutex) {
  const bool channels = SettleChannels(state);
  const bool slices = SettleSlices(state);
  if (channels && slices) state.failure_logged = false;
  return channels && slices;
}

bool SettleAll() {
  MutexLock lock(mutex);
  bool all = true;
  for (int i = 0; i < device_count; ++i) all &= Settle(devices[i]);
  return all;
}

// Reads the slice that must be given back later. REQUIRES: no slice of ours is set.
void ReadDriversSlice(DeviceState& state) REQUIRES(mutex) {
  Result<Array<ChannelGroup>> groups = OwnChannelGroups().OfDevice(state.device);
  if (!groups || groups->empty()) return;
  Result<microseconds> drivers = OwnChannelGroups().GetTimeslice((*groups)[0]);
  if (drivers && drivers->count() > 0) state.drivers_slice = *drivers;
}

XResult SetSlice(XDevice device, uint64_t slice_us) {
  MutexLock lock(mutex);
  DeviceState* state = Of(device);
  if (state == nullptr) return kXSchedErrorNotSupported;
  state->taken_off = slice_us == kSliceNone;
  // Off and on again is frequent: then the slice stays as it is.
  if (!state->taken_off && slice_us != state->slice_us) {
    if (!state->ours) ReadDriversSlice(*state);
    state->ours = true;
    state->slice_us = slice_us;
    state->slices_set = false;
  }
  return Settle(*state) ? kXSchedSuccess : kXSchedErrorHardware;
}

void InstallOnce() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] {
    static constinit ForkHandler handler = {[] {
      mutex.ResetAfterFork();
      device_count = 0;
    }};
    handler.Install();
    XProcessOps ops{};
    ops.size = sizeof ops;
    ops.set_slice = SetSlice;
    ops.refresh = [] { SettleAll(); };
    ops.settle = SettleAll;
    ProcessOpsRegister(&ops);
  });
}

}  // namespace

bool QueueMade(XDevice device) {
  InstallOnce();
  ChannelGroups& groups = OwnChannelGroups();
  // Read before the request, so that the answer is requested anew if something changes meanwhile.
  const uint64_t changes = groups.changes();
  MutexLock lock(mutex);
  DeviceState* state = Of(device);
  if (state == nullptr) return false;
  // A program makes many streams, and a request costs a round trip to the GPU.
  if (state->support_known && state->support_at_changes == changes) return state->supported;
  Result<> support = groups.Level3Support(device);
  if (!support && !std::exchange(state->support_logged, true)) {
    XSCHED_INFO("CUDA runs with preemption level 2 at most: %s", support.error().text());
  }
  state->support_known = true;
  state->supported = static_cast<bool>(support);
  state->support_at_changes = changes;
  return state->supported;
}

XResult InterruptQueue(XDevice device) {
  MutexLock lock(mutex);
  DeviceState* state = Of(device);
  if (state == nullptr) return kXSchedErrorNotSupported;
  ++state->interrupted;
  if (SettleChannels(*state)) return kXSchedSuccess;
  --state->interrupted;
  SettleChannels(*state);
  return kXSchedErrorHardware;
}

XResult RestoreQueue(XDevice device) {
  MutexLock lock(mutex);
  DeviceState* state = Of(device);
  if (state == nullptr) return kXSchedErrorNotSupported;
  if (state->interrupted > 0) --state->interrupted;
  // If this fails, SettleAll tries again.
  SettleChannels(*state);
  return kXSchedSuccess;
}

}  // namespace xsched::cuda

void CudaExplainLevel3(char* text, size_t size) {
  using namespace xsched::cuda;
  xsched::preempt::ReentrancyGuard guard;
  const Functions* next = FindDriver();
  DeviceIdentity identity;
  if (next == nullptr || !IdentifyCurrentDevice(*next, &identity)) {
    snprintf(text, size, "no CUDA context is current");
    return;
  }
  xsched::Result<> support = OwnChannelGroups().Level3Support(identity.device);
  snprintf(text, size, "%s", support ? "" : support.error().text());
}
