// Recordings as traces. The trace is read back by a reader of its own (testing/packets.h).
#include "cli/trace/timeline.h"

#include <gmock/gmock.h>

#include <sstream>

#include "cli/trace/testing/packets.h"

namespace xsched::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kHead =
    R"({"xsched_record":1,"recorded":{"started":"2026-11-23T02:00:00Z","version":"2.0.0","policy":"HPF","anonymous":false}}
{"t":0,"device":{"id":0,"platform":"CUDA","name":"NVIDIA H200","level":3}}
{"t":0,"process":{"id":1,"name":"serve","pid":812,"user":"ann"}}
{"t":5,"queue":{"id":1,"process":1,"device":0,"level":3,"hints":{"priority":-3}}}
)";

class TimelineTest : public testing::Test {
 protected:
  std::vector<std::string> Read(const std::string& lines) {
    std::istringstream in(kHead + lines);
    timeline_.Read(in, "file");
    std::vector<std::string> packets = Packets(out_.str());
    EXPECT_THAT(
        std::vector(packets.begin(), packets.begin() + 4),
        ElementsAre("track 1 process 812 serve", "track 2 of 1: queue 1 on NVIDIA H200",
                    "track 3 of 1: queue 1 held", "5 ns track 2 point new queue, priority -3, level 3"));
    packets.erase(packets.begin(), packets.begin() + 4);
    return packets;
  }
  std::string ErrorOf(const std::string& text) {
    std::istringstream in(text);
    try {
      timeline_.Read(in, "file");
    } catch (const CommandError& error) {
      return error.what();
    }
    return "";
  }

  std::ostringstream out_;
  Timeline timeline_{out_};
};

TEST_F(TimelineTest, a_burst_is_a_request_and_a_hold_is_beside_it) {
  EXPECT_THAT(
      Read(R"({"t":150,"hold":{"queue":1,"span_ns":20}}
{"t":100,"burst":{"queue":1,"commands":5,"launched":5,"device_ns":70,"span_ns":90,"waiting_ns":20}}
{"t":500,"end":{"why":"time"}}
)"),
      ElementsAre("150 ns track 3 begins held", "170 ns track 3 ends", "100 ns track 2 begins request",
                  "190 ns track 2 ends, commands 5, device time, ns 70, held or off the device, ns 20",
                  "track 4: NVIDIA H200: runs", "track 5: NVIDIA H200: decisions",
                  "track 6 counter: NVIDIA H200: queues with work", "100 ns track 6 counts 1",
                  "100 ns track 4 begins queue 1 (serve)", "150 ns track 5 point queue 1 (serve): held",
                  "150 ns track 4 ends", "170 ns track 5 point queue 1 (serve): runs again",
                  "170 ns track 4 begins queue 1 (serve)", "190 ns track 6 counts 0", "190 ns track 4 ends"));
  EXPECT_EQ(timeline_.requests(), 1u);
  EXPECT_FALSE(timeline_.was_cut_off());
}

TEST_F(TimelineTest, an_arrow_goes_from_the_queue_because_of_which_another_does_not_run) {
  EXPECT_THAT(
      Read(R"({"t":6,"process":{"id":2,"name":"train","pid":813,"user":"ann"}}
{"t":6,"queue":{"id":2,"process":2,"device":0,"level":3}}
{"t":150,"hold":{"queue":2,"span_ns":20,"why":"held","by":1}}
{"t":180,"hold":{"queue":2,"span_ns":5,"why":"off device","by":1}}
{"t":190,"hold":{"queue":2,"span_ns":6,"why":"limit"}}
)"),
      testing::IsSupersetOf({"150 ns track 2 point goes before queue 2 (train), arrow 1",
                             "150 ns track 6 begins held for queue 1 (serve), arrow 1", "170 ns track 6 ends",
                             "180 ns track 2 point goes before queue 2 (train), arrow 2",
                             "180 ns track 6 begins process off the device for queue 1 (serve), arrow 2",
                             "190 ns track 6 begins has used up its limit"}));
}

