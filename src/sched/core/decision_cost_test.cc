// What a decision costs does not grow faster than the number of queues. Counted are the basic blocks of the
// scheduler and its policies that a decision executes, so the machine and its load do not matter. (At 1,024
// queues with slices, decisions once took 2.5 ms, and 100 ms at 8,192.)
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "sched/core/scheduler.h"

namespace {

uint64_t steps = 0;

}  // namespace

// Called by each basic block of what is compiled with -fsanitize-coverage=trace-pc.
extern "C" void __sanitizer_cov_trace_pc();
extern "C" void __sanitizer_cov_trace_pc() { ++steps; }

namespace xsched::sched {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kUrgent = 1;

class CountingSink final : public ControlSink {
 public:
  void SetControl(QueueId, const Control&) override {}
  void Query(QueueId) override {}
  void SetSlice(ProcessId, DeviceId, Duration slice) override { off += slice == kNoSlice; }
  int off = 0;  // how often a process was taken off the device
};

// One urgent queue, and others with work without end, on one device that divides its time between processes.
class Device {
 public:
  Device(const PolicySetting& policy, uint64_t queues, uint64_t queues_per_process) : queues_(queues) {
    scheduler_.SetPolicy(policy);
    Add(kUrgent, ProcessId{1}, 10);
    for (uint64_t id = 2; id <= queues; ++id) Add(id, ProcessId{2 + id / queues_per_process}, 0);
    for (uint64_t id = 2; id <= queues; ++id) Progress(id, kEndless, 1);
    // Turns are taken: no process has short commands.
    for (int i = 0; i < 300; ++i) Decide(milliseconds(1));
  }

  // Steps per queue of one decision after `event`, on average.
  double StepsPerQueue(const std::function<void(Device&, int)>& event) {
    constexpr int kTimes = 20;
    const uint64_t before = steps;
    for (int i = 0; i < kTimes; ++i) {
      event(*this, i);
      Decide(milliseconds(1));
    }
    return static_cast<double>(steps - before) / kTimes / static_cast<double>(queues_);
  }

  void Add(uint64_t id, ProcessId process, Priority priority) {
    Hints hints;
    hints.priority = priority;
    ASSERT_TRUE(scheduler_.AddQueue(QueueId{id}, process, DeviceId{7}, hints, now_, {.sliceable = true}));
  }
  void AddStream(int i) { Add(queues_ + 1 + static_cast<uint64_t>(i), ProcessId{2}, 0); }
  void Progress(uint64_t id, uint64_t submitted, uint64_t retired) {
    scheduler_.Progress(QueueId{id}, submitted, retired, now_);
  }
  void Decide(Duration later) {
    now_ += later;
    scheduler_.Decide(now_, sink_);
  }
  const CountingSink& sink() const { return sink_; }

  static constexpr uint64_t kEndless = 1'000'000'000;

