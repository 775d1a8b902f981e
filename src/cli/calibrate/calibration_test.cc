// The simulator as the machine: from what its programs see, calibration finds the parameters of its device.
#include "cli/calibrate/calibration.h"

#include <gtest/gtest.h>

#include "cli/exit_codes.h"
#include "cli/simulate/outcome.h"
#include "sched/sim/simulation.h"

namespace xsched::cli {
namespace {

using sched::sim::DeviceParameters;

constexpr Duration kLength = std::chrono::seconds(2);

class SimulatedMachine final : public Machine {
 public:
  explicit SimulatedMachine(const DeviceParameters& device) : device_(device) {}

  Observation Run(const Experiment& experiment) override {
    sched::sim::Load load;
    load.devices = {device_};
    load.length = experiment.length;
    for (const auto& program : experiment.programs) {
      for (const QueueWork& work : program) AddQueue(load, work);
      load.processes.emplace_back();
    }
    sched::sim::Conditions conditions;
    if (experiment.scheduled) conditions.policy = SchemeByName("HPF").policy;
    const sched::sim::Result result = sched::sim::Simulate(load, conditions);
    Observation seen{.level = device_.level, .spans = {}};
    for (size_t i = 0; i < load.queues.size(); ++i)
      seen.spans.push_back(SpansOf(load.queues[i], result.queues[i].latencies));
    return seen;
  }

 private:
  void AddQueue(sched::sim::Load& load, const QueueWork& work) const {
    sched::sim::QueueLoad queue;
    queue.process = static_cast<int>(load.processes.size());
    queue.level = device_.level;
    queue.hints.priority = work.priority;
    sched::sim::Task task{.commands = static_cast<uint64_t>(work.commands), .command = work.command};
    const Duration shortest = std::max({work.command, device_.launch, Duration(1000)});
    const auto count = static_cast<uint64_t>(load.length / shortest) + 1;
    for (uint64_t i = 0; i < count && work.commands > 0; ++i) {
      if (work.pause) {
        // A program begins its pause when it knows of the end.
        task.follows = i > 0;
        task.at = PauseBefore(work, i) + (task.follows ? device_.command_latency : Duration::zero());
      }
      queue.tasks.push_back(task);
      if (work.pause && *work.pause * static_cast<int64_t>(i) > load.length) break;
    }
    load.queues.push_back(std::move(queue));
  }

  std::vector<Span> SpansOf(const sched::sim::QueueLoad& queue,
                            const std::vector<Duration>& latencies) const {
    std::vector<Span> spans;
    Duration end{};
    for (size_t i = 0; i < latencies.size(); ++i) {
      const sched::sim::Task& task = queue.tasks[i];
      const Duration begin = task.follows ? end + task.at - device_.command_latency : task.at;
      end = begin + latencies[i];
      spans.push_back({begin, end});
    }
    return spans;
  }

  DeviceParameters device_;
};

class CalibrationTest : public ::testing::Test {
 protected:
  void CalibrateDevice(const DeviceParameters& device) {
    SimulatedMachine machine(device);
    calibration_ = Calibrate(machine, kLength);
    EXPECT_EQ(calibration_.level, device.level);
  }

  const FittedParameter& Find(const std::string& name) const {
    for (const FittedParameter& parameter : calibration_.parameters) {
      if (parameter.name == name) return parameter;
    }
    ADD_FAILURE() << "there is no parameter " << name;
    static const FittedParameter none;
    return none;
  }
  void ExpectNear(const std::string& name, Duration expected, double within = 0.03) const {
    const FittedParameter& found = Find(name);
    ASSERT_TRUE(found.value) << name << ": " << found.how;
    const auto wanted = static_cast<double>(expected.count());
    EXPECT_NEAR(*found.value, wanted, wanted * within) << name;
  }
  void ExpectLeftOut(const std::string& name) const { EXPECT_FALSE(Find(name).value) << name; }

