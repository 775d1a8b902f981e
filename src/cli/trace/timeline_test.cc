// Recordings as traces. The trace is read back by a reader of its own, field by field.
#include "cli/trace/timeline.h"

#include <gmock/gmock.h>

#include <sstream>

namespace xsched::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Field {
  uint64_t number;
  uint64_t value;
  std::string bytes;
};

uint64_t TakeVarint(std::string_view& from) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(from.at(0));
    from.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

std::vector<Field> FieldsOf(std::string_view bytes) {
  std::vector<Field> fields;
  while (!bytes.empty()) {
    const uint64_t tag = TakeVarint(bytes);
    if ((tag & 7) == 1) {
      uint64_t value = 0;
      for (size_t byte = 0; byte < 8; ++byte)
        value |= uint64_t{static_cast<unsigned char>(bytes.at(byte))} << (8 * byte);
      bytes.remove_prefix(8);
      fields.push_back({tag >> 3, value, ""});
      continue;
    }
    Field field{tag >> 3, TakeVarint(bytes), ""};
    if ((tag & 7) == 2) {
      field.bytes = bytes.substr(0, field.value);
      bytes.remove_prefix(field.value);
    } else {
      EXPECT_EQ(tag & 7, 0u);
    }
    fields.push_back(field);
  }
  return fields;
}

// What a trace says, a line for each packet: "12 ns track 3 begins request", "track 3 of 1: queue 1 …".
std::vector<std::string> Packets(const std::string& trace) {
  std::vector<std::string> lines;
  for (const Field& packet : FieldsOf(trace)) {
    EXPECT_EQ(packet.number, 1u);
    std::string line;
    uint64_t sequence = 0;
    for (const Field& part : FieldsOf(packet.bytes)) {
      if (part.number == 8) line = fmt::format("{} ns ", part.value) + line;
      if (part.number == 10) sequence = part.value;
      if (part.number != 11 && part.number != 60) continue;
      const bool is_event = part.number == 11;
      static constexpr const char* kTypes[] = {"", "begins", "ends", "point", "counts"};
      std::string type;
      std::string name;
      std::string notes;
      std::string owner;
      uint64_t track = 0;
      for (const Field& field : FieldsOf(part.bytes)) {
        if (is_event && field.number == 9) type = kTypes[field.value];
        if (is_event && field.number == 11) track = field.value;
        if (is_event && field.number == 23) name = " " + field.bytes;
        if (is_event && field.number == 30) name = fmt::format(" {}", static_cast<int64_t>(field.value));
        if (is_event && field.number == 47) notes += fmt::format(", arrow {}", field.value);
        if (is_event && field.number == 4) {
          const std::vector<Field> note = FieldsOf(field.bytes);
          notes += fmt::format(", {} {}", note[0].bytes, static_cast<int64_t>(note[1].value));
        }
        if (!is_event && field.number == 1) track = field.value;
        if (!is_event && field.number == 2) name = ": " + field.bytes;
        if (!is_event && field.number == 5) owner = fmt::format(" of {}", field.value);
        if (!is_event && field.number == 8) type = "counter";
        if (!is_event && field.number == 3) {
          const std::vector<Field> process = FieldsOf(field.bytes);
          type = fmt::format("process {} {}", process[0].value, process[1].bytes);
        }
      }
      line += fmt::format("track {}{}{}{}{}{}", track, owner, type.empty() ? "" : " ", type, name, notes);
    }
    EXPECT_EQ(sequence, 1u);
    lines.push_back(line);
  }
  return lines;
}

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
  EXPECT_THAT(ErrorOf("{\"xsched_record\":2,\"recorded\":{}}\n"), HasSubstr("file:1: xsched_record"));
  const std::string head = kHead;
  for (const char* line :
       {R"({"t":1,"burst":{"queue":7,"device_ns":1,"commands":1}})", R"({"t":1,"color":{}})", "[]",
        "{\"t\":-1}", R"({"t":1,"queue":{"id":2,"process":3,"device":0}})",
        R"({"t":1,"hold":{"queue":1}})"}) {
    out_.str("");
    EXPECT_THAT(ErrorOf(head + line + "\n"), HasSubstr("file:5")) << line;
  }
}

TEST_F(TimelineTest, the_last_line_may_be_incomplete) {
  EXPECT_THAT(Read(R"({"t":100,"bur)"),
              ElementsAre("track 4: NVIDIA H200: runs", "track 5: NVIDIA H200: decisions",
                          "track 6 counter: NVIDIA H200: queues with work"));
  EXPECT_TRUE(timeline_.was_cut_off());
}

}  // namespace
}  // namespace xsched::cli
