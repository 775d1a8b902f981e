// What is read of a load, and what is said where it is wrong.
#include "cli/simulate/load_file.h"

#include <gtest/gtest.h>

#include <sstream>

#include "cli/simulate/outcome.h"

namespace xsched::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const std::string kHead =
    "{\"xsched_record\":1,\"started\":\"2026-11-22T20:00:00Z\",\"version\":\"2.0.0\",\"policy\":\"HPF\"}\n"
    "{\"t\":0,\"device\":{\"id\":0,\"platform\":\"none\",\"name\":\"D\",\"level\":2}}\n"
    "{\"t\":0,\"process\":{\"id\":1,\"name\":\"serve\",\"pid\":1,\"job\":\"\"}}\n"
    "{\"t\":0,\"queue\":{\"id\":4,\"process\":1,\"device\":0,\"level\":2,\"hints\":{\"priority\":3}}}\n";

sched::sim::Load Read(const std::string& text, std::optional<Duration> length = std::nullopt) {
  std::istringstream input(text);
  LoadReader reader;
  reader.Read(input, "FILE");
  return reader.Finish(length, std::nullopt);
}

std::string Error(const std::string& text) {
  try {
    Read(text);
  } catch (const CommandError& error) {
    return error.what();
  }
  return "none";
}

TEST(LoadFile, recorded_bursts_come_at_their_times) {
  const sched::sim::Load load =
      Read(kHead +
           "{\"t\":5000000,\"burst\":{\"queue\":4,\"commands\":12,\"device_ns\":2400000,"
           "\"span_ns\":3000000,\"submit_ns\":600000,\"alone\":true}}\n"
           "{\"t\":25000000,\"burst\":{\"queue\":4,\"commands\":1,\"device_ns\":500000,"
           "\"span_ns\":1000000,\"alone\":false}}\n");
  ASSERT_EQ(load.queues.size(), 1u);
  EXPECT_EQ(load.queues[0].name, "serve");
  EXPECT_EQ(load.queues[0].hints.priority, 3);
  const auto& tasks = load.queues[0].tasks;
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(tasks[0].at, milliseconds(5));
  EXPECT_EQ(tasks[0].commands, 12u);
  EXPECT_EQ(tasks[0].command, std::chrono::microseconds(200));
  EXPECT_EQ(tasks[1].at, milliseconds(25));
  EXPECT_FALSE(tasks[1].follows);
  EXPECT_EQ(load.length, milliseconds(26));
}

// Also the rest of a burst that the recorder has cut.
TEST(LoadFile, a_burst_right_after_another_follows_it) {
  const sched::sim::Load load = Read(
      kHead +
      "{\"t\":0,\"burst\":{\"queue\":4,\"commands\":9,\"device_ns\":9000000,\"span_ns\":9000000}}\n"
      "{\"t\":9500000,\"burst\":{\"queue\":4,\"commands\":9,\"device_ns\":9000000,\"span_ns\":9000000}}\n"
      "{\"t\":30000000,\"burst\":{\"queue\":4,\"commands\":9,\"device_ns\":9,\"span_ns\":9}}\n"
      "{\"t\":30000009,\"end\":{}}\n");
  const auto& tasks = load.queues[0].tasks;
  ASSERT_EQ(tasks.size(), 3u);
  EXPECT_FALSE(tasks[0].follows);
  EXPECT_TRUE(tasks[1].follows);
  EXPECT_EQ(tasks[1].at, std::chrono::microseconds(500));
  EXPECT_FALSE(tasks[2].follows);
}

TEST(LoadFile, a_wait_belongs_to_the_burst_in_which_it_began) {
  const sched::sim::Load load =
      Read(kHead +
           "{\"t\":0,\"queue\":{\"id\":5,\"process\":1,\"device\":0}}\n"
           "{\"t\":1000000,\"burst\":{\"queue\":4,\"commands\":1,\"device_ns\":9,\"span_ns\":9000}}\n"
           "{\"t\":5000100,\"wait\":{\"queue\":4,\"for\":5}}\n"
           "{\"t\":5000000,\"burst\":{\"queue\":4,\"commands\":1,\"device_ns\":9,\"span_ns\":9000}}\n");
  const auto& tasks = load.queues[0].tasks;
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(tasks[0].waits_for, -1);
  EXPECT_EQ(tasks[1].waits_for, 1);
  EXPECT_EQ(load.queues[1].name, "serve#2");
}

