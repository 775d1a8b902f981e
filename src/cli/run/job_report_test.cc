// What `xsched run --report` says.
#include "cli/run/job_report.h"

#include <gmock/gmock.h>

#include <cstring>

#include "ipc/testing/packet_of.h"

namespace xsched::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kJob = 77;

class JobReportTest : public testing::Test {
 protected:
  void Queue(uint64_t id, uint64_t client, uint64_t job, const char* name, int32_t priority) {
    QueueOfPid(static_cast<int32_t>(800 + client), id, client, job, name, priority);
  }
  void QueueOfPid(int32_t pid, uint64_t id, uint64_t client, uint64_t job, const char* name,
                  int32_t priority) {
    ipc::RecordedQueue queue{};
    queue.queue_id = id;
    queue.client_id = client;
    queue.job = job;
    queue.pid = pid;
    queue.hints.priority = priority;
    strncpy(queue.name, name, sizeof queue.name - 1);
    strncpy(queue.device_name, "NVIDIA H200", sizeof queue.device_name - 1);
    waits_.Take(PacketOf(queue));
  }
  void Burst(uint64_t queue, Duration span, Duration device_time, uint32_t flags = 0) {
    ipc::RecordedBurst burst{};
    burst.queue_id = queue;
    burst.span_ns = static_cast<uint64_t>(span.count());
    burst.service_ns = static_cast<uint64_t>(device_time.count());
    burst.flags = flags;
    waits_.Take(PacketOf(burst));
  }
  void Hold(uint64_t queue, uint64_t because_of, Duration span) {
    ipc::RecordedHold hold{};
    hold.queue_id = queue;
    hold.because_of = because_of;
    hold.at_ns = 1'000'000;
    hold.span_ns = static_cast<uint64_t>(span.count());
    hold.why = static_cast<uint32_t>(sched::WaitReason::kHeld);
    waits_.Take(PacketOf(hold));
  }
  std::string Text() {
    waits_.Finish(seconds(10));
    return ReportText(outcome_, waits_);
  }

  ProcessWaits waits_;
  JobOutcome outcome_{.program = {"python3", "train.py"}, .length = seconds(10), .job = kJob};
};

TEST_F(JobReportTest, says_how_long_requests_took_and_because_of_whom_they_waited) {
  Queue(1, 1, kJob, "train", 0);
  Queue(2, 2, 5, "serve", 10);
  Burst(1, milliseconds(100), milliseconds(60));
  Hold(1, 2, milliseconds(40));
  EXPECT_EQ(Text(),
            "xsched: python3 train.py: ran for 10.0 s, exit status 0\n"
            "train (pid 801), priority 0, 1 queue on NVIDIA H200\n"
            "  1 request, p50 100.0 ms, p99 100.0 ms, longest 100.0 ms.\n"
            "  Its queues had work for 100.0 ms, and used 60.0 ms of the device's time.\n"
            "  They did not run for 40.0 ms of it (40 %):\n"
            "    40.0 ms in 1 wait: held for serve (pid 802), priority 10\n"
            "  The longest wait: 40.0 ms, 10.0 s ago, held for serve (pid 802), priority 10\n");
  const auto json = ReportJson(outcome_, waits_);
  EXPECT_EQ(json["exit_status"], 0);
  EXPECT_EQ(json["total"]["requests"]["count"], 1);
  EXPECT_EQ(json["total"]["device_seconds"], 0.06);
  EXPECT_EQ(json["total"]["held_seconds"], 0.04);
  ASSERT_EQ(json["processes"].size(), 1u);
  const auto& wait = json["processes"][0]["waits"][0];
  EXPECT_EQ(wait["why"], "held");
  EXPECT_EQ(wait["because_of"]["pid"], 802);
  EXPECT_EQ(wait["because_of"]["priority"], 10);
}

TEST_F(JobReportTest, of_several_processes_says_first_what_they_did_together) {
  Queue(1, 1, kJob, "rank", 0);
  Queue(2, 2, kJob, "rank", 0);
  Burst(1, milliseconds(10), milliseconds(10));
  Burst(2, milliseconds(30), milliseconds(20));
  Hold(2, 1, milliseconds(10));
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("All 2 processes together\n  2 requests, p50 10.0 ms, p99 30.0 ms"));
  EXPECT_THAT(text, HasSubstr("had work for 40.0 ms, and used 30.0 ms"));
  EXPECT_THAT(text, HasSubstr("10.0 ms in 1 wait: held for another queue of its own\n"));
  EXPECT_THAT(text, HasSubstr("10.0 ms in 1 wait: held for rank (pid 801), priority 0\n"));
  EXPECT_LT(text.find("rank (pid 802), priority 0, 1 queue"),
            text.find("rank (pid 801), priority 0, 1 queue"))
      << "whoever used the device most is first";
}

