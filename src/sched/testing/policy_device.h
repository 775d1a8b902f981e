// A device with ready queues, for the unit tests of policies. It keeps the policy's state from one decision
// to the next, as the scheduler does.
#pragma once

#include <initializer_list>
#include <map>
#include <vector>

#include "sched/core/policy.h"

namespace xsched::sched {

inline QueueView View(uint64_t id, const Hints& hints, ProcessId process = ProcessId{1}) {
  QueueView view{};
  view.id = QueueId{id};
  view.process = process;
  view.hints = hints;
  view.priority = hints.priority;
  return view;
}

class PolicyDevice {
 public:
  PolicyDevice(std::initializer_list<QueueView> ready) : ready_(ready) {
    for (QueueView& queue : ready_) {
      queue.state = &queues_[queue.id];
      queue.process_state = &processes_[queue.process];
    }
  }
  PolicyDevice(const PolicyDevice&) = delete;
  PolicyDevice& operator=(const PolicyDevice&) = delete;

  TimePoint Decide(const Policy& policy, TimePoint now = kNow) {
    return policy.Decide({now, kTimeslice, at_a_time, ready_, &device_});
  }

  QueueView& operator[](size_t i) { return ready_[i]; }
  std::vector<QueueView>& ready() { return ready_; }

  size_t at_a_time = 1;

  static constexpr TimePoint kNow{std::chrono::milliseconds(100)};
  static constexpr Duration kTimeslice = std::chrono::milliseconds(5);

 private:
  std::vector<QueueView> ready_;
  std::map<QueueId, PolicyState> queues_;
  std::map<ProcessId, PolicyState> processes_;
  PolicyState device_;
};

}  // namespace xsched::sched