TEST(LoadFile, generated_tasks_come_periodically_at_random_or_without_a_pause) {
  const auto with = [](const std::string& load) {
    return Read(kHead + "{\"t\":1000000,\"load\":{\"queue\":4,\"command_ns\":1000," + load + "}}\n",
                seconds(10));
  };
  EXPECT_EQ(with("\"period_ns\":10000000,\"until_ns\":101000000").queues[0].tasks.size(), 10u);
  EXPECT_NEAR(static_cast<double>(
                  with("\"period_ns\":1000000,\"arrivals\":\"poisson\",\"seed\":3").queues[0].tasks.size()),
              9999, 300);
  const auto endless = with("\"commands\":3").queues[0].tasks;
  ASSERT_EQ(endless.size(), 1u);
  EXPECT_EQ(endless[0].commands, sched::sim::kWithoutEnd);
  EXPECT_EQ(endless[0].until, seconds(10));
  EXPECT_EQ(with("\"pause_ns\":5").queues[0].tasks.at(0).repeat, Duration(5));
}

TEST(LoadFile, no_task_arrives_after_until_also_with_jitter) {
  const auto load = Read(kHead +
                             "{\"t\":0,\"load\":{\"queue\":4,\"command_ns\":1000,\"period_ns\":10000000,"
                             "\"jitter_ns\":500000000,\"until_ns\":1000000000}}\n",
                         seconds(10));
  const auto& tasks = load.queues[0].tasks;
  EXPECT_LT(tasks.back().at, seconds(1));
  EXPECT_NEAR(static_cast<double>(tasks.size()), 75, 10)
      << "half of those of the last half second come later";
}

TEST(LoadFile, a_queue_is_there_from_its_first_line_or_work_until_it_is_gone) {
  const sched::sim::Load load =
      Read(kHead +
               "{\"t\":5000,\"queue\":{\"id\":5,\"process\":1,\"device\":0}}\n"
               "{\"t\":7000,\"queue\":{\"id\":6,\"process\":1,\"device\":0}}\n"
               "{\"t\":6000,\"burst\":{\"queue\":6,\"commands\":1,\"device_ns\":9,\"span_ns\":9}}\n"
               "{\"t\":9000,\"gone\":{\"queue\":5}}\n",
           seconds(1));
  EXPECT_EQ(load.queues[0].from, Duration::zero());
  EXPECT_FALSE(load.queues[0].gone);
  EXPECT_EQ(load.queues[1].from, Duration(5000));
  EXPECT_EQ(load.queues[1].gone, Duration(9000));
  EXPECT_EQ(load.queues[2].from, Duration(6000)) << "a recording may describe it late";
}

TEST(LoadFile, a_process_takes_its_queues_along) {
  const sched::sim::Load load = Read(kHead +
                                         "{\"t\":0,\"queue\":{\"id\":5,\"process\":1,\"device\":0}}\n"
                                         "{\"t\":9000,\"gone\":{\"process\":1}}\n",
                                     seconds(1));
  for (const auto& queue : load.queues) EXPECT_EQ(queue.gone, Duration(9000));
}

TEST(LoadFile, the_same_line_again_changes_hints) {
  const sched::sim::Load load =
      Read(kHead + "{\"t\":7,\"queue\":{\"id\":4,\"process\":1,\"device\":0,\"hints\":{\"priority\":9}}}\n");
  ASSERT_EQ(load.queues.size(), 1u);
  ASSERT_EQ(load.queues[0].changes.size(), 1u);
  EXPECT_EQ(load.queues[0].changes[0].at, Duration(7));
  EXPECT_EQ(load.queues[0].changes[0].hints.priority, 9);
}

