// A device with ready queues, for the unit tests of policies. It keeps the policy's state from one decision
// to the next, as the scheduler does.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <map>
#include <utility>
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
      queue.tenant_state = &tenant_;
    }
  }
  PolicyDevice(const PolicyDevice&) = delete;
  PolicyDevice& operator=(const PolicyDevice&) = delete;

  // As the scheduler asks. Queues that have used up their limits do not run.
  TimePoint Decide(const Policy& policy, TimePoint now = kNow, Duration least_turn = {}) {
    const auto view = [&] {
      DeviceView device = At(now);
      device.least_turn = least_turn;
      return device;
    };
    TimePoint next = policy.FindLimits(view());
    std::vector<QueueView> all = std::exchange(ready_, {});
    std::vector<size_t> shown;
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].limited_until > now) continue;
      ready_.push_back(all[i]);
      shown.push_back(i);
    }
    if (!ready_.empty()) next = std::min(next, policy.Decide(view()));
    for (QueueView& queue : all) queue.run = false;
    for (size_t i = 0; i < shown.size(); ++i) all[shown[i]] = ready_[i];
    ready_ = std::move(all);
    return next;
  }

  // What a policy is shown.
  DeviceView At(TimePoint now) {
    std::map<ProcessId, QueueView> processes;
    for (const QueueView& queue : ready_) {
      QueueView& process = processes[queue.process];
      process.hints.weight =
          process.state == nullptr ? queue.hints.weight : std::max(process.hints.weight, queue.hints.weight);
      process.service += queue.service;
      process.state = queue.process_state;
    }
    Duration all{};
    for (const QueueView& queue : ready_) all += queue.service;
    for (const auto& [process, service] : gone_) all += service;
    for (QueueView& queue : ready_) {
      queue.service_in_all = queue.service;
      queue.process_weight = processes[queue.process].hints.weight;
      queue.process_service = gone_[queue.process] + processes[queue.process].service;
      queue.tenant_service = all;
    }
    return {now, kTimeslice, at_a_time, ready_, &device_};
  }

  // The queue is not ready any more. Its state is kept, as is what its process has received.
  QueueView Leave(size_t i) {
    const QueueView left = ready_[i];
    gone_[left.process] += left.service;
    ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(i));
    return left;
  }
  // It is ready again, behind the others.
  void Return(const QueueView& left) {
    gone_[left.process] -= left.service;
    ready_.push_back(left);
    ready_.back().newly_ready = true;
    ready_.back().running = false;
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
  std::map<ProcessId, Duration> gone_;  // what queues that are not ready have received
  PolicyState device_;
  PolicyState tenant_;  // all processes are of one
};

}  // namespace xsched::sched
