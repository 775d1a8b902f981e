// What `xsched explain` says of a recording.
#include "cli/explain/explanation.h"

#include <gmock/gmock.h>

#include <sstream>

#include "cli/record/recording_writer.h"
#include "ipc/testing/packet_of.h"

namespace xsched::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kHead =
    R"({"xsched_record":1,"recorded":{"started":"2026-11-23T02:00:00Z","version":"2.0.0","policy":"HPF","anonymous":false}}
{"t":0,"device":{"id":0,"platform":"CUDA","name":"NVIDIA H200","level":3}}
{"t":0,"process":{"id":1,"name":"serve","pid":812,"user":"ann"}}
{"t":0,"queue":{"id":1,"process":1,"device":0,"level":3,"hints":{"priority":5}}}
{"t":0,"process":{"id":2,"name":"train","pid":913,"user":"ann"}}
{"t":0,"queue":{"id":2,"process":2,"device":0,"level":3,"hints":{"priority":0}}}
)";

class ExplanationTest : public testing::Test {
 protected:
  // Of the process with this number.
  std::string Explain(const std::string& lines, int64_t process) {
    std::istringstream in(kHead + lines);
    waits_.Read(in, "file");
    return Explanation(waits_, waits_.processes().at(process));
  }

  ProcessWaits waits_;
};

TEST_F(ExplanationTest, says_because_of_whom_a_program_waited_the_longest_reason_first) {
  EXPECT_EQ(
      Explain(
          R"({"t":1000000,"burst":{"queue":2,"commands":50,"device_ns":60000000,"span_ns":100000000,"waiting_ns":40000000}}
{"t":2000000,"hold":{"queue":2,"span_ns":4000000,"why":"held","by":1}}
{"t":3000000,"hold":{"queue":2,"span_ns":30000000,"why":"off device","by":1}}
{"t":5000000,"hold":{"queue":2,"span_ns":6000000,"why":"held","by":1}}
{"t":2003000000,"end":{"why":"time"}}
)",
          2),
      "train (pid 913), priority 0, 1 queue on NVIDIA H200\n"
      "  1 request, p50 100.0 ms, p99 100.0 ms, longest 100.0 ms.\n"
      "  Its queues had work for 100.0 ms, and used 60.0 ms of the device's time.\n"
      "  They did not run for 40.0 ms of it (40 %):\n"
      "    30.0 ms in 1 wait: process off the device for serve (pid 812), priority 5\n"
      "    10.0 ms in 2 waits: held for serve (pid 812), priority 5\n"
      "  The longest wait: 30.0 ms, 2.0 s ago, process off the device for serve (pid 812), priority 5\n");
}

TEST_F(ExplanationTest, a_request_in_parts_is_one_and_what_nobody_saw_is_none) {
  const std::string text =
      Explain(R"({"t":0,"burst":{"queue":1,"commands":5,"device_ns":1,"span_ns":100000000,"cut":true}}
{"t":100000000,"burst":{"queue":1,"commands":5,"device_ns":1,"span_ns":20000000,"continued":true}}
{"t":200000000,"burst":{"queue":1,"commands":5,"device_ns":1,"span_ns":20000000}}
{"t":300000000,"burst":{"queue":1,"commands":5,"device_ns":1,"span_ns":0,"unseen":true}}
{"t":400000000,"burst":{"queue":1,"commands":5,"device_ns":1,"span_ns":10000000,"cut":true}}
)",
              1);
  EXPECT_THAT(
      text,
      HasSubstr(
          "2 requests, p50 20.0 ms, p99 120.0 ms, longest 120.0 ms; 1 not finished; 1 of unknown length."));
  EXPECT_THAT(text, HasSubstr("Nothing made it wait."));
}

