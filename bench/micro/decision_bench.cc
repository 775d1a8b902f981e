// Measures the cost of a decision, by the number of queues on the device: the most urgent queue becomes
// ready, and idle again. With each policy of the build, and chains of them. In the steady state there must be
// no heap allocations. Then the same for processes with time slices, by the number of queues of each process,
// and the cost of adding a queue.
//
// items_per_second are decisions, or added queues. Goal: at most 50 us for each with 1,000 queues, and 1 ms
// with 8,192, which is 20,000 and 1,000 per second.
//
//   decision_bench
#include <benchmark/benchmark.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

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

// Every policy finds the hints that it reads, and no two of these are equal to it.
Hints HintsOfEachKind(int kind) {
  return {.priority = kind,
          .utilization = 1 + kind,
          .deadline_us = 1'000'000 * (1 + kind),
          .laxity_us = 1000 * (1 + kind),
          .lax_priority = kind,
          .critical_priority = 8 + kind,
          .weight = 100 * (1 + kind),
          .guarantee_us = 1,
          .period_us = 10'000 * (1 + kind),
          .latency_target_us = kind % 2 == 0 ? NO_LATENCY_TARGET : 10'000 * kind};
}

// One device on which all queues have work, and an urgent queue that becomes ready and idle.
class Device {
 public:
  Device(const char* policy, uint64_t queues, uint64_t per_process, bool sliceable)
      : per_process_(per_process), sliceable_(sliceable) {
    scheduler_.SetPolicy(*ParsePolicySetting(policy));
    Hints hints;
    hints.priority = PRIORITY_MAX;
    hints.latency_target_us = 100'000;
    scheduler_.AddQueue(kUrgent, ProcessId{0}, DeviceId{1}, hints, now_, {.sliceable = sliceable});
    // With slices, all others have the same hints, so that they take turns.
    for (uint64_t i = 0; i < queues; ++i) Add(sliceable ? Hints{} : HintsOfEachKind(static_cast<int>(i % 8)));
    scheduler_.Decide(now_, sink_);
  }
  void Add(const Hints& hints) {
    const QueueId id{next_++};
    scheduler_.AddQueue(id, ProcessId{static_cast<uint64_t>(id) / per_process_}, DeviceId{1}, hints, now_,
                        {.sliceable = sliceable_});
    scheduler_.Progress(id, 1000, 0, now_);
  }
  void Decide() {
    now_ += std::chrono::milliseconds(1);
    scheduler_.Decide(now_, sink_);
  }
  // Two decisions.
  void ServeRequest() {
    now_ += std::chrono::milliseconds(1);
    ++command_;
    scheduler_.Progress(kUrgent, command_, command_ - 1, now_);
    scheduler_.Decide(now_, sink_);
    now_ += std::chrono::milliseconds(1);
    scheduler_.Progress(kUrgent, command_, command_, now_);
    Decide();  // the grace period has passed
  }

 private:
  static constexpr QueueId kUrgent{1};

  Scheduler scheduler_{SchedulerConfig{}};
  Ignore sink_;
  TimePoint now_{std::chrono::seconds(1)};
  uint64_t next_ = 2;
  uint64_t per_process_;
  bool sliceable_;
  uint64_t command_ = 0;
};

void Serve(benchmark::State& state, Device& device) {
  device.ServeRequest();
  uint64_t before = allocations;
  for (auto _ : state) device.ServeRequest();
  state.counters["allocations"] = static_cast<double>(allocations - before);
  state.SetItemsProcessed(state.iterations() * 2);  // decisions
}

void Decision(benchmark::State& state, const char* policy) {
  Device device(policy, static_cast<uint64_t>(state.range(0)), 4, false);
  Serve(state, device);
}

void DecisionWithSlices(benchmark::State& state) {
  Device device("HPF", static_cast<uint64_t>(state.range(0)), static_cast<uint64_t>(state.range(1)), true);
  Serve(state, device);
}

// Adds a queue, and makes the decision that follows.
void NewQueueWithSlices(benchmark::State& state) {
  const auto queues = static_cast<uint64_t>(state.range(0));
  constexpr int64_t kAdded = 50;  // few, so that the number of queues stays about the same
  for (auto _ : state) {
    state.PauseTiming();
    auto device = std::make_unique<Device>("HPF", queues, static_cast<uint64_t>(state.range(1)), true);
    state.ResumeTiming();
    for (int64_t i = 0; i < kAdded; ++i) {
      device->Add(Hints{});
      device->Decide();
    }
    state.PauseTiming();
    device.reset();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * kAdded);
}

// Those of the build, which is why they are not listed here.
[[maybe_unused]] const bool registered = [] {
  for (PolicyGetter policy : Policies()) {
    const char* name = policy().info().name;
    benchmark::RegisterBenchmark((std::string("Decision/") + name).c_str(), Decision, name)
        ->Arg(10)
        ->Arg(100)
        ->Arg(1000)
        ->Arg(8192);
  }
  return true;
}();
BENCHMARK_CAPTURE(Decision, HPF_CFS, "HPF/CFS")->Arg(1000)->Arg(8192);
BENCHMARK_CAPTURE(Decision, HPF_CFSbyProcess_KEDF, "HPF/CFS:process/KEDF")->Arg(1000)->Arg(8192);
BENCHMARK(DecisionWithSlices)
    ->ArgNames({"queues", "per_process"})
    ->ArgsProduct({{1000, 4096, 8192}, {1, 64, 1024}});
BENCHMARK(NewQueueWithSlices)
    ->ArgNames({"queues", "per_process"})
    ->ArgsProduct({{1000, 4096, 8192}, {1, 64, 1024}});

}  // namespace

BENCHMARK_MAIN();