TEST_F(TimelineTest, a_burst_that_was_cut_is_one_request_with_its_rest) {
  EXPECT_THAT(
      Read(R"({"t":100,"burst":{"queue":1,"commands":5,"device_ns":70,"span_ns":100,"cut":true}}
{"t":200,"burst":{"queue":1,"commands":2,"device_ns":30,"span_ns":50,"continued":true}}
{"t":500,"end":{"why":"time"}}
)"),
      ElementsAre("100 ns track 2 begins request",
                  "250 ns track 2 ends, commands 7, device time, ns 100, held or off the device, ns 0",
                  "track 4: NVIDIA H200: runs", "track 5: NVIDIA H200: decisions",
                  "track 6 counter: NVIDIA H200: queues with work", "100 ns track 6 counts 1",
                  "100 ns track 4 begins queue 1 (serve)", "250 ns track 6 counts 0", "250 ns track 4 ends"));
}

TEST_F(TimelineTest, commands_in_flight_are_counted_where_a_burst_was_cut) {
  EXPECT_THAT(
      Read(R"({"t":100,"burst":{"queue":1,"commands":5,"launched":9,"device_ns":70,"span_ns":100,"cut":true}}
{"t":200,"burst":{"queue":1,"commands":2,"launched":1,"device_ns":30,"span_ns":50,"continued":true,"cut":true}}
{"t":250,"burst":{"queue":1,"commands":4,"launched":1,"device_ns":30,"span_ns":50,"continued":true}}
{"t":400,"burst":{"queue":1,"commands":9,"launched":9,"device_ns":30,"span_ns":50,"cut":true}}
{"t":500,"end":{"why":"time"}}
)"),
      testing::IsSupersetOf({"track 4 of 1 counter: queue 1: commands in flight", "200 ns track 4 counts 4",
                             "250 ns track 4 counts 3", "300 ns track 4 counts 0",
                             "450 ns track 4 counts 0"}));
}

TEST_F(TimelineTest, turns_of_processes_on_a_device_are_a_track_of_it) {
  EXPECT_THAT(Read(R"({"t":6,"process":{"id":2,"name":"train","pid":813,"user":"ann"}}
{"t":6,"queue":{"id":2,"process":2,"device":0,"level":3}}
{"t":7,"queue":{"id":3,"process":2,"device":0,"level":3}}
{"t":100,"hold":{"queue":2,"span_ns":50,"why":"off device","by":1}}
{"t":110,"hold":{"queue":3,"span_ns":40,"why":"off device","by":1}}
{"t":150,"hold":{"queue":1,"span_ns":20,"why":"off device","by":2}}
{"t":180,"hold":{"queue":1,"span_ns":20,"why":"off device"}}
{"t":300,"hold":{"queue":1,"span_ns":20,"why":"held","by":2}}
)"),
              testing::IsSupersetOf({"track 12: NVIDIA H200: turns", "100 ns track 12 begins serve (812)",
                                     "150 ns track 12 ends", "150 ns track 12 begins train (813)",
                                     "170 ns track 12 ends", "180 ns track 12 begins another process",
                                     "200 ns track 12 ends"}));
}

TEST_F(TimelineTest, commands_in_flight_are_counted_where_they_were_recorded) {
  EXPECT_THAT(
      Read(R"({"t":110,"in_flight":{"queue":1,"commands":4}}
{"t":150,"in_flight":{"queue":1,"commands":2}}
{"t":100,"burst":{"queue":1,"commands":5,"launched":5,"device_ns":70,"span_ns":90}}
)"),
      testing::IsSupersetOf({"track 4 of 1 counter: queue 1: commands in flight", "110 ns track 4 counts 4",
                             "150 ns track 4 counts 2", "190 ns track 4 counts 0"}));
}

TEST_F(TimelineTest, time_slices_of_a_process_are_a_track_of_it_for_each_device) {
  EXPECT_THAT(Read(R"({"t":6,"device":{"id":1,"platform":"CUDA","name":"H100","level":3}}
{"t":10,"slice":{"process":1,"device":0,"slice_us":1,"span_ns":20}}
{"t":40,"slice":{"process":1,"device":0,"slice_us":100000,"span_ns":5}}
{"t":12,"slice":{"process":1,"device":1,"slice_us":2500,"span_ns":9}}
)"),
              testing::IsSupersetOf({"track 4 of 1: time slice on NVIDIA H200", "10 ns track 4 begins 1 µs",
                                     "30 ns track 4 ends", "40 ns track 4 begins 100 ms",
                                     "45 ns track 4 ends", "track 5 of 1: time slice on H100",
                                     "12 ns track 5 begins 2500 µs", "21 ns track 5 ends"}));
}

