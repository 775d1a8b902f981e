#include "sched/sim/client_model.h"

#include <algorithm>

namespace xsched::sched::sim {
namespace {

constexpr Duration kRetryAfter = milliseconds(1);

}  // namespace

void ClientModel::Want(int device, Duration slice, TimePoint now) {
  wanted_[device] = slice;
  wake_at_ = std::min(wake_at_, now + process_.script->reaction);
}

bool ClientModel::Act(TimePoint now) {
  if (now >= call_until_) {
    End(now);
    return true;
  }
  if (call_until_ == kNever && !process_.stopped && now >= wake_at_) Begin(now);
  return false;
}

void ClientModel::Begin(TimePoint now) {
  wake_at_ = kNever;
  for (int device = 0; device < kMaxDevices; ++device) {
    if (sure_[device] && set_[device] == wanted_[device]) continue;
    call_device_ = device;
    call_slice_ = wanted_[device];
    call_until_ = now + process_.script->call;
    return;
  }
}

void ClientModel::End(TimePoint now) {
  const ProcessScript& script = *process_.script;
  const int call = calls_++;
  const bool fails = call >= script.faults_from && call < script.faults_from + script.faults;
  if (!fails || script.fault == Fault::kTimedOut) process_.slice[call_device_] = call_slice_;
  sure_[call_device_] = !fails;
  set_[call_device_] = call_slice_;
  call_until_ = kNever;
  wake_at_ = fails ? now + kRetryAfter : now;
}

bool ClientModel::AllSet() const {
  for (int device = 0; device < kMaxDevices; ++device) {
    if (!sure_[device] || set_[device] != wanted_[device]) return false;
  }
  return call_until_ == kNever;
}

bool ClientModel::HasDriversSlices() const {
  return std::all_of(std::begin(process_.slice), std::end(process_.slice),
                     [](Duration slice) { return slice == kDriversSlice; });
}

}  // namespace xsched::sched::sim
