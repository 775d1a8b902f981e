// Recordings in xsched simulate: what is wrong with them, and the row of what was recorded.
#include "cli/simulate/recorded.h"

#include <gtest/gtest.h>

#include <sstream>

#include "cli/simulate/load_file.h"

namespace xsched::cli {
namespace {

using std::chrono::milliseconds;

const std::string kHead =
    "{\"xsched_record\":1,\"recorded\":{\"started\":\"2026-11-22T20:00:00Z\",\"policy\":\"HPF\"}}\n"
    "{\"t\":0,\"device\":{\"id\":0,\"platform\":\"none\",\"name\":\"D\",\"level\":2}}\n"
    "{\"t\":0,\"process\":{\"id\":1,\"name\":\"serve\"}}\n"
    "{\"t\":0,\"queue\":{\"id\":1,\"process\":1,\"device\":0,\"hints\":{\"deadline_us\":15000}}}\n";
const std::string kEnd = "{\"t\":100000000,\"end\":{\"why\":\"time\"}}\n";

std::string Burst(int64_t at_ms, int64_t span_ms, int commands, int64_t device_ms,
                  const std::string& more = "") {
  constexpr int64_t kMs = 1'000'000;
  return fmt::format(
      "{{\"t\":{},\"burst\":{{\"queue\":1,\"commands\":{},\"device_ns\":{},\"span_ns\":{}{}}}}}\n",
      at_ms * kMs, commands, device_ms * kMs, span_ms * kMs, more);
}

class Recording {
 public:
  explicit Recording(const std::string& text) {
    std::istringstream input(text);
    reader_.Read(input, "FILE");
    load_ = reader_.Finish(std::nullopt, std::nullopt);
  }
  const sched::sim::Load& load() const { return load_; }
  Outcome Recorded(Duration warm_up = {}) const {
    return RecordedOutcome(load_, reader_.recorded(), warm_up);
  }
  const std::vector<std::string>& warnings() const { return reader_.warnings(); }

