#include "sched/sim/simulator.h"

#include <algorithm>
#include <deque>

#include "sched/testing/recorder.h"

namespace xsched::sched {
namespace {

constexpr Duration kReaction = std::chrono::microseconds(15);  // from a change to the closed gate

class Simulation {
 public:
  Simulation(const Policy& policy, std::vector<SimulatedQueue> queues, const SchedulerConfig& config)
      : scheduler_(config), queues_(std::move(queues)), states_(queues_.size()) {
    scheduler_.SetPolicy(policy);
    for (size_t i = 0; i < queues_.size(); ++i) {
      scheduler_.AddQueue(Id(i), ProcessId{i + 1}, DeviceId{1}, queues_[i].hints, now_);
    }
  }

  SimulationResult Run(Duration length) {
    TimePoint end = now_ + length;
    while (now_ < end) {
      Arrive();
      decide_at_ = scheduler_.Decide(now_, sink_);
      StartCommand();
      now_ = std::min(end, NextEvent());
      FinishCommand();
    }
    SimulationResult result{queues_, {}};
    for (const SimulatedQueue& queue : queues_) result.busy += queue.device_time;
    return result;
  }

 private:
  struct State {
    uint64_t submitted = 0;
    uint64_t retired = 0;
    int allowed = 0;  // commands that may still start during a hold
    TimePoint next_arrival{};
    std::deque<std::pair<TimePoint, uint64_t>> tasks;  // arrival, last command
  };

  static QueueId Id(size_t i) { return QueueId{i + 1}; }

  void Tell(size_t i) { scheduler_.Progress(Id(i), states_[i].submitted, states_[i].retired, now_); }

  void Arrive() {
    for (size_t i = 0; i < queues_.size(); ++i) {
      const SimulatedQueue& queue = queues_[i];
      State& state = states_[i];
      bool due =
          queue.period == Duration::zero() ? state.submitted - state.retired < 8 : now_ >= state.next_arrival;
      if (!due) continue;
      state.submitted += static_cast<uint64_t>(queue.commands);
      state.tasks.emplace_back(now_, state.submitted);
      state.next_arrival = now_ + queue.period;
      Tell(i);
    }
  }

  void StartCommand() {
    for (size_t i = 0; i < queues_.size(); ++i) {
      if (sink_.Of(Id(i)).run) states_[i].allowed = queues_[i].in_flight;
    }
    if (running_ >= 0) return;
    for (size_t tried = 0; tried < queues_.size(); ++tried) {
      size_t i = (turn_ + tried) % queues_.size();
      State& state = states_[i];
      if (state.submitted == state.retired) continue;
      if (!sink_.Of(Id(i)).run && state.allowed == 0) continue;
      if (queues_[i].stuck) continue;  // it takes no device time, it just never ends
      if (!sink_.Of(Id(i)).run) --state.allowed;
      running_ = static_cast<int>(i);
      finish_at_ = now_ + queues_[i].command;
      turn_ = i + 1;
      return;
    }
  }

  TimePoint NextEvent() const {
    TimePoint next = std::max(decide_at_, now_ + kReaction);
    if (running_ >= 0) next = std::min(next, finish_at_);
    for (size_t i = 0; i < queues_.size(); ++i) {
      if (queues_[i].period != Duration::zero()) next = std::min(next, states_[i].next_arrival);
    }
    return std::max(next, now_ + Duration(1));
  }

  void FinishCommand() {
    if (running_ < 0 || now_ < finish_at_) return;
    auto i = static_cast<size_t>(running_);
    State& state = states_[i];
    running_ = -1;
    ++state.retired;
    queues_[i].device_time += queues_[i].command;
    while (!state.tasks.empty() && state.tasks.front().second <= state.retired) {
      queues_[i].latencies.push_back(now_ - state.tasks.front().first);
      state.tasks.pop_front();
    }
    Tell(i);
  }

  Scheduler scheduler_;
  Recorder sink_;
  std::vector<SimulatedQueue> queues_;
  std::vector<State> states_;
  TimePoint now_{std::chrono::milliseconds(1)};
  TimePoint decide_at_ = kNever;
  TimePoint finish_at_ = kNever;
  int running_ = -1;
  size_t turn_ = 0;
};

}  // namespace

SimulationResult Simulate(const Policy& policy, std::vector<SimulatedQueue> queues, Duration length,
                          const SchedulerConfig& config) {
  return Simulation(policy, std::move(queues), config).Run(length);
}

}  // namespace xsched::sched