TEST_F(JobReportTest, many_processes_are_counted_and_in_the_json) {
  for (uint64_t i = 1; i <= 20; ++i) {
    Queue(i, i, kJob, "rank", 0);
    Burst(i, milliseconds(1), milliseconds(1));
  }
  EXPECT_THAT(Text(), HasSubstr("and 12 more.\n"));
  EXPECT_EQ(ReportJson(outcome_, waits_)["processes"].size(), 20u);
}

TEST_F(JobReportTest, a_queue_of_another_server_with_the_same_number_is_another_one) {
  waits_.BeginPart(seconds(0));
  Queue(1, 1, kJob, "train", 0);
  Burst(1, milliseconds(100), milliseconds(60), ipc::kBurstCut);
  waits_.BeginPart(seconds(5));
  Queue(1, 1, 3, "other", 0);
  Burst(1, milliseconds(100), milliseconds(60), ipc::kBurstContinued);
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("0 requests; 1 of unknown length, at least 100.0 ms.\n"));
  EXPECT_THAT(text, Not(HasSubstr("other (pid")));
}

TEST_F(JobReportTest, a_process_that_a_second_server_describes_is_still_one_process) {
  waits_.BeginPart(seconds(0));
  QueueOfPid(810, 1, 1, kJob, "train", 0);
  QueueOfPid(810, 2, 1, kJob, "train", 0);
  QueueOfPid(820, 3, 2, 5, "serve", 10);
  Burst(1, milliseconds(100), milliseconds(60));
  Hold(1, 3, milliseconds(40));
  waits_.BeginPart(seconds(5));
  QueueOfPid(820, 1, 1, 5, "serve", 10);
  QueueOfPid(810, 2, 2, kJob, "train", 0);
  QueueOfPid(810, 3, 2, kJob, "train", 0);
  QueueOfPid(810, 4, 2, kJob, "train", 0);
  Burst(2, milliseconds(100), milliseconds(60));
  Hold(2, 1, milliseconds(40));
  EXPECT_EQ(Text(),
            "xsched: python3 train.py: ran for 10.0 s, exit status 0\n"
            "train (pid 810), priority 0, 3 queues on NVIDIA H200\n"
            "  2 requests, p50 100.0 ms, p99 100.0 ms, longest 100.0 ms.\n"
            "  Its queues had work for 200.0 ms, and used 120.0 ms of the device's time.\n"
            "  They did not run for 80.0 ms of it (40 %):\n"
            "    80.0 ms in 2 waits: held for serve (pid 820), priority 10\n"
            "  The longest wait: 40.0 ms, 10.0 s ago, held for serve (pid 820), priority 10\n");
}

TEST_F(JobReportTest, two_runtimes_of_a_process_are_still_two_after_a_second_server) {
  waits_.BeginPart(seconds(0));
  for (uint64_t runtime : {1, 2}) QueueOfPid(810, runtime, runtime, kJob, "train", 0);
  waits_.BeginPart(seconds(5));
  for (uint64_t runtime : {1, 2, 3}) QueueOfPid(810, runtime, runtime, kJob, "train", 0);
  EXPECT_EQ(ReportJson(outcome_, waits_)["processes"].size(), 3u);
}

TEST_F(JobReportTest, says_what_is_missing) {
  Queue(1, 1, kJob, "train", 0);
  Burst(1, milliseconds(100), milliseconds(100));
  outcome_.missing = milliseconds(3200);
  outcome_.problem = "the server ended the connection";
  outcome_.status = -15;
  outcome_.job_is_older = true;
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("ended by signal 15 (Terminated)\n"));
  EXPECT_THAT(
      text, HasSubstr("What happened in 3.2 s of this time is missing: the server ended the connection.\n"));
  EXPECT_THAT(text, HasSubstr("about all programs of the job"));
  const auto json = ReportJson(outcome_, waits_);
  EXPECT_EQ(json["signal"], 15);
  EXPECT_EQ(json["missing_seconds"], 3.2);
}

TEST_F(JobReportTest, of_a_program_without_queues_says_so) {
  EXPECT_THAT(Text(), HasSubstr("No queue of it was recorded"));
  EXPECT_EQ(ReportJson(outcome_, waits_)["total"]["requests"]["count"], 0);
}

}  // namespace
}  // namespace xsched::cli