TEST_F(TimelineTest, memory_of_a_process_and_its_limit_are_counters_that_end_when_it_has_none) {
  const std::vector<std::string> packets =
      Read(R"({"t":10,"memory":{"process":1,"device":0,"used":3000,"limit":5000,"span_ns":20}}
{"t":30,"memory":{"process":1,"device":0,"used":4000,"limit":5000,"span_ns":5}}
{"t":60,"memory":{"process":1,"device":0,"used":10,"limit":5000,"span_ns":7}}
{"t":500,"end":{"why":"time"}}
)");
  EXPECT_THAT(
      std::vector(packets.begin(), packets.begin() + 12),
      ElementsAre("track 4 of 1 counter: memory of NVIDIA H200",
                  "track 5 of 1 counter: limit of memory of NVIDIA H200", "10 ns track 4 counts 3000",
                  "10 ns track 5 counts 5000", "30 ns track 4 counts 4000", "30 ns track 5 counts 5000",
                  "35 ns track 4 counts 0", "35 ns track 5 counts 0", "60 ns track 4 counts 10",
                  "60 ns track 5 counts 5000", "67 ns track 4 counts 0", "67 ns track 5 counts 0"));
}

TEST_F(TimelineTest, a_turn_that_was_recorded_is_shown_though_nobody_waited_and_is_not_shown_twice) {
  EXPECT_THAT(Read(R"({"t":6,"process":{"id":2,"name":"train","pid":813,"user":"ann"}}
{"t":6,"queue":{"id":2,"process":2,"device":0,"level":3}}
{"t":100,"turn":{"process":1,"device":0,"span_ns":50}}
{"t":110,"hold":{"queue":2,"span_ns":45,"why":"off device","by":1}}
{"t":150,"turn":{"process":2,"device":0,"span_ns":30}}
)"),
              testing::IsSupersetOf({"100 ns track 10 begins serve (812)", "150 ns track 10 ends",
                                     "150 ns track 10 begins train (813)", "180 ns track 10 ends"}));
}

TEST_F(TimelineTest, a_turn_that_no_line_names_is_shown_where_no_recorded_process_has_it) {
  const std::vector<std::string> packets = Read(R"({"t":100,"turn":{"process":1,"device":0,"span_ns":50}}
{"t":140,"hold":{"queue":1,"span_ns":40,"why":"off device"}}
)");
  EXPECT_THAT(packets,
              testing::IsSupersetOf({"100 ns track 7 begins serve (812)", "150 ns track 7 ends",
                                     "150 ns track 7 begins another process", "180 ns track 7 ends"}));
  EXPECT_THAT(packets, testing::Not(testing::Contains(testing::HasSubstr("serve (812), "))));
}

TEST_F(TimelineTest, a_recording_of_version_1_is_read_and_one_of_version_2) {
  Read("");
  std::istringstream in(R"({"xsched_record":2,"recorded":{}}
)");
  EXPECT_NO_THROW(Timeline(out_).Read(in, "file"));
}

TEST_F(TimelineTest, a_request_that_had_not_ended_ends_with_what_is_known) {
  EXPECT_THAT(
      Read(R"({"t":100,"burst":{"queue":1,"commands":5,"device_ns":70,"span_ns":100,"cut":true}}
)"),
      ElementsAre("100 ns track 2 begins request",
                  "200 ns track 2 ends, commands 5, device time, ns 70, held or off the device, ns 0",
                  "track 4: NVIDIA H200: runs", "track 5: NVIDIA H200: decisions",
                  "track 6 counter: NVIDIA H200: queues with work", "100 ns track 6 counts 1",
                  "100 ns track 4 begins queue 1 (serve)", "200 ns track 6 counts 0", "200 ns track 4 ends"));
  EXPECT_TRUE(timeline_.was_cut_off());
}

TEST_F(TimelineTest, queues_of_one_device_are_counted_together_in_the_order_of_time) {
  EXPECT_THAT(Read(R"({"t":6,"queue":{"id":2,"process":1,"device":0,"level":3}}
{"t":120,"burst":{"queue":2,"commands":1,"device_ns":10,"span_ns":10}}
{"t":100,"burst":{"queue":1,"commands":1,"device_ns":10,"span_ns":100}}
)"),
              testing::IsSupersetOf({"100 ns track 8 counts 1", "120 ns track 8 counts 2",
                                     "130 ns track 8 counts 1", "200 ns track 8 counts 0"}));
}