 private:
  LoadReader reader_;
  sched::sim::Load load_;
};

std::string Error(const std::string& text) {
  try {
    const Recording recording(text);
  } catch (const CommandError& error) {
    return error.what();
  }
  return "none";
}

TEST(Recorded, each_burst_is_a_task_and_its_span_is_the_latency) {
  const Recording recording(kHead + Burst(10, 4, 2, 4) + Burst(30, 20, 3, 5) + kEnd);
  const Outcome outcome = recording.Recorded();
  EXPECT_EQ(outcome.scheme.name, "recorded");
  const QueueOutcome* serve = outcome.Find("serve");
  ASSERT_NE(serve, nullptr);
  EXPECT_EQ(serve->tasks, 2u);
  EXPECT_DOUBLE_EQ(serve->max_ms, 20);
  EXPECT_EQ(serve->missed, 1u) << "later than 15 ms";
  EXPECT_DOUBLE_EQ(serve->commands_per_second, 50);
  EXPECT_DOUBLE_EQ(serve->share, 0.09);
}

// A server first records a queue as its program made it, and then with the hints that the program gives it.
TEST(Recorded, a_burst_is_late_by_the_deadline_that_its_queue_had_when_it_began) {
  std::string head = kHead;
  head.replace(head.find(",\"hints\""), 30, "");
  const Recording recording(
      head +
      "{\"t\":1000,\"queue\":{\"id\":1,\"process\":1,\"device\":0,\"hints\":{\"deadline_us\":15000}}}\n" +
      Burst(10, 4, 2, 4) + Burst(30, 20, 3, 5) +
      "{\"t\":60000000,\"queue\":{\"id\":1,\"process\":1,\"device\":0,\"hints\":{\"deadline_us\":30000}}}\n" +
      Burst(65, 20, 3, 5) + kEnd);
  const QueueOutcome serve = *recording.Recorded().Find("serve");
  EXPECT_TRUE(serve.has_deadline);
  EXPECT_EQ(serve.missed, 1u);
}

TEST(Recorded, the_warm_up_does_not_count) {
  const Recording recording(kHead + Burst(10, 4, 2, 4) + Burst(30, 20, 3, 5) + kEnd);
  const Outcome outcome = recording.Recorded(milliseconds(20));
  const QueueOutcome* serve = outcome.Find("serve");
  EXPECT_EQ(serve->tasks, 1u);
  EXPECT_DOUBLE_EQ(serve->commands_per_second, 3 / 0.08);
}

TEST(Recorded, the_simulation_of_a_device_that_is_not_shared_is_what_was_recorded) {
  std::string text = kHead;
  for (int i = 0; i < 9; ++i) text += Burst(i * 10, 4, 20, 4);
  const Recording recording(text + kEnd);
  const QueueOutcome recorded = *recording.Recorded().Find("serve");
  const QueueOutcome native = *Predict(recording.load(), SchemeByName("native"), {}).Find("serve");
  EXPECT_EQ(native.tasks, recorded.tasks);
  EXPECT_DOUBLE_EQ(native.commands_per_second, recorded.commands_per_second);
  EXPECT_NEAR(native.p50_ms, recorded.p50_ms, 1e-6);
}

TEST(Recorded, a_burst_that_nobody_saw_has_the_length_of_the_others) {
  const Recording recording(kHead + Burst(10, 4, 2, 4) + Burst(30, 0, 3, 0, ",\"unseen\":true") + kEnd);
  ASSERT_EQ(recording.load().queues[0].tasks.size(), 2u);
  EXPECT_EQ(recording.load().queues[0].tasks[1].command, milliseconds(2));
  EXPECT_DOUBLE_EQ(recording.Recorded().Find("serve")->max_ms, 6);
}

TEST(Recorded, the_rest_of_a_burst_that_was_cut_follows_it_whatever_the_time) {
  const Recording recording(kHead + Burst(0, 10, 5, 10, ",\"cut\":true") +
                            Burst(15, 10, 5, 10, ",\"continued\":true") + kEnd);
  const auto& tasks = recording.load().queues[0].tasks;
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_TRUE(tasks[1].follows);
}

TEST(Recorded, a_recording_that_lost_records_is_read_with_a_warning_that_says_how_many) {
  const Recording recording(kHead +
                            "{\"t\":5,\"lost\":{\"records\":7}}\n{\"t\":9,\"lost\":{\"records\":5}}\n" +
                            Burst(10, 4, 2, 4) + kEnd);
  ASSERT_EQ(recording.warnings().size(), 1u);
  EXPECT_EQ(recording.warnings()[0].find("FILE: 12 records were lost"), 0u) << recording.warnings()[0];
  EXPECT_EQ(recording.load().queues[0].tasks.size(), 1u);
}

TEST(Recorded, a_recording_without_an_end_is_read_with_a_warning) {
  for (const char* cut : {"", "{\"t\":20000000,\"bur"}) {
    const Recording recording(kHead + Burst(10, 4, 2, 4) + cut);
    ASSERT_EQ(recording.warnings().size(), 1u);
    EXPECT_EQ(recording.warnings()[0], "FILE: the recording was cut off: it has no end");
  }
  EXPECT_TRUE(Recording(kHead + kEnd).warnings().empty());
}

TEST(Recorded, an_error_names_the_line_and_what_is_wrong) {
  const auto with = [](const std::string& line) { return Error(kHead + line + "\n" + kEnd); };
  EXPECT_EQ(with("{\"t\":1,\"weather\":{}}"), "FILE:5: no kind of line that a recording has");
  EXPECT_EQ(with("{\"t\":1}"), "FILE:5: no kind of line that a recording has");
  EXPECT_EQ(with("{\"burst\":{}}"), "FILE:5: t is missing");
  EXPECT_EQ(with("{\"t\":1,\"hold\":{\"queue\":2,\"span_ns\":1}}"),
            "FILE:5: hold: queue 2 has no line before this one");
  EXPECT_EQ(with("{\"t\":1,\"hold\":{\"queue\":1}}"), "FILE:5: hold: span_ns is missing");
  EXPECT_EQ(with("{\"t\":1,\"lost\":{\"records\":0}}").substr(0, 19), "FILE:5: lost: recor");
  EXPECT_EQ(with("{\"t\":1,\"burst\":{\"queue\":1,\"device_ns\":1}}"), "FILE:5: burst: commands is missing");
  EXPECT_EQ(with("{\"t\":1,\"burst\":{\"queue\":1,\"commands\":1,\"device_ns\":1,\"unseen\":1}}"),
            "FILE:5: burst: unseen must be true or false");
  EXPECT_EQ(with("{\"t\":1,\"wait\":{\"queue\":1,\"for\":5}}"),
            "FILE:5: wait: for 5 has no line before this one");
  EXPECT_EQ(with("{\"t\":1,\"queue\":{\"id\":2,\"process\":4,\"device\":0}}"),
            "FILE:5: queue: process 4 has no line before this one");
  EXPECT_EQ(with("{\"t\":1,\"gone\":[]}"), "FILE:5: gone: not a JSON object");
  EXPECT_EQ(with("nonsense"), "FILE:5: not JSON");
  EXPECT_EQ(Error(kHead + kEnd + Burst(10, 4, 2, 4)), "FILE:6: a line after the end");
}

}  // namespace
}  // namespace xsched::cli