TEST(LoadFile, programs_of_several_files_share_a_device) {
  LoadReader reader;
  for (const char* name : {"one", "two"}) {
    std::istringstream input(kHead);
    reader.Read(input, name);
  }
  const sched::sim::Load load = reader.Finish(seconds(1), std::nullopt);
  EXPECT_EQ(load.devices.size(), 1u);
  EXPECT_EQ(load.processes.size(), 2u);
  ASSERT_EQ(load.queues.size(), 2u);
  EXPECT_EQ(load.queues[1].device, 0);
  EXPECT_EQ(load.queues[1].name, "serve#2");
}

TEST(LoadFile, no_queue_has_a_higher_level_than_the_device_that_is_given_for_the_load_s) {
  const auto levels = [](int level) {
    std::istringstream input(kHead + "{\"t\":0,\"queue\":{\"id\":5,\"process\":1,\"device\":0}}\n");
    LoadReader reader;
    reader.Read(input, "FILE");
    sched::sim::DeviceParameters device;
    device.level = level;
    const sched::sim::Load load = reader.Finish(seconds(1), device);
    return std::vector<int>{load.queues[0].level, load.queues[1].level};
  };
  EXPECT_EQ(levels(1), std::vector<int>({1, 1}));
  EXPECT_EQ(levels(3), std::vector<int>({2, 3})) << "the first one says 2, the second one nothing";
  EXPECT_EQ(Read(kHead + "{\"t\":0,\"queue\":{\"id\":5,\"process\":1,\"device\":0}}\n").queues[1].level, 2);
}

TEST(LoadFile, unknown_lines_are_ignored) {
  EXPECT_EQ(Read(kHead + "{\"t\":1,\"weather\":{}}\n").queues.size(), 1u);
}

// A recorder may be stopped while it writes. Who writes a load by hand has made a mistake.
TEST(LoadFile, a_last_line_that_was_cut_off_is_ignored_in_a_recording_only) {
  const std::string cut = "{\"t\":5,\"burst\":{\"que";
  std::string recording = kHead + cut;
  recording.replace(recording.find("\"started\""), 0, "\"recorded\":{},");
  EXPECT_EQ(Read(recording).queues.size(), 1u);
  EXPECT_EQ(Error(kHead + cut), "FILE:5: not JSON");
}

std::string ErrorOfLoad(const std::string& load) {
  return Error(kHead + "{\"t\":1,\"load\":{\"queue\":4,\"command_ns\":1000," + load + "}}\n");
}

TEST(LoadFile, a_key_that_is_misspelled_is_an_error) {
  EXPECT_EQ(ErrorOfLoad("\"comands\":2"), "FILE:5: load: unknown key comands");
  EXPECT_EQ(
      Error(kHead + "{\"t\":0,\"queue\":{\"id\":5,\"process\":1,\"device\":0,\"hints\":{\"prio\":1}}}\n"),
      "FILE:5: queue: hints: unknown key prio");
  EXPECT_EQ(Error(kHead + "{\"t\":0,\"device\":{\"id\":1,\"parameters\":{\"hold_latency\":1}}}\n"),
            "FILE:5: device: parameters: unknown key hold_latency");
}

TEST(LoadFile, a_load_that_contradicts_itself_is_an_error) {
  EXPECT_EQ(ErrorOfLoad("\"arrivals\":\"poisson\""), "FILE:5: load: arrivals need a period_ns");
  EXPECT_EQ(ErrorOfLoad("\"period_ns\":0"), "FILE:5: load: period_ns must not be 0");
  EXPECT_EQ(ErrorOfLoad("\"for\":4"), "FILE:5: load: for: a queue that waits for itself never runs");
}

TEST(LoadFile, a_load_with_more_tasks_than_memory_has_room_for_is_an_error) {
  EXPECT_EQ(ErrorOfLoad("\"period_ns\":1,\"until_ns\":30000000000").substr(0, 65),
            "FILE:5: load: with this line the load has more than 10000000 task");
  EXPECT_EQ(ErrorOfLoad("\"pause_ns\":0,\"until_ns\":30000000000").substr(0, 65),
            "FILE:5: load: with this line the load has more than 10000000 task");
  EXPECT_EQ(ErrorOfLoad("\"pause_ns\":3000,\"until_ns\":30000000000"), "none");
}