TEST_F(ExplanationTest, a_request_of_which_a_part_is_not_known_has_no_length_but_a_least_one) {
  const std::string text =
      Explain(R"({"t":0,"burst":{"queue":1,"commands":5,"device_ns":1,"span_ns":400000000,"cut":true}}
{"t":900000000,"burst":{"queue":1,"commands":5,"device_ns":1,"span_ns":400000000,"continued":true,"cut":true}}
{"t":1300000000,"burst":{"queue":1,"commands":5,"device_ns":1,"span_ns":20000000,"continued":true}}
)",
              1);
  EXPECT_THAT(text, HasSubstr("0 requests; 1 of unknown length, at least 820.0 ms."));
}

TEST_F(ExplanationTest, of_a_request_that_had_begun_before_only_its_rest_is_known) {
  const std::string text = Explain(
      R"({"t":0,"burst":{"queue":1,"commands":5,"device_ns":1,"span_ns":1700000000,"continued":true}}
{"t":0,"hold":{"queue":1,"span_ns":1600000000,"why":"held","by":2}}
)",
      1);
  EXPECT_THAT(text, HasSubstr("0 requests; 1 of unknown length, at least 1.7 s."));
  EXPECT_THAT(text, HasSubstr("The longest wait: at least 1.6 s, "));
}

TEST_F(ExplanationTest, a_request_that_was_not_followed_to_the_end_may_have_finished) {
  const std::string text =
      Explain(R"({"t":0,"burst":{"queue":1,"commands":5,"device_ns":1,"span_ns":400000000,"cut":true}}
{"t":0,"burst":{"queue":2,"commands":5,"device_ns":1,"span_ns":1000000000,"cut":true}}
{"t":1000000000,"end":{"why":"time"}}
)",
              1);
  EXPECT_THAT(text, HasSubstr("0 requests; 1 of unknown length, at least 400.0 ms."));
  EXPECT_THAT(Explanation(waits_, waits_.processes().at(2)), HasSubstr("0 requests; 1 not finished."));
}

TEST_F(ExplanationTest, a_request_of_which_nobody_saw_the_end_is_not_forgotten) {
  const std::string text =
      Explain(R"({"t":0,"burst":{"queue":1,"commands":5,"device_ns":1,"span_ns":400000000,"cut":true}}
{"t":900000000,"burst":{"queue":1,"commands":5,"device_ns":1,"span_ns":20000000}}
{"t":950000000,"burst":{"queue":1,"commands":5,"device_ns":1,"span_ns":0,"unseen":true}}
)",
              1);
  EXPECT_THAT(text, HasSubstr("1 request, p50 20.0 ms, p99 20.0 ms, longest 20.0 ms; 2 of unknown length, "
                              "the longest at least 400.0 ms."));
}

TEST_F(ExplanationTest,
       several_bursts_in_one_message_are_requests_of_their_average_length_as_in_a_recording) {
  ipc::RecordedQueue queue{};
  queue.queue_id = queue.client_id = 1;
  ipc::RecordedBurst bursts{};
  bursts.queue_id = 1;
  bursts.bursts = 4;
  bursts.span_ns = 2'000'000;
  bursts.service_ns = 1'200'000;
  waits_.Take(ipc::PacketOf(queue));
  waits_.Take(ipc::PacketOf(bursts));
  std::stringstream recording;
  RecordingWriter writer(recording, /*anonymous=*/false);
  writer.Begin({"2026-11-22T20:00:00Z", 0, "2.0.0", "HPF"});
  writer.Write(ipc::PacketOf(queue));
  writer.Write(ipc::PacketOf(bursts));
  ProcessWaits recorded;
  recorded.Read(recording, "FILE");
  for (const ProcessWaits* waits : {&waits_, &recorded}) {
    const ProcessWaits::Process& process = waits->processes().begin()->second;
    EXPECT_EQ(process.requests.count(), 4u);
    EXPECT_EQ(process.requests.largest(), std::chrono::microseconds(300));
    EXPECT_EQ(process.busy, std::chrono::microseconds(1200));
    EXPECT_EQ(process.device_time, std::chrono::microseconds(1200));
  }
}

