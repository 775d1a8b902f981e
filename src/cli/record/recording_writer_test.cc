// Lines of a recording: messages in, text out, and what xsched simulate makes of it.
#include "cli/record/recording_writer.h"

#include <gtest/gtest.h>

#include <sstream>

#include "cli/queue_text.h"
#include "cli/simulate/load_file.h"
#include "ipc/bursts.h"
#include "ipc/testing/packet_of.h"

namespace xsched::cli {
namespace {

using std::chrono::milliseconds;

// Server-wide numbers, which are not those of the file.
constexpr uint64_t kQueue = 70;
constexpr uint64_t kOther = 71;

class RecordingWriterTest : public ::testing::Test {
 protected:
  void SetUp() override { Begin(/*anonymous=*/false); }
  void Begin(bool anonymous) {
    text_.str("");
    writer_.emplace(text_, anonymous);
    writer_->Begin({"2026-11-22T20:00:00Z", 1'795'377'600'000'000'000, "2.0.0", "HPF"});
  }
  static ipc::RecordedQueue Queue(uint64_t id, uint64_t client, const char* name, uint64_t device = 5) {
    ipc::RecordedQueue queue{};
    queue.queue_id = id;
    queue.client_id = client;
    queue.pid = static_cast<int32_t>(client + 800);
    queue.uid = 4'000'000'000;  // nobody has it, so it is its own name
    queue.device = device;
    queue.platform = kPlatformUnknown;
    queue.level = kPreemptLevelDeactivate;
    queue.hints = {3, 50, 4000, -1, 0, 0};
    queue.more_hints.weight = 300;
    queue.more_hints.latency_target_us = 20'000;
    queue.more_hints.guarantee_us = 3000;
    queue.more_hints.period_us = 10'000;
    queue.more_hints.floor = 15;
    ipc::SetText(queue.name, std::string_view(name));
    ipc::SetText(queue.device_name, std::string_view("D"));
    return queue;
  }
  static ipc::RecordedBurst Burst(uint64_t queue, Duration at, Duration span, uint64_t commands,
                                  uint32_t flags = 0) {
    ipc::RecordedBurst burst{};
    burst.queue_id = queue;
    burst.at_ns = static_cast<uint64_t>(at.count());
    burst.span_ns = burst.service_ns = static_cast<uint64_t>(span.count());
    burst.launched = burst.retired = commands;
    burst.flags = flags;
    return burst;
  }
  template <typename T>
  void Write(const T& message) {
    writer_->Write(PacketOf(message));
  }
  // The lines so far.
  std::vector<std::string> Lines() const {
    std::vector<std::string> lines;
    std::istringstream input(text_.str());
    for (std::string line; std::getline(input, line);) lines.push_back(line);
    return lines;
  }
  LoadReader ReadBack() const {
    LoadReader reader;
    std::istringstream input(text_.str());
    reader.Read(input, "FILE");
    return reader;
  }

  std::ostringstream text_;
  std::optional<RecordingWriter> writer_;
};

TEST_F(RecordingWriterTest, each_event_is_a_line_and_each_queue_is_described_first) {
  Write(Queue(kQueue, 1, "serve"));
  Write(Burst(kQueue, milliseconds(5), milliseconds(2), 20));
  writer_->End(milliseconds(10), "time");
  const std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(
      lines[0],
      R"({"xsched_record":2,"recorded":{"started":"2026-11-22T20:00:00Z","started_unix_ns":1795377600000000000,)"
      R"("version":"2.0.0","policy":"HPF",)"
      R"("anonymous":false}})");
  EXPECT_EQ(lines[1], R"({"t":0,"device":{"id":0,"platform":")" + PlatformText(kPlatformUnknown) +
                          R"(","name":"D","level":2}})");
  EXPECT_EQ(lines[2], R"({"t":0,"process":{"id":1,"name":"serve","pid":801,"user":"4000000000"}})");
  EXPECT_EQ(
      lines[3],
      R"({"t":0,"queue":{"id":1,"process":1,"device":0,"level":2,"number":70,"hints":{"priority":3,"utilization":50,)"
      R"("deadline_us":4000,"laxity_us":-1,"lax_priority":0,"critical_priority":0,"weight":300,)"
      R"("latency_target_us":20000,"floor":15,"guarantee_us":3000,"period_us":10000,"limit_us":0,"burst_us":0}}})");
  EXPECT_EQ(lines[4], R"({"t":5000000,"burst":{"queue":1,"commands":20,"launched":20,"device_ns":2000000,)"
                      R"("span_ns":2000000}})");
  EXPECT_EQ(lines[5], R"({"t":10000000,"end":{"why":"time"}})");
}

