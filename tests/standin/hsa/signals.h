// Signals: a number that devices and programs change and wait for. One lock and one condition for all of
// them: a test has few waiters, and nothing can be missed.
#pragma once

#include <hsa/amd_hsa_signal.h>
#include <hsa/hsa.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>

namespace standin_hsa {

struct SignalState {
  std::mutex lock;
  std::condition_variable changed;
};
SignalState& Signals();

// No handler of a signal runs from the time that Stop returns until Start is called.
void StartHandlers();
void StopHandlers();

inline amd_signal_t* From(hsa_signal_t handle) { return reinterpret_cast<amd_signal_t*>(handle.handle); }
int64_t Load(hsa_signal_t signal);
// Waits until `met` says so, which is called under the lock; false: it did not by `deadline`.
constexpr auto kForEver = std::chrono::steady_clock::time_point::max();
bool Await(const std::function<bool()>& met, std::chrono::steady_clock::time_point deadline = kForEver);
// The same for what changes without a word: memory, and signals written through their address.
void AwaitByLooking(const std::function<bool()>& met);
bool Holds(hsa_signal_condition_t condition, int64_t value, int64_t compared_with);
// A command has finished: its times are noted, its signal counts down. The null signal is none.
void Complete(hsa_signal_t signal, uint64_t begun, uint64_t ended);

}  // namespace standin_hsa