// Tracks 9 and 10 are the device's: what runs, and the decisions.
TEST_F(TimelineTest, what_runs_on_a_device_changes_with_each_decision) {
  EXPECT_THAT(Read(R"({"t":6,"process":{"id":2,"name":"train","pid":813,"user":"ann"}}
{"t":6,"queue":{"id":2,"process":2,"device":0,"level":3}}
{"t":7,"queue":{"id":3,"process":2,"device":0,"level":3}}
{"t":150,"hold":{"queue":2,"span_ns":50,"why":"held","by":1}}
{"t":150,"burst":{"queue":1,"commands":1,"device_ns":48,"span_ns":48}}
{"t":100,"burst":{"queue":2,"commands":1,"device_ns":10,"span_ns":200}}
{"t":210,"burst":{"queue":3,"commands":1,"device_ns":10,"span_ns":10}}
)"),
              testing::IsSupersetOf(
                  {"100 ns track 9 begins queue 2 (train)",
                   "150 ns track 10 point queue 2 (train): held for queue 1 (serve)", "150 ns track 9 ends",
                   "150 ns track 9 begins queue 1 (serve)", "198 ns track 9 ends",
                   "200 ns track 10 point queue 2 (train): runs again, queue 1 (serve) is idle",
                   "200 ns track 9 begins queue 2 (train)", "210 ns track 9 ends",
                   "210 ns track 9 begins queue 2 (train), queue 3 (train)", "220 ns track 9 ends",
                   "220 ns track 9 begins queue 2 (train)", "300 ns track 9 ends"}));
}

TEST_F(TimelineTest, a_hold_for_another_reason_and_the_end_of_work_are_no_resumption) {
  const std::vector<std::string> packets =
      Read(R"({"t":6,"process":{"id":2,"name":"train","pid":813,"user":"ann"}}
{"t":6,"queue":{"id":2,"process":2,"device":0,"level":3}}
{"t":110,"hold":{"queue":2,"span_ns":20,"why":"turn","by":1}}
{"t":130,"hold":{"queue":2,"span_ns":70,"why":"limit"}}
{"t":100,"burst":{"queue":2,"commands":1,"device_ns":10,"span_ns":100}}
)");
  EXPECT_THAT(packets, testing::IsSupersetOf(
                           {"110 ns track 8 point queue 2 (train): waits for its turn behind queue 1 (serve)",
                            "130 ns track 8 point queue 2 (train): has used up its limit"}));
  EXPECT_THAT(packets, testing::Not(testing::Contains(HasSubstr("runs again"))));
}

TEST_F(TimelineTest, of_many_queues_that_run_together_four_are_named) {
  std::string lines;
  for (int queue = 2; queue <= 6; ++queue) {
    lines += fmt::format("{{\"t\":6,\"queue\":{{\"id\":{},\"process\":1,\"device\":0}}}}\n", queue);
    lines += fmt::format(
        "{{\"t\":100,\"burst\":{{\"queue\":{},\"commands\":1,\"device_ns\":1,\"span_ns\":9}}}}\n", queue);
  }
  EXPECT_THAT(Read(lines), testing::Contains("100 ns track 14 begins queue 2 (serve), queue 3 (serve), "
                                             "queue 4 (serve), queue 5 (serve) and 1 more"));
}

TEST_F(TimelineTest, other_hints_waits_and_lost_records_are_told) {
  EXPECT_THAT(Read(R"({"t":6,"queue":{"id":1,"process":1,"device":0,"level":3,"hints":{"priority":9}}}
{"t":7,"queue":{"id":2,"process":1,"device":0,"level":1}}
{"t":8,"wait":{"queue":1,"for":2}}
{"t":9,"lost":{"records":12}}
{"t":9,"gone":{"queue":2}}
)"),
              testing::IsSupersetOf({"6 ns track 2 point other hints, priority 9",
                                     "8 ns track 2 point waits for queue 2 (serve)"}));
  EXPECT_EQ(timeline_.lost(), 12u);
}