TEST_F(RecordingWriterTest, holds_waits_losses_and_ends_are_lines) {
  Write(Queue(kQueue, 1, "serve"));
  Write(Queue(kOther, 1, "serve"));
  const size_t before = Lines().size();
  ipc::RecordedHold hold{};
  hold.queue_id = kOther;
  hold.at_ns = 7;
  hold.span_ns = 30;
  hold.why = static_cast<uint32_t>(sched::WaitReason::kTurn);
  hold.because_of = kQueue;
  Write(hold);
  ipc::RecordedWait wait{};
  wait.queue_id = kQueue;
  wait.waits_for = kOther;
  wait.at_ns = 8;
  Write(wait);
  ipc::RecordedLoss loss{};
  loss.at_ns = 9;
  loss.lost = 12;
  Write(loss);
  ipc::RecordedEnd end{};
  end.at_ns = 10;
  end.queue_id = kQueue;
  Write(end);
  const std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), before + 4);
  EXPECT_EQ(lines[before], R"({"t":7,"hold":{"queue":2,"span_ns":30,"why":"turn","by":1}})");
  EXPECT_EQ(lines[before + 1], R"({"t":8,"wait":{"queue":1,"for":2}})");
  EXPECT_EQ(lines[before + 2], R"({"t":9,"lost":{"records":12}})");
  EXPECT_EQ(lines[before + 3], R"({"t":10,"gone":{"queue":1}})");
  EXPECT_EQ(writer_->lost(), 12u);
}

TEST_F(RecordingWriterTest, slices_turns_memory_and_commands_in_flight_are_lines) {
  Write(Queue(kQueue, 1, "serve"));
  Write(Queue(kOther, 2, "train"));
  const size_t before = Lines().size();
  ipc::RecordedSlice slice{};
  slice.queue_id = kOther;
  slice.at_ns = 5;
  slice.span_ns = 6;
  slice.slice_us = 1000;
  Write(slice);
  ipc::RecordedTurn turn{};
  turn.queue_id = kQueue;
  turn.at_ns = 7;
  turn.span_ns = 8;
  Write(turn);
  ipc::RecordedMemory memory{};
  memory.queue_id = kOther;
  memory.at_ns = 9;
  memory.span_ns = 500;
  memory.used = 3000;
  memory.limit = 4000;
  Write(memory);
  ipc::RecordedInFlight in_flight{};
  in_flight.queue_id = kOther;
  in_flight.at_ns = 12;
  in_flight.commands = 13;
  Write(in_flight);
  slice.queue_id = turn.queue_id = memory.queue_id = in_flight.queue_id = 99;
  Write(slice);
  Write(turn);
  Write(memory);
  Write(in_flight);
  const std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), before + 4) << "nothing of a queue that was not described";
  EXPECT_EQ(lines[before], R"({"t":5,"slice":{"process":2,"device":0,"span_ns":6,"slice_us":1000}})");
  EXPECT_EQ(lines[before + 1], R"({"t":7,"turn":{"process":1,"device":0,"span_ns":8}})");
  EXPECT_EQ(lines[before + 2],
            R"({"t":9,"memory":{"process":2,"device":0,"span_ns":500,"used":3000,"limit":4000}})");
  EXPECT_EQ(lines[before + 3], R"({"t":12,"in_flight":{"queue":2,"commands":13}})");
  writer_->End(Duration(0), "time");
  EXPECT_EQ(Lines().back(), R"({"t":509,"end":{"why":"time"}})") << "behind all that is in it";
  ReadBack();  // a simulation needs none of them, and refuses none
}

