#include "cli/calibrate/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "cli/simulate/device_file.h"

namespace xsched::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Every parameter that calibration can find, each with a value of its own.
CalibratedDevice Device() {
  CalibratedDevice device{
      .name = "a device", .platform = "a platform", .calibration = {.level = 3, .parameters = {}}};
  double value = 1000;
  for (const char* name :
       {"hold_latency_ns", "resume_latency_ns", "gate_ns", "preempt_latency_ns", "slice_ns", "switch_ns",
        "switch_idle_ns", "launch_ns", "command_latency_ns", "in_flight"})
    device.calibration.parameters.push_back({name, value += 1000, 20, "somehow"});
  device.calibration.parameters.push_back({"off_ns", std::nullopt, 0, "nobody sees it"});
  return device;
}

TEST(CalibrationFile, is_read_by_the_simulator_with_every_parameter) {
  std::string path = (std::filesystem::temp_directory_path() / "device-XXXXXX").string();
  ASSERT_GE(mkstemp(path.data()), 0);
  std::ofstream(path) << CalibrationJson(Device());
  const sched::sim::DeviceParameters read = ReadDevice(path);
  std::filesystem::remove(path);
  EXPECT_EQ(read.name, "a device");
  EXPECT_EQ(read.platform, "a platform");
  EXPECT_EQ(read.level, 3);
  EXPECT_EQ(read.hold_latency.count(), 2000);
  EXPECT_EQ(read.resume_latency.count(), 3000);
  EXPECT_EQ(read.gate.count(), 4000);
  EXPECT_EQ(read.preempt_latency.count(), 5000);
  EXPECT_EQ(read.slice.count(), 6000);
  EXPECT_EQ(read.switch_running.count(), 7000);
  EXPECT_EQ(read.switch_idle.count(), 8000);
  EXPECT_EQ(read.launch.count(), 9000);
  EXPECT_EQ(read.command_latency.count(), 10000);
  EXPECT_EQ(read.in_flight, 11000);
  EXPECT_EQ(read.off.count(), 0);
}

TEST(CalibrationFile, says_how_each_was_measured_and_why_others_were_not) {
  const std::string text = CalibrationJson(Device());
  EXPECT_THAT(text, HasSubstr("somehow"));
  EXPECT_THAT(text, HasSubstr("\"off_ns\": \"nobody sees it\""));
}

TEST(CalibrationTable, has_times_with_units_and_no_value_for_what_was_left_out) {
  const std::string text = CalibrationText(Device());
  EXPECT_THAT(text, HasSubstr("2.0 µs"));
  EXPECT_THAT(text, HasSubstr("11000 "));
  EXPECT_THAT(text, HasSubstr("left out"));
  EXPECT_THAT(text, Not(HasSubstr("11.0 µs")));
}

}  // namespace
}  // namespace xsched::cli