TEST_F(TimelineTest, what_is_no_recording_is_an_error_with_its_place) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("file: empty"));
  EXPECT_THAT(ErrorOf("{\"xsched_record\":1}\n"), HasSubstr("file:1: this is a load"));
  EXPECT_THAT(ErrorOf("{\"xsched_record\":3,\"recorded\":{}}\n"), HasSubstr("file:1: xsched_record"));
  const std::string head = kHead;
  for (const char* line :
       {R"({"t":1,"burst":{"queue":7,"device_ns":1,"commands":1}})", R"({"t":1,"color":{}})", "[]",
        "{\"t\":-1}", R"({"t":1,"queue":{"id":2,"process":3,"device":0}})",
        R"({"t":1,"hold":{"queue":1}})"}) {
    out_.str("");
    EXPECT_THAT(ErrorOf(head + line + "\n"), HasSubstr("file:5")) << line;
  }
}

// PyTorch's profile, of a program that is recorded.
constexpr const char* kProfile = R"({"schemaVersion":1,"traceEvents":[
{"ph":"M","name":"process_name","pid":812,"tid":0,"args":{"name":"python3"}},
{"ph":"M","name":"process_labels","pid":812,"tid":0,"args":{"labels":"CPU"}},
{"ph":"M","name":"process_labels","pid":0,"tid":0,"args":{"labels":"GPU 0"}},
{"ph":"M","name":"thread_name","pid":0,"tid":7,"args":{"name":"stream 7 "}},
{"ph":"X","cat":"cpu_op","name":"aten::add","pid":812,"tid":812,"ts":1000000.101,"dur":0.02,"args":{"Ev Idx":0}},
{"ph":"X","cat":"kernel","name":"add_kernel","pid":0,"tid":7,"ts":1000000.130,"dur":0.015},
{"ph":"s","id":5,"pid":812,"tid":812,"ts":1000000.101,"cat":"ac2g","name":"ac2g"},
{"ph":"f","id":5,"pid":0,"tid":7,"ts":1000000.130,"cat":"ac2g","name":"ac2g","bp":"e"},
{"ph":"X","cat":"cpu_op","name":"too late","pid":812,"tid":812,"ts":1000000.501,"dur":1}
],"baseTimeNanoseconds":1795377600000000000})";

TEST_F(TimelineTest, a_profile_of_torch_is_shown_at_its_time_in_the_process_that_was_recorded) {
  std::string head = kHead;
  head.insert(head.find("\"version\""), "\"started_unix_ns\":1795377601000000000,");
  std::istringstream in(head + R"({"t":100,"burst":{"queue":1,"commands":5,"device_ns":70,"span_ns":90}}
{"t":500,"end":{"why":"time"}}
)");
  timeline_.UseUnixTimes();
  timeline_.Read(in, "file");
  std::istringstream profile(kProfile);
  const ShownSlices slices = timeline_.AddTorch(ReadChromeTrace(profile, "profile"));
  EXPECT_EQ(slices.shown, 2u);
  EXPECT_EQ(slices.left_out, 1u);
  EXPECT_THAT(
      Packets(out_.str()),
      testing::IsSupersetOf({"track 1 process 812 serve", "1795377601000000100 ns track 2 begins request",
                             "track 7: torch: 0 (GPU 0)", "track 8 of 7: stream 7 ",
                             "1795377601000000130 ns track 8 begins add_kernel, category kernel, arrow 1",
                             "1795377601000000145 ns track 8 ends", "track 9 of 1: thread 812",
                             "1795377601000000101 ns track 9 begins aten::add, category cpu_op, arrow 1",
                             "1795377601000000121 ns track 9 ends"}));
}

TEST_F(TimelineTest, a_recording_that_does_not_say_when_it_began_cannot_be_laid_beside_a_profile) {
  timeline_.UseUnixTimes();
  EXPECT_THAT(ErrorOf(kHead), HasSubstr("file:1: recorded: started_unix_ns is missing"));
}

TEST_F(TimelineTest, the_last_line_may_be_incomplete) {
  EXPECT_THAT(Read(R"({"t":100,"bur)"),
              ElementsAre("track 4: NVIDIA H200: runs", "track 5: NVIDIA H200: decisions",
                          "track 6 counter: NVIDIA H200: queues with work"));
  EXPECT_TRUE(timeline_.was_cut_off());
}

}  // namespace
}  // namespace xsched::cli
