// What one decision costs, by the number of queues on the device: the most urgent queue turns ready, and idle
// again. Both policies; heap allocations of the steady state are counted and must be none.
//
//   decision_bench
#include <benchmark/benchmark.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "sched/core/scheduler.h"

namespace {
std::atomic<uint64_t> allocations{0};
}

extern "C" void* __libc_malloc(size_t size);
extern "C" void* malloc(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}

namespace {

using namespace xsched;
using namespace xsched::sched;

class Ignore final : public ControlSink {
 public:
  void SetControl(QueueId, const Control&) override {}
  void Query(QueueId) override {}
  void SetSlice(ProcessId, DeviceId, Duration) override {}
};

void Decision(benchmark::State& state, XPolicyType policy) {
  const auto queues = static_cast<uint64_t>(state.range(0));
  TimePoint now{std::chrono::seconds(1)};
  Scheduler scheduler{SchedulerConfig{}};
  scheduler.SetPolicy(*FindPolicy(policy));
  Ignore sink;
  for (uint64_t i = 1; i <= queues; ++i) {
    Hints hints;
    hints.priority = static_cast<Priority>(i % 8);
    scheduler.AddQueue(QueueId{i}, ProcessId{i / 4}, DeviceId{1}, hints, now);
    scheduler.Progress(QueueId{i}, 1000, 0, now);  // everybody has work
  }
  const QueueId urgent{queues + 1};
  Hints hints;
  hints.priority = PRIORITY_MAX;
  scheduler.AddQueue(urgent, ProcessId{0}, DeviceId{1}, hints, now);
  scheduler.Decide(now, sink);
  uint64_t command = 0;
  uint64_t before = allocations;
  for (auto _ : state) {
    now += std::chrono::milliseconds(1);
    ++command;
    scheduler.Progress(urgent, command, command - 1, now);
    scheduler.Decide(now, sink);
    now += std::chrono::milliseconds(1);
    scheduler.Progress(urgent, command, command, now);
    now += std::chrono::milliseconds(1);  // the grace period passes
    scheduler.Decide(now, sink);
  }
  state.counters["allocations"] = static_cast<double>(allocations - before);
  state.SetItemsProcessed(state.iterations() * 2);  // decisions
}

BENCHMARK_CAPTURE(Decision, HPF, kPolicyHighestPriorityFirst)->Arg(10)->Arg(100)->Arg(1000);
BENCHMARK_CAPTURE(Decision, UP, kPolicyUtilizationPartition)->Arg(10)->Arg(100)->Arg(1000);

}  // namespace

BENCHMARK_MAIN();