 private:
  Scheduler scheduler_{SchedulerConfig{}};
  CountingSink sink_;
  TimePoint now_{milliseconds(1)};
  uint64_t queues_;
};

struct Event {
  const char* name;
  bool needs_decision;  // otherwise, a decision is only made where one is due by time
  std::function<void(Device&, int)> happens;
};

const Event kEvents[] = {
    {"nothing", false, [](Device&, int) {}},
    {"an urgent command comes or goes", true,
     [](Device& device, int i) {
       const auto count = static_cast<uint64_t>(i) / 2 + 1;
       device.Progress(kUrgent, count, i % 2 == 0 ? count - 1 : count);
     }},
    {"a low queue retires a command", false,
     [](Device& device, int i) { device.Progress(2, Device::kEndless, static_cast<uint64_t>(i) + 2); }},
    {"a stream is made", true, [](Device& device, int i) { device.AddStream(i); }},
};

class DecisionCost : public testing::TestWithParam<std::string> {
 protected:
  static void IsProportional(uint64_t queues_per_process) {
    const PolicySetting policy = *ParsePolicySetting(GetParam().c_str());
    // The policies of a chain each have times of their own at which they decide, more of them with more
    // queues.
    const bool is_chain = policy.layers().size() > 1;
    double per_queue_of_few[std::size(kEvents)] = {};
    for (const uint64_t queues : {100, 1000, 8192}) {
      Device device(policy, queues, queues_per_process);
      for (size_t i = 0; i < std::size(kEvents); ++i) {
        const double per_queue = device.StepsPerQueue(kEvents[i].happens);
        if (queues == 100) per_queue_of_few[i] = per_queue;
        if (is_chain && !kEvents[i].needs_decision) continue;
        EXPECT_LE(per_queue, 1.3 * per_queue_of_few[i])
            << GetParam() << ", " << queues << " queues: " << kEvents[i].name;
      }
      EXPECT_TRUE(policy.first().type() != kDefaultPolicy || device.sink().off > 0) << "turns are taken";
    }
  }
};

TEST_P(DecisionCost, is_proportional_to_the_queues_with_one_in_each_process) { IsProportional(1); }

TEST_P(DecisionCost, is_proportional_to_the_queues_with_many_in_each_process) { IsProportional(64); }

TEST_P(DecisionCost, does_not_grow_with_the_queues_that_have_no_work) {
  const auto steps_with = [](uint64_t idle) {
    Scheduler scheduler{SchedulerConfig{}};
    scheduler.SetPolicy(*ParsePolicySetting(GetParam().c_str()));
    CountingSink sink;
    TimePoint now{milliseconds(1)};
    for (uint64_t id = 1; id <= idle + 3; ++id)
      EXPECT_TRUE(scheduler.AddQueue(QueueId{id}, ProcessId{id}, DeviceId{7}, {}, now));
    scheduler.Progress(QueueId{1}, Device::kEndless, 1, now);
    scheduler.Progress(QueueId{2}, Device::kEndless, 1, now);
    uint64_t before = 0;
    for (uint64_t i = 0; i < 100; ++i) {
      if (i == 10) before = steps;
      scheduler.Progress(QueueId{3}, i / 2 + 1, i % 2 == 0 ? i / 2 : i / 2 + 1, now);
      scheduler.Decide(now, sink);
      now += milliseconds(1);
    }
    return static_cast<double>(steps - before);
  };
  EXPECT_LE(steps_with(5000), 1.2 * steps_with(50));
}

// An urgent process, and two that take turns. Most queues of a program are idle.
TEST_P(DecisionCost, does_not_grow_with_the_idle_queues_of_processes_with_time_slices) {
  const auto steps_with = [](uint64_t idle) {
    Scheduler scheduler{SchedulerConfig{}};
    scheduler.SetPolicy(*ParsePolicySetting(GetParam().c_str()));
    CountingSink sink;
    TimePoint now{milliseconds(1)};
    for (uint64_t id = 1; id <= idle + 3; ++id) {
      Hints hints;
      hints.priority = id % 3 == kUrgent ? 10 : 0;
      EXPECT_TRUE(
          scheduler.AddQueue(QueueId{id}, ProcessId{id % 3}, DeviceId{7}, hints, now, {.sliceable = true}));
    }
    scheduler.Progress(QueueId{2}, Device::kEndless, 1, now);
    scheduler.Progress(QueueId{3}, Device::kEndless, 1, now);
    uint64_t before = 0;
    for (uint64_t i = 0; i < 400; ++i) {
      if (i == 200) before = steps;
      scheduler.Progress(QueueId{kUrgent}, i / 2 + 1, i % 2 == 0 ? i / 2 : i / 2 + 1, now);
      scheduler.Decide(now, sink);
      now += milliseconds(1);
    }
    return static_cast<double>(steps - before);
  };
  EXPECT_LE(steps_with(5000), 1.2 * steps_with(50));
}

// Programs with many queues may end together.
TEST_P(DecisionCost, of_queues_that_go_does_not_grow_with_the_queues_that_are_there) {
  const auto per_queue_of = [](uint64_t queues) {
    Scheduler scheduler{SchedulerConfig{}};
    scheduler.SetPolicy(*ParsePolicySetting(GetParam().c_str()));
    CountingSink sink;
    TimePoint now{milliseconds(1)};
    for (uint64_t id = 1; id <= queues; ++id) {
      EXPECT_TRUE(scheduler.AddQueue(QueueId{id}, ProcessId{1 + id / 64}, DeviceId{7}, {}, now));
      scheduler.Progress(QueueId{id}, Device::kEndless, 1, now);
    }
    scheduler.Decide(now, sink);
    const uint64_t before = steps;
    for (uint64_t id = 1; id <= queues; ++id) scheduler.RemoveQueue(QueueId{id}, now);
    return static_cast<double>(steps - before) / static_cast<double>(queues);
  };
  EXPECT_LE(per_queue_of(8192), 1.5 * per_queue_of(512));
}

// A user may give each queue hints of its own, and change them all the time.
TEST_P(DecisionCost, is_proportional_to_the_queues_whose_hints_all_differ) {
  const auto per_queue_of = [](uint64_t queues) {
    Scheduler scheduler{SchedulerConfig{}};
    scheduler.SetPolicy(*ParsePolicySetting(GetParam().c_str()));
    CountingSink sink;
    TimePoint now{milliseconds(1)};
    const auto hints_of = [](uint64_t id, int64_t round) {
      Hints hints;
      hints.deadline_us = static_cast<int64_t>(id) * 1000 + round;
      return hints;
    };
    for (uint64_t id = 1; id <= queues; ++id)
      EXPECT_TRUE(scheduler.AddQueue(QueueId{id}, ProcessId{1 + id / 64}, DeviceId{7}, hints_of(id, 0), now));
    scheduler.Decide(now, sink);
    constexpr int kRounds = 10;
    const uint64_t before = steps;
    for (int round = 1; round <= kRounds; ++round) {
      scheduler.SetHints(QueueId{1}, hints_of(1, round));
      now += milliseconds(1);
      scheduler.Decide(now, sink);
    }
    return static_cast<double>(steps - before) / kRounds / static_cast<double>(queues);
  };
  EXPECT_LE(per_queue_of(4096), 1.3 * per_queue_of(512));
}

// A tenant that claims more than it may: all of its queues count for less.
TEST_P(DecisionCost, is_proportional_to_the_queues_where_all_of_a_tenant_get_other_hints) {
  const auto per_queue_of = [](uint64_t queues) {
    Scheduler scheduler{SchedulerConfig{}};
    scheduler.SetPolicy(*ParsePolicySetting(GetParam().c_str()));
    CountingSink sink;
    TimePoint now{milliseconds(1)};
    constexpr TenantId kTenant{1};
    for (uint64_t id = 1; id <= queues; ++id) {
      scheduler.SetTenant(ProcessId{1 + id / 64}, kTenant);
      EXPECT_TRUE(scheduler.AddQueue(QueueId{id}, ProcessId{1 + id / 64}, DeviceId{7}, {}, now));
    }
    for (int decision = 0; decision < 3; ++decision) scheduler.Decide(now += milliseconds(1), sink);
    Hints hints;
    hints.priority = -10;
    const uint64_t before = steps;
    scheduler.ExpectHints(kTenant);
    for (uint64_t id = queues; id > 0; --id) scheduler.SetHints(QueueId{id}, hints);
    scheduler.Decide(now, sink);
    return static_cast<double>(steps - before) / static_cast<double>(queues);
  };
  EXPECT_LE(per_queue_of(4096), 1.3 * per_queue_of(512));
}

// Other hints may make rivals of queues, so all hints are compared. But idle queues for which nothing has
// changed take no part in the decision.
TEST_P(DecisionCost, of_other_hints_is_small_where_they_change_nothing_for_the_others) {
  constexpr uint64_t kQueues = 4096;
  Scheduler scheduler{SchedulerConfig{}};
  scheduler.SetPolicy(*ParsePolicySetting(GetParam().c_str()));
  CountingSink sink;
  TimePoint now{milliseconds(1)};
  for (uint64_t id = 1; id <= kQueues; ++id) {
    Hints hints;
    hints.priority = id % 2 == 0 ? 5 : 0;
    ASSERT_TRUE(scheduler.AddQueue(QueueId{id}, ProcessId{1 + id / 64}, DeviceId{7}, hints, now));
  }
  const auto steps_of_decision = [&] {
    now += milliseconds(1);
    const uint64_t before = steps;
    scheduler.Decide(now, sink);
    return steps - before;
  };
  const uint64_t all_are_new = steps_of_decision();
  steps_of_decision();
  Hints hints;
  hints.priority = 3;
  hints.deadline_us = 1000;
  scheduler.SetHints(QueueId{1}, hints);
  const uint64_t one = steps_of_decision();
  EXPECT_LE(one, all_are_new / 2);
}

// A queue may wait for what never happens.
TEST_P(DecisionCost, of_one_device_does_not_grow_with_the_others_because_a_queue_waits) {
  const PolicySetting policy = *ParsePolicySetting(GetParam().c_str());
  if (policy.ComparesAllDevices()) GTEST_SKIP() << "it decides on all devices together";
  const auto steps_of = [&policy](bool waits) {
    Scheduler scheduler{SchedulerConfig{}};
    scheduler.SetPolicy(policy);
    CountingSink sink;
    TimePoint now{milliseconds(1)};
    constexpr uint64_t kDevices = 64;
    constexpr uint64_t kQueues = 16;  // of each
    for (uint64_t id = 1; id <= kDevices * kQueues; ++id)
      EXPECT_TRUE(scheduler.AddQueue(QueueId{id}, ProcessId{id}, DeviceId{id % kDevices}, {}, now));
    const Dependency never{QueueId{1}, Device::kEndless};
    if (waits) scheduler.SetDependencies(QueueId{1 + kDevices}, {&never, 1});
    uint64_t before = 0;
    for (uint64_t i = 0; i < 100; ++i) {
      if (i == 10) before = steps;
      scheduler.Progress(QueueId{1}, i / 2 + 1, i % 2 == 0 ? i / 2 : i / 2 + 1, now);
      scheduler.Decide(now, sink);
      now += milliseconds(1);
    }
    return static_cast<double>(steps - before);
  };
  EXPECT_LE(steps_of(true), 2 * steps_of(false));
}

// One user's programs on other devices retire nothing, so that the watchdog lets all run there, for good.
TEST_P(DecisionCost, of_one_device_does_not_grow_with_the_stalled_queues_of_others) {
  const PolicySetting policy = *ParsePolicySetting(GetParam().c_str());
  if (policy.ComparesAllDevices()) GTEST_SKIP() << "it decides on all devices together";
  const auto steps_of = [&policy](uint64_t stalled) {
    Scheduler scheduler{SchedulerConfig{}};
    scheduler.SetPolicy(policy);
    CountingSink sink;
    TimePoint now{milliseconds(1)};
    constexpr uint64_t kDevices = 64;
    uint64_t last = 0;
    const auto add = [&](DeviceId device, TenantId tenant, Priority priority) {
      const uint64_t id = ++last;
      Hints hints;
      hints.priority = priority;
      scheduler.SetTenant(ProcessId{id}, tenant);
      EXPECT_TRUE(scheduler.AddQueue(QueueId{id}, ProcessId{id}, device, hints, now, {.sliceable = true}));
      scheduler.Progress(QueueId{id}, Device::kEndless, 1, now);
    };
    add(DeviceId{100}, TenantId{1}, 10);
    for (int i = 0; i < 7; ++i) add(DeviceId{100}, TenantId{1}, 0);
    for (uint64_t i = 0; i < kDevices; ++i) add(DeviceId{i}, TenantId{2}, 0);
    for (uint64_t i = 0; i < stalled; ++i) add(DeviceId{i % kDevices}, TenantId{2}, 10);
    uint64_t retired = 1;
    for (int i = 0; i < 5000; ++i) {
      scheduler.Progress(QueueId{1}, Device::kEndless, ++retired, now);
      scheduler.Decide(now += milliseconds(1), sink);
    }
    // At one time, because as time passes the other devices have decisions of their own.
    uint64_t before = 0;
    for (uint64_t i = 0; i <= 20; ++i) {
      if (i == 1) before = steps;
      scheduler.Progress(QueueId{2}, Device::kEndless, 1 + i, now);
      scheduler.SetAbsent(QueueId{3}, i % 2 == 1, now);
      scheduler.Decide(now, sink);
    }
    return static_cast<double>(steps - before);
  };
  EXPECT_LE(steps_of(1024), 2 * steps_of(64));
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const PolicyGetter get : Policies()) names.emplace_back(get().info().name);
  names.emplace_back("HPF/CFS:process/KEDF");
  return names;
}

INSTANTIATE_TEST_SUITE_P(Of, DecisionCost, testing::ValuesIn(Names()),
                         [](const testing::TestParamInfo<std::string>& tested) {
                           std::string name = tested.param;
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return c == '/' || c == ':'; }, '_');
                           return name;
                         });

}  // namespace
}  // namespace xsched::sched