TEST_F(RecordingWriterTest, what_is_special_about_a_burst_is_said_and_nothing_else) {
  Write(Queue(kQueue, 1, "serve"));
  ipc::RecordedBurst burst =
      Burst(kQueue, milliseconds(1), milliseconds(2), 3,
            ipc::kBurstContinued | ipc::kBurstCut | ipc::kBurstShared | ipc::kBurstUnseen);
  burst.waiting_ns = 5;
  Write(burst);
  EXPECT_NE(Lines().back().find(R"("waiting_ns":5,"continued":true,"cut":true,"shared":true,"unseen":true)"),
            std::string::npos)
      << Lines().back();
}

TEST_F(RecordingWriterTest, several_bursts_in_one_message_are_a_line_each_of_their_average_length) {
  Write(Queue(kQueue, 1, "serve"));
  ipc::RecordedBurst bursts = Burst(kQueue, milliseconds(1), milliseconds(2), 7);
  bursts.bursts = 2;
  bursts.service_ns = 500'000;
  Write(bursts);
  const std::vector<std::string> lines = Lines();
  ASSERT_GE(lines.size(), 2u);
  EXPECT_EQ(
      lines[lines.size() - 2],
      R"({"t":1000000,"burst":{"queue":1,"commands":4,"launched":4,"device_ns":250000,"span_ns":250000,"averaged":true}})");
  EXPECT_EQ(
      lines.back(),
      R"({"t":2000000,"burst":{"queue":1,"commands":3,"launched":3,"device_ns":250000,"span_ns":250000,"averaged":true}})");
}

// Found by a fuzzer: a server that is not ours could fill the disk.
TEST_F(RecordingWriterTest, a_message_is_not_believed_more_bursts_than_a_server_puts_into_one) {
  Write(Queue(kQueue, 1, "serve"));
  ipc::RecordedBurst bursts = Burst(kQueue, milliseconds(1), milliseconds(2), 7);
  bursts.bursts = UINT32_MAX;
  Write(bursts);
  EXPECT_EQ(writer_->bursts(), ipc::kMostBursts);
}

TEST_F(RecordingWriterTest, a_description_that_comes_again_changes_hints_and_keeps_the_number) {
  ipc::RecordedQueue queue = Queue(kQueue, 1, "serve");
  Write(queue);
  queue.at_ns = 77;
  queue.hints.priority = 9;
  Write(queue);
  EXPECT_EQ(Lines().size(), 5u);
  EXPECT_EQ(writer_->queues(), 1u);
  const sched::sim::Load load = ReadBack().Finish(std::nullopt, std::nullopt);
  ASSERT_EQ(load.queues.size(), 1u);
  ASSERT_EQ(load.queues[0].changes.size(), 1u);
  EXPECT_EQ(load.queues[0].changes[0].at, Duration(77));
  EXPECT_EQ(load.queues[0].changes[0].hints.priority, 9);
}

TEST_F(RecordingWriterTest, an_anonymous_recording_has_no_name_user_or_pid) {
  Begin(/*anonymous=*/true);
  Write(Queue(kQueue, 1, "secret"));
  Write(Queue(kOther, 2, "secret"));
  Write(Queue(kOther + 1, 3, "public"));
  const std::string text = text_.str();
  for (const char* hidden : {"secret", "public", "4000000000", "801", "802", "803"})
    EXPECT_EQ(text.find(hidden), std::string::npos) << hidden;
  EXPECT_NE(text.find(R"({"id":2,"name":"program 1","pid":2,"user":"user 1"})"), std::string::npos) << text;
  EXPECT_NE(text.find(R"({"id":3,"name":"program 2","pid":3,"user":"user 1"})"), std::string::npos) << text;
}