TEST(LoadFile, a_task_that_takes_longer_than_times_go_is_an_error) {
  EXPECT_EQ(ErrorOfLoad("\"commands\":2000000000,\"launch_ns\":30000000000000000,\"pause_ns\":1"),
            "FILE:5: load: the commands of a task together take more than a century");
}

TEST(LoadFile, jobs_of_different_recordings_are_different_ones) {
  const auto jobs = [](const std::string& kind) {
    LoadReader reader;
    for (const char* name : {"one", "two"}) {
      std::istringstream input("{\"xsched_record\":1" + kind + "}\n" +
                               "{\"t\":0,\"process\":{\"id\":1,\"name\":\"train\",\"job\":\"1\"}}\n"
                               "{\"t\":0,\"process\":{\"id\":2,\"name\":\"train\",\"job\":\"1\"}}\n");
      reader.Read(input, name);
    }
    std::vector<uint64_t> found;
    for (const auto& process : reader.Finish(seconds(1), std::nullopt).processes)
      found.push_back(process.job);
    return found;
  };
  EXPECT_EQ(jobs(",\"recorded\":{}"), (std::vector<uint64_t>{1, 1, 2, 2}));
  EXPECT_EQ(jobs(""), (std::vector<uint64_t>{1, 1, 1, 1})) << "names that somebody gave are the same";
}

TEST(LoadFile, guarantees_of_more_than_a_device_are_refused) {
  const auto with = [](const std::string& more) {
    return Error(kHead + "{\"t\":0,\"process\":{\"id\":2,\"name\":\"b\"}}\n" +
                 "{\"t\":0,\"queue\":{\"id\":5,\"process\":1,\"device\":0,\"hints\":{\"guarantee_us\":6000,"
                 "\"period_us\":10000}}}\n" +
                 more);
  };
  const std::string second =
      "{\"t\":7,\"queue\":{\"id\":6,\"process\":2,\"device\":0,\"hints\":{\"guarantee_us\":4000,"
      "\"period_us\":10000}}}\n";
  EXPECT_EQ(with(second), "none");
  std::string more = second;
  more.replace(more.find("4000"), 4, "7000");
  EXPECT_EQ(with(more), "the guarantees on D are 130.0 % of it from t 7 on: lower guarantee_us");
  std::string later = more;
  later.replace(later.find(":7"), 2, ":9");
  EXPECT_EQ(with(second + later), "the guarantees on D are 130.0 % of it from t 9 on: lower guarantee_us");
  EXPECT_EQ(with("{\"t\":7,\"gone\":{\"queue\":5}}\n" + more), "none") << "one comes when the other goes";
}

TEST(LoadFile, names_have_no_control_characters) {
  std::string text = kHead;
  text.replace(text.find("serve"), 5, "a\\u001b]0;b\\u0007\\u009bc\u8bed");
  EXPECT_EQ(Read(text).queues[0].name, "a?]0;b??c\u8bed");
}

TEST(LoadFile, an_error_names_the_file_and_the_line) {
  EXPECT_EQ(Error(""), "FILE: empty");
  EXPECT_EQ(Error("{}\n"), "FILE:1: xsched_record is missing");
  EXPECT_EQ(Error("{\"xsched_record\":3}\n"), "FILE:1: xsched_record must be a whole number from 1 to 2");
  EXPECT_EQ(Error(kHead + "[]\n"), "FILE:5: not a JSON object");
  EXPECT_EQ(Error(kHead + "{\"burst\"\n{}\n"), "FILE:5: not JSON");
  EXPECT_EQ(Error(kHead + "{\"t\":1,\"burst\":{\"queue\":9,\"commands\":1,\"device_ns\":1}}\n"),
            "FILE:5: burst: queue 9 has no line before this one");
  EXPECT_EQ(Error(kHead + "{\"t\":1,\"load\":{\"queue\":4,\"command_ns\":0}}\n"),
            "FILE:5: load: command_ns must not be 0");
  EXPECT_EQ(Error(kHead + "{\"t\":-1,\"gone\":{\"queue\":4}}\n").substr(0, 9), "FILE:5: t");
}

}  // namespace
}  // namespace xsched::cli