  Calibration calibration_;
};

constexpr Duration Microseconds(double time) { return Duration(static_cast<int64_t>(time * 1000)); }

DeviceParameters Sliced() {
  DeviceParameters device;
  device.level = 3;
  device.hold_latency = Microseconds(15);
  device.resume_latency = Microseconds(23);
  device.gate = Microseconds(3.1);
  device.preempt_latency = Microseconds(50);
  device.sliced_preempt_latency = Microseconds(1000);
  device.slice = Microseconds(2048);
  device.switch_running = Microseconds(222);
  device.switch_idle = Microseconds(100);
  device.slice_change = Microseconds(400);
  device.off = Microseconds(560);
  device.on = Microseconds(320);
  device.launch = Microseconds(2.9);
  device.command_latency = Microseconds(12);
  return device;
}

TEST_F(CalibrationTest, finds_the_parameters_of_a_device_with_slices_and_gates) {
  const DeviceParameters device = Sliced();
  CalibrateDevice(device);
  ExpectNear("command_latency_ns", device.command_latency);
  ExpectNear("launch_ns", device.launch);
  ExpectNear("slice_ns", device.slice);
  ExpectNear("switch_ns", device.switch_running);
  ExpectNear("switch_idle_ns", device.switch_idle);
  ExpectNear("preempt_latency_ns", device.preempt_latency, 0.1);
  ExpectNear("gate_ns", device.gate, 0.1);
  ExpectNear("hold_latency_ns", device.hold_latency, 0.1);
  ExpectNear("resume_latency_ns", device.resume_latency, 0.05);
  for (const char* name : {"in_flight", "sliced_preempt_latency_ns", "slice_change_ns", "off_ns", "on_ns"})
    ExpectLeftOut(name);
}

TEST_F(CalibrationTest, finds_other_values_as_well) {
  DeviceParameters device = Sliced();
  device.hold_latency = Microseconds(40);
  device.resume_latency = Microseconds(70);
  device.gate = Microseconds(8);
  device.preempt_latency = Microseconds(200);
  device.slice = Microseconds(1000);
  device.switch_running = Microseconds(60);
  device.switch_idle = Microseconds(150);
  device.launch = Microseconds(6);
  device.command_latency = Microseconds(30);
  CalibrateDevice(device);
  ExpectNear("command_latency_ns", device.command_latency);
  ExpectNear("launch_ns", device.launch);
  ExpectNear("slice_ns", device.slice);
  ExpectNear("switch_ns", device.switch_running);
  ExpectNear("switch_idle_ns", device.switch_idle);
  ExpectNear("preempt_latency_ns", device.preempt_latency, 0.1);
  ExpectNear("gate_ns", device.gate, 0.1);
  ExpectNear("hold_latency_ns", device.hold_latency, 0.1);
  ExpectNear("resume_latency_ns", device.resume_latency, 0.05);
}

TEST_F(CalibrationTest, a_device_that_takes_commands_in_turn_has_no_slices) {
  DeviceParameters device = Sliced();
  device.level = 2;
  device.slice = {};
  CalibrateDevice(device);
  ExpectNear("slice_ns", Duration::zero());
  ExpectLeftOut("switch_ns");
  ExpectLeftOut("switch_idle_ns");
  ExpectNear("preempt_latency_ns", device.preempt_latency, 0.1);
  ExpectNear("gate_ns", device.gate, 0.1);
}

TEST_F(CalibrationTest, finds_what_bounds_the_commands_in_flight_at_level_1) {
  DeviceParameters device;
  device.level = 1;
  device.hold_latency = Microseconds(150);
  device.resume_latency = Microseconds(60);
  device.preempt_latency = Microseconds(2000);
  device.in_flight = 12;
  device.slice = Microseconds(3000);
  device.launch = Microseconds(25);
  device.command_latency = Microseconds(80);
  CalibrateDevice(device);
  ExpectNear("command_latency_ns", device.command_latency);
  ExpectNear("launch_ns", device.launch);
  ExpectNear("slice_ns", device.slice);
  ExpectNear("preempt_latency_ns", device.preempt_latency);
  ExpectNear("in_flight", Duration(12));
  ExpectNear("resume_latency_ns", device.resume_latency, 0.05);
  ExpectNear("hold_latency_ns", device.hold_latency, 0.1);
  ExpectLeftOut("gate_ns");
  ExpectLeftOut("slice_change_ns");
}

TEST_F(CalibrationTest, a_hold_that_comes_at_once_is_below_what_can_be_seen) {
  DeviceParameters device = Sliced();
  device.hold_latency = {};
  CalibrateDevice(device);
  ExpectLeftOut("hold_latency_ns");
}

TEST_F(CalibrationTest, a_device_that_does_nothing_in_time_is_not_measured) {
  DeviceParameters device;
  device.launch = kLength;
  SimulatedMachine machine(device);
  EXPECT_THROW(Calibrate(machine, kLength), CommandError);
}

}  // namespace
}  // namespace xsched::cli