TEST_F(ExplanationTest, of_queues_that_are_gone_the_sums_are_kept) {
  constexpr uint64_t kQueues = 3 * GoneQueues::kMost;
  ipc::RecordedQueue queue{};
  queue.client_id = 1;
  ipc::RecordedBurst burst{};
  burst.bursts = 1;
  burst.span_ns = 1'000'000;
  ipc::RecordedHold hold{};
  hold.span_ns = 500'000;
  hold.why = static_cast<uint32_t>(sched::WaitReason::kHeld);
  ipc::RecordedEnd end{};
  for (uint64_t id = 1; id <= kQueues; ++id) {
    queue.queue_id = burst.queue_id = hold.queue_id = end.queue_id = id;
    hold.because_of = id - 1;  // which has just gone
    burst.flags = id % 2 == 0 ? ipc::kBurstCut : 0;
    waits_.Take(ipc::PacketOf(queue));
    waits_.Take(ipc::PacketOf(burst));
    waits_.Take(ipc::PacketOf(hold));
    waits_.Take(ipc::PacketOf(end));
  }
  waits_.Finish({});
  EXPECT_LE(waits_.known_queues(), GoneQueues::kMost);
  const ProcessWaits::Process& process = waits_.processes().begin()->second;
  EXPECT_EQ(process.queues, kQueues);
  EXPECT_EQ(process.busy, kQueues * std::chrono::milliseconds(1));
  EXPECT_EQ(process.requests.count(), kQueues / 2);
  EXPECT_EQ(process.unfinished, kQueues / 2);
  ASSERT_EQ(process.waits.size(), 2u) << "only the first one names none";
  EXPECT_EQ(process.waits.rbegin()->second.times, kQueues - 1);
}

// Found by a fuzzer: their sums overflowed.
TEST_F(ExplanationTest, times_of_any_length_have_a_sum) {
  ipc::RecordedQueue queue{};
  queue.queue_id = queue.client_id = 1;
  ipc::RecordedBurst burst{};
  burst.queue_id = 1;
  burst.span_ns = burst.service_ns = burst.waiting_ns = UINT64_MAX;
  ipc::RecordedHold hold{};
  hold.queue_id = 1;
  hold.at_ns = hold.span_ns = UINT64_MAX;
  waits_.Take(ipc::PacketOf(queue));
  for (int i = 0; i < 2; ++i) {
    waits_.Take(ipc::PacketOf(burst));
    waits_.Take(ipc::PacketOf(hold));
  }
  const ProcessWaits::Process& process = waits_.processes().begin()->second;
  EXPECT_EQ(process.busy, Duration::max());
  EXPECT_EQ(process.waits.begin()->second.time, Duration::max());
  EXPECT_EQ(process.longest_at, Duration::max());
}

TEST_F(ExplanationTest, names_the_priority_of_the_queue_that_was_waited_for) {
  EXPECT_THAT(
      Explain(R"({"t":0,"queue":{"id":3,"process":1,"device":0,"level":3,"hints":{"priority":-20}}}
{"t":0,"burst":{"queue":2,"commands":50,"device_ns":60000000,"span_ns":100000000,"waiting_ns":40000000}}
{"t":0,"hold":{"queue":2,"span_ns":30000000,"why":"held","by":1}}
{"t":0,"hold":{"queue":2,"span_ns":5000000,"why":"turn","by":3}}
{"t":0,"queue":{"id":1,"process":1,"device":0,"level":3,"hints":{"priority":9}}}
{"t":0,"hold":{"queue":2,"span_ns":4000000,"why":"held","by":1}}
)",
              2),
      HasSubstr("    30.0 ms in 1 wait: held for serve (pid 812), priority 5\n"
                "    5.0 ms in 1 wait: waits for its turn behind serve (pid 812), priority -20\n"
                "    4.0 ms in 1 wait: held for serve (pid 812), priority 9\n"
                "  The longest wait: at least 30.0 ms, 0 µs ago, held for serve (pid 812), priority 5\n"));
}