TEST_F(RecordingWriterTest, jobs_of_two_users_with_the_same_number_are_two) {
  ipc::RecordedQueue queue = Queue(kQueue, 1, "a");
  queue.job = 5;
  Write(queue);
  ipc::RecordedQueue other = Queue(kOther, 2, "b");
  other.job = 5;
  other.uid = 3'999'999'999;
  Write(other);
  const sched::sim::Load load = ReadBack().Finish(std::nullopt, std::nullopt);
  ASSERT_EQ(load.processes.size(), 2u);
  EXPECT_NE(load.processes[0].job, load.processes[1].job);
}

TEST_F(RecordingWriterTest, what_was_not_described_or_is_gone_is_left_out) {
  Write(Burst(kQueue, milliseconds(1), milliseconds(1), 1));
  EXPECT_EQ(Lines().size(), 1u);
  Write(Queue(kQueue, 1, "serve"));
  ipc::RecordedEnd end{};
  end.queue_id = kQueue;
  Write(end);
  const size_t lines = Lines().size();
  Write(Burst(kQueue, milliseconds(1), milliseconds(1), 1));
  Write(ipc::Wake{});
  EXPECT_EQ(Lines().size(), lines);
  EXPECT_EQ(writer_->bursts(), 0u);
}

TEST_F(RecordingWriterTest, of_queues_that_are_gone_only_the_last_ones_are_remembered) {
  ipc::RecordedHold hold{};
  hold.queue_id = 1;
  hold.why = static_cast<uint32_t>(sched::WaitReason::kHeld);
  Write(Queue(1, 1, "serve"));
  const auto says_because_of = [&](uint64_t other) {
    hold.because_of = other;
    Write(hold);
    return Lines().back().find("\"by\"") != std::string::npos;
  };
  ipc::RecordedEnd end{};
  for (end.queue_id = 2; end.queue_id < 2 + GoneQueues::kMost; ++end.queue_id) {
    Write(Queue(end.queue_id, 1, "serve"));
    Write(end);
  }
  EXPECT_TRUE(says_because_of(2));
  Write(Queue(end.queue_id, 1, "serve"));
  Write(end);
  EXPECT_FALSE(says_because_of(2));
  EXPECT_TRUE(says_because_of(end.queue_id));
}

TEST_F(RecordingWriterTest, the_end_is_not_before_anything_that_was_recorded) {
  Write(Queue(kQueue, 1, "serve"));
  Write(Burst(kQueue, milliseconds(5), milliseconds(20), 1));
  writer_->End(milliseconds(10), "interrupted");
  EXPECT_EQ(Lines().back(), R"({"t":25000000,"end":{"why":"interrupted"}})");
}

TEST_F(RecordingWriterTest, simulate_reads_it_without_a_warning) {
  Write(Queue(kQueue, 1, "serve"));
  Write(Queue(kOther, 2, "train", 6));
  Write(Burst(kQueue, milliseconds(5), milliseconds(2), 20));
  Write(Burst(kOther, milliseconds(0), milliseconds(100), 50, ipc::kBurstCut));
  Write(Burst(kOther, milliseconds(100), milliseconds(100), 50, ipc::kBurstContinued));
  writer_->End(milliseconds(300), "time");
  LoadReader reader = ReadBack();
  const sched::sim::Load load = reader.Finish(std::nullopt, std::nullopt);
  EXPECT_TRUE(reader.warnings().empty());
  EXPECT_EQ(load.length, milliseconds(300));
  ASSERT_EQ(load.queues.size(), 2u);
  EXPECT_EQ(load.queues[0].name, "serve");
  ASSERT_EQ(load.queues[1].tasks.size(), 2u);
  EXPECT_TRUE(load.queues[1].tasks[1].follows);
  EXPECT_EQ(load.queues[1].tasks[1].at, Duration::zero());
}

}  // namespace
}  // namespace xsched::cli