TEST_F(ExplanationTest, waits_for_queues_of_its_own_are_one_reason_whatever_their_priorities) {
  EXPECT_THAT(Explain(R"({"t":0,"queue":{"id":3,"process":1,"device":0,"level":3,"hints":{"priority":-20}}}
{"t":0,"queue":{"id":4,"process":1,"device":0,"level":3,"hints":{"priority":0}}}
{"t":0,"hold":{"queue":3,"span_ns":30000000,"why":"held","by":1}}
{"t":0,"hold":{"queue":3,"span_ns":5000000,"why":"held","by":4}}
)",
                      1),
              HasSubstr("    35.0 ms in 2 waits: held for another queue of its own\n"));
}

TEST_F(ExplanationTest, devices_with_the_same_name_are_counted) {
  EXPECT_THAT(Explain(R"({"t":0,"device":{"id":7,"platform":"CUDA","name":"NVIDIA H200","level":3}}
{"t":0,"device":{"id":8,"platform":"CUDA","name":"NVIDIA L4","level":3}}
{"t":0,"queue":{"id":3,"process":1,"device":7,"level":3,"hints":{"priority":5}}}
{"t":0,"queue":{"id":4,"process":1,"device":8,"level":3,"hints":{"priority":5}}}
)",
                      1),
              HasSubstr("serve (pid 812), priority 5, 3 queues on 2 × NVIDIA H200, NVIDIA L4\n"));
  ipc::RecordedQueue queue{};
  queue.client_id = 9;
  ipc::SetText(queue.device_name, std::string_view("NVIDIA H200"));
  for (queue.queue_id = 11; queue.queue_id < 14; ++queue.queue_id) {
    queue.device = queue.queue_id % 2;
    waits_.Take(ipc::PacketOf(queue));
  }
  EXPECT_THAT(Explanation(waits_, waits_.processes().at(9)), HasSubstr("3 queues on 2 × NVIDIA H200\n"));
}

TEST_F(ExplanationTest, a_reason_without_another_queue_names_none) {
  const std::string text =
      Explain(R"({"t":0,"burst":{"queue":1,"commands":5,"device_ns":1,"span_ns":100000000}}
{"t":0,"hold":{"queue":1,"span_ns":1000000,"why":"limit"}}
{"t":0,"hold":{"queue":1,"span_ns":2000000,"why":"held"}}
{"t":0,"hold":{"queue":1,"span_ns":3000000,"why":"turn","by":1}}
)",
              1);
  EXPECT_THAT(text, HasSubstr("1.0 ms in 1 wait: has used up its limit\n"));
  EXPECT_THAT(text, HasSubstr("2.0 ms in 1 wait: held for a queue that you may not see\n"));
  EXPECT_THAT(text, HasSubstr("3.0 ms in 1 wait: waits for its turn behind another queue of its own\n"));
}

TEST_F(ExplanationTest, of_a_program_that_was_not_recorded_nothing_is_said) {
  const std::string text =
      Explain(R"({"t":0,"burst":{"queue":2,"commands":5,"device_ns":1,"span_ns":100000000}}
{"t":0,"hold":{"queue":2,"span_ns":2000000,"why":"held","by":1}}
)",
              1);
  EXPECT_THAT(text, HasSubstr("Nothing of it was recorded."));
  EXPECT_THAT(text, Not(HasSubstr("work")));
  EXPECT_FALSE(HasRecords(waits_.processes().at(1)));
  EXPECT_TRUE(HasRecords(waits_.processes().at(2)));
}

TEST_F(ExplanationTest, requests_of_unknown_length_are_work) {
  const std::string text =
      Explain(R"({"t":0,"burst":{"queue":1,"commands":5,"device_ns":1,"span_ns":0,"unseen":true}}
{"t":0,"hold":{"queue":1,"span_ns":2000000,"why":"held","by":2}}
)",
              1);
  EXPECT_THAT(text, HasSubstr("0 requests; 1 of unknown length."));
  EXPECT_THAT(text, HasSubstr("They did not run for 2.0 ms:"));
}

}  // namespace
}  // namespace xsched::cli
